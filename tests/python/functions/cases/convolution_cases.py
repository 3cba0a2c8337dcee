# ruff: noqa: E501
"""Calls of convolutions with odd strides, paddings, dilations, groups and sizes.

One row for each call: the error's name, or the dtypes and shapes of the results.
"""

CASES = r"""
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**62) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**63) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**64) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**64 + 1) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 3, 3), dilate=2**63 - 1) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 1, 1), dilate=2**62) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 1, 1), dilate=2**40) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 1, 1), dilate=2**31) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 1, 1), dilate=2**30) -> float32 (1, 1, 4, 4)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=0) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=-1) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**62) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**61) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**40) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=(2**20, 0), stride=(2**20, 1)) -> float32 (1, 1, 3, 3)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**40, stride=2**40) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**30, stride=2**30) -> MemoryError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**62, stride=2**62) -> ValueError
F.convolution_2d(d(1, 1, 4, 4), d(1, 1, 2, 2), pad=2**20, stride=2**20) -> MemoryError
F.convolution_2d(d(1, 1, 4, 4), d(1, 1, 2, 2), pad=2**40, stride=2**40) -> ValueError
F.convolution_2d(d(1, 1, 4, 4), d(1, 1, 2, 2), pad=2**61, stride=2**61) -> ValueError
F.convolution_2d(d(1, 1, 4, 4), d(1, 1, 2, 2), dilate=2**61, pad=2**61) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**30, pad=2**30) -> MemoryError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**62) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**40) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**31) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**63) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**62, cover_all=True) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**63 - 1, cover_all=True) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**40, cover_all=True) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=0) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=-1) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=1.0) -> TypeError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=None) -> TypeError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride='a') -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=(1, 1, 1)) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=(1,)) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=True) -> float32 (1, 1, 3, 3)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=numpy.int64(1)) -> float32 (1, 1, 3, 3)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=numpy.array(1)) -> float32 (1, 1, 3, 3)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=numpy.array([1, 2])) -> float32 (1, 1, 3, 2)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=(1, 2**64)) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=-1) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=-2**64) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=1.5) -> TypeError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), groups=0) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), groups=-1) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), groups=2) -> InvalidType
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), groups=2**62) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), groups=2**64) -> ValueError
F.convolution_2d(f(1, 2, 4, 4), f(0, 2, 2, 2), groups=2**63 - 1) -> ValueError
F.convolution_2d(f(1, 0, 4, 4), f(0, 4, 2, 2), groups=2**62) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), groups=1.0) -> TypeError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), groups='a') -> TypeError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 0, 0)) -> InvalidType
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 0, 2)) -> InvalidType
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 0, 0), dilate=2**62) -> ValueError
F.convolution_2d(f(1, 1, 0, 0), f(1, 1, 0, 0)) -> InvalidType
F.convolution_2d(f(1, 1, 0, 0), f(1, 1, 1, 1), pad=1) -> float32 (1, 1, 2, 2)
F.convolution_2d(f(0, 1, 4, 4), f(1, 1, 2, 2), pad=2**40) -> ValueError
F.convolution_2d(f(0, 1, 4, 4), f(1, 1, 2, 2), pad=2**62) -> ValueError
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 5, 5)) -> InvalidType
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), cover_all=2) -> float32 (1, 1, 3, 3)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), cover_all=None) -> float32 (1, 1, 3, 3)
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), cover_all='yes') -> TypeError
F.convolution_1d(f(1, 1, 4), f(1, 1, 2), pad=2**62) -> ValueError
F.convolution_1d(f(1, 1, 4), f(1, 1, 2), pad=2**40) -> ValueError
F.convolution_1d(f(1, 1, 4), f(1, 1, 2), pad=2**40, stride=2**40) -> ValueError
F.convolution_1d(f(1, 1, 4), f(1, 1, 2), dilate=2**62) -> ValueError
F.convolution_1d(f(1, 1, 4), f(1, 1, 2), stride=0) -> ValueError
F.convolution_1d(f(1, 1, 4), f(1, 1, 2), stride=(1, 1)) -> AssertionError
F.convolution_3d(f(1, 1, 4, 4, 4), f(1, 1, 2, 2, 2), pad=2**62) -> ValueError
F.convolution_3d(f(1, 1, 4, 4, 4), f(1, 1, 2, 2, 2), pad=2**21) -> MemoryError
F.convolution_3d(f(1, 1, 4, 4, 4), f(1, 1, 2, 2, 2), pad=2**20, stride=2**20) -> MemoryError
F.convolution_3d(f(1, 1, 4, 4, 4), f(1, 1, 2, 2, 2), pad=2**40, stride=2**40) -> ValueError
F.convolution_nd(f(1, 1, 4, 4, 4, 4), f(1, 1, 2, 2, 2, 2), pad=2**20, stride=2**20) -> MemoryError
F.convolution_nd(f(1, 1, 4, 4, 4, 4), f(1, 1, 2, 2, 2, 2), pad=2**62, stride=2**62) -> ValueError
F.convolution_nd(f(1, 1, 4, 4, 4, 4), f(1, 1, 2, 2, 2, 2), dilate=2**62) -> ValueError
F.convolution_nd(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=None) -> TypeError
F.convolution_nd(f(1, 1), f(1, 1)) -> InvalidType
F.convolution_nd(f(1), f(1)) -> InvalidType
F.dilated_convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**62) -> ValueError
F.dilated_convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=0) -> ValueError
F.depthwise_convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**62) -> ValueError
F.depthwise_convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=0) -> ValueError
F.depthwise_convolution_2d(f(1, 2, 4, 4), f(1, 2, 2, 2), pad=2**20, stride=2**20) -> MemoryError
F.depthwise_convolution_2d(f(1, 64, 4, 4), f(1, 64, 3, 3), pad=2**30, stride=2**30) -> MemoryError
F.depthwise_convolution_2d(f(1, 0, 4, 4), f(1, 0, 2, 2)) -> ValueError
F.local_convolution_2d(f(1, 1, 4, 4), f(1, 3, 3, 1, 2, 2), stride=0) -> ValueError
F.local_convolution_2d(f(1, 1, 4, 4), f(1, 3, 3, 1, 2, 2), stride=2**64) -> ValueError
F.local_convolution_2d(f(1, 1, 4, 4), f(1, 3, 3, 1, 2, 2), stride=-1) -> ValueError
F.local_convolution_2d(f(1, 1, 4, 4), f(1, 3, 3, 1, 2, 2), stride=1.5) -> TypeError
F.local_convolution_2d(f(1, 1, 4, 4), f(1, 5, 5, 1, 0, 0)) -> ValueError
F.deformable_convolution_2d_sampler(f(1, 1, 4, 4), f(1, 8, 3, 3), f(1, 1, 2, 2), stride=0) -> ValueError
F.deformable_convolution_2d_sampler(f(1, 1, 4, 4), f(1, 8, 3, 3), f(1, 1, 2, 2), stride=2**64) -> ValueError
F.deformable_convolution_2d_sampler(f(1, 1, 4, 4), f(1, 8, 3, 3), f(1, 1, 2, 2), pad=2**64) -> ValueError
F.deformable_convolution_2d_sampler(f(1, 1, 4, 4), f(1, 8, 3, 3), f(1, 1, 2, 2), pad=-1) -> ValueError
F.deformable_convolution_2d_sampler(f(1, 1, 4, 4), f(1, 8, 2, 2), f(1, 1, 2, 2), pad=2**61, stride=2**61) -> ValueError
F.deformable_convolution_2d_sampler(f(1, 1, 4, 4), f(1, 8, 3, 3), f(1, 1, 2, 2), pad=2**70, stride=2**70) -> ValueError
F.deformable_convolution_2d_sampler(f(1, 1, 4, 4), f(1, 0, 5, 5), f(1, 1, 0, 0)) -> InvalidType
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**62) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**61) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**40) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=0) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**62) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), dilate=2**40) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=2**62) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), pad=3) -> InvalidType
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**62, pad=2**62) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), stride=2**62, pad=2**62, outsize=(4, 4)) -> ValueError
F.deconvolution_2d(f(1, 1, 2, 2), f(1, 1, 2, 2), stride=2**40, pad=2**39, outsize=(4, 4)) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=(-5, -5)) -> InvalidType
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=(0, 0)) -> InvalidType
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=(2**62, 2**62)) -> InvalidType
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=(2**64, 2**64)) -> InvalidType
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=(5,)) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=(5, 5, 5)) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=(5.0, 5.0)) -> TypeError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=5) -> float32 (1, 1, 5, 5)
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), outsize=7) -> InvalidType
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 2**0, 2, 2), groups=2**62) -> ValueError
F.deconvolution_2d(f(1, 0, 4, 4), f(0, 4, 2, 2), groups=2**62) -> ValueError
F.deconvolution_2d(f(1, 1, 4, 4), f(1, 1, 0, 0)) -> InvalidType
F.deconvolution_2d(f(0, 1, 4, 4), f(1, 1, 2, 2), stride=2**40) -> ValueError
F.deconvolution_nd(f(1, 1, 4, 4, 4), f(1, 1, 2, 2, 2), stride=2**62) -> ValueError
F.deconvolution_nd(f(1, 1, 4, 4, 4), f(1, 1, 2, 2, 2), outsize=(5, 5)) -> AssertionError
F.deconvolution_nd(f(1, 1, 4), f(1, 1, 2), outsize=5) -> float32 (1, 1, 5)
F.deconvolution_1d(f(1, 1, 4), f(1, 1, 2), outsize='a') -> TypeError
F.convolution_2d(d(1, 1, 4, 4), f(1, 1, 2, 2), f(1)) -> InvalidType
F.convolution_2d(f(1, 1, 4, 4), d(1, 1, 2, 2), d(1)) -> InvalidType
F.convolution_2d(f(1, 1, 4, 4), f(1, 1, 2, 2), d(1)) -> InvalidType
F.convolution_2d(h(1, 1, 4, 4), f(1, 1, 2, 2), f(1)) -> InvalidType
F.convolution_nd(d(1, 1, 4), f(1, 1, 2), f(1)) -> float64 (1, 1, 3)
F.deconvolution_2d(d(1, 1, 4, 4), f(1, 1, 2, 2), f(1)) -> InvalidType
F.depthwise_convolution_2d(d(1, 1, 4, 4), f(1, 1, 2, 2), f(1)) -> InvalidType
F.local_convolution_2d(d(1, 1, 4, 4), f(1, 3, 3, 1, 2, 2), f(1, 3, 3)) -> InvalidType
F.deformable_convolution_2d_sampler(d(1, 1, 4, 4), d(1, 8, 3, 3), f(1, 1, 2, 2), f(1)) -> InvalidType
"""
