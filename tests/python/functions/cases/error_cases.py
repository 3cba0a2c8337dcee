# ruff: noqa: E501
"""Calls with wrong, odd and mixed arguments, and their outcomes in Chainer 7.8.1.

Each line is a call and, after ``->``, the error or the dtypes and shapes it gives
there. Where renga differs on purpose, its outcome follows after ``|``: wrong shapes
and axes are InvalidType and wrong values ValueError even where Chainer fails otherwise (ZeroDivisionError, AssertionError, a RuntimeError of its own type checks, NumPy's
errors) or accepts them.

``python error_cases.py`` with a Chainer that works prints the table again, without
renga's outcomes. In the calls ``h``, ``f``, ``d``, ``i`` and ``l`` make arrays of a shape,
of float16, float32, float64, int32 and int64.
"""

from __future__ import annotations

from typing import Any

import numpy

CASES = """
F.relu(i(2, 3)) -> InvalidType
F.relu(3) -> TypeError | InvalidType
F.relu(None) -> AttributeError | TypeError
F.relu(f(2), 1) -> TypeError
F.relu() -> TypeError
F.sigmoid(i(2)) -> InvalidType
F.tanh(i(2)) -> InvalidType
F.elu(i(2)) -> InvalidType
F.leaky_relu(i(2)) -> InvalidType
F.softplus(i(2)) -> InvalidType
F.softplus(f(2), 0.) -> ZeroDivisionError | float32 (2,)
F.clipped_relu(i(2)) -> InvalidType
F.relu6(i(2)) -> InvalidType
F.crelu(f(2, 3), axis=5) -> InvalidType
F.crelu(f(2, 3), axis=1.5) -> TypeError
F.crelu(i(2, 3)) -> InvalidType
F.hard_sigmoid(i(2)) -> InvalidType
F.selu(i(2)) -> InvalidType
F.swish(f(2, 3), f(4)) -> InvalidType
F.swish(f(2, 3), d(3)) -> InvalidType
F.swish(i(2, 3), f(3)) -> InvalidType
F.prelu(f(2, 3), f(4)) -> InvalidType
F.prelu(f(2, 3), d(3)) -> InvalidType
F.prelu(f(2), f(2, 3)) -> InvalidType
F.maxout(f(2, 5), 2) -> InvalidType
F.maxout(f(2, 4), 0) -> ValueError
F.maxout(f(2, 4), 2, axis=4) -> IndexError | InvalidType
F.maxout(i(2, 4), 2) -> InvalidType
F.softmax(i(2, 3)) -> RuntimeError | InvalidType
F.softmax(f(2, 3), axis=2) -> RuntimeError | InvalidType
F.softmax(f(2, 3), axis=-3) -> RuntimeError | InvalidType
F.softmax(f(())) -> RuntimeError | InvalidType
F.softmax(f(2, 3), axis='1') -> TypeError
F.log_softmax(i(2, 3)) -> RuntimeError | InvalidType
F.log_softmax(f(2, 3), axis=2) -> RuntimeError | InvalidType
F.log_softmax(f(3)) -> RuntimeError | InvalidType
F.rrelu(f(2), l=.5, u=.1) -> ValueError
F.rrelu(f(2), r=f(3)) -> InvalidType
F.rrelu(i(2)) -> InvalidType
F.rrelu(f(2), foo=1) -> TypeError
F.lstm(f(2, 3), f(2, 11)) -> InvalidType
F.lstm(f(2, 3), f(3, 12)) -> InvalidType
F.lstm(f(2, 3), d(2, 12)) -> InvalidType
F.lstm(i(2, 3), i(2, 12)) -> InvalidType
F.lstm(f(2), f(8)) -> IndexError | InvalidType
F.slstm(f(2, 3), f(2, 3), f(2, 12), f(2, 11)) -> InvalidType
F.slstm(f(2, 3), f(2, 4), f(2, 12), f(2, 12)) -> InvalidType
F.tree_lstm(f(2, 3), f(2, 3), f(2, 14)) -> InvalidType
F.tree_lstm(f(2, 3)) -> InvalidType
F.add(f(2, 3)) -> float32 (2, 3)
F.add(f(2, 3), f(2, 4)) -> InvalidType
F.add(f(2, 3), d(2, 3)) -> float32 (2, 3)
F.add(f(2, 3), i(2, 3)) -> float32 (2, 3)
F.add(i(2, 3), i(2, 3)) -> int32 (2, 3)
F.add(f(2, 3), f(3)) -> float32 (2, 3)
F.add(f(2), f(2), f(3)) -> ValueError | InvalidType
F.add(f(2), d(2), h(2)) -> InvalidType
V(f(2, 3)) + d(2, 3) -> float32 (2, 3)
V(f(2, 3)) + V(d(2, 3)) -> InvalidType
V(f(2, 3)) * V(i(2, 3)) -> InvalidType
V(f(2, 3)) - V(f(4)) -> InvalidType
V(f(2, 3)) / V(d(2, 3)) -> InvalidType
V(f(2, 3)) ** V(d(2, 3)) -> InvalidType
V(h(2, 3)) + V(f(2, 3)) -> InvalidType
V(h(2, 3)) + 1.5 -> float16 (2, 3)
V(f(2)) + numpy.float64(3) -> float32 (2,)
V(i(2)) + 1 -> int32 (2,)
V(i(2)) + 1.5 -> int32 (2,)
V(i(2)) * 2 -> int32 (2,)
V(f(2)) + None -> TypeError
V(f(2)) + 'a' -> TypeError
V(f(2)) @ V(d(2)) -> float64 ()
V(f(2, 3)) @ V(f(2, 3)) -> InvalidType
V(f(2, 3)) // V(f(2, 3)) -> float32 (2, 3)
-V(i(2)) -> int32 (2,)
abs(V(i(2))) -> InvalidType
V(f(2)) == V(f(2)) -> TypeError
V(f(2)) < V(f(2)) -> TypeError
bool(V(f(2))) -> TypeError
len(V(f(()))) -> TypeError
V(f(2))[3] -> IndexError
V(f(2, 3))[0, 0, 0] -> IndexError
V(f(2, 3))[..., ...] -> IndexError
V(f(2))['a'] -> IndexError
V(f(2))[1.5] -> IndexError
F.absolute(i(2)) -> InvalidType
F.exp(i(2)) -> InvalidType
F.log(i(2)) -> InvalidType
F.log1p(i(2)) -> InvalidType
F.expm1(i(2)) -> InvalidType
F.log2(i(2)) -> InvalidType
F.log10(i(2)) -> InvalidType
F.sqrt(i(2)) -> InvalidType
F.rsqrt(i(2)) -> InvalidType
F.square(i(2)) -> InvalidType
F.sin(i(2)) -> InvalidType
F.cos(i(2)) -> InvalidType
F.tan(i(2)) -> InvalidType
F.arcsin(i(2)) -> InvalidType
F.arccos(i(2)) -> InvalidType
F.arctan(i(2)) -> InvalidType
F.sinh(i(2)) -> InvalidType
F.cosh(i(2)) -> InvalidType
F.erf(i(2)) -> InvalidType
F.floor(i(2)) -> int32 (2,)
F.ceil(i(2)) -> int32 (2,)
F.sign(i(2)) -> int32 (2,)
F.arctan2(f(2), d(2)) -> float64 (2,)
F.arctan2(f(2), f(3)) -> ValueError | InvalidType
F.arctan2(i(2), i(2)) -> InvalidType
F.arctan2(h(2), f(2)) -> float32 (2,)
F.arctanh(i(2)) -> InvalidType
F.fmod(f(2), d(2)) -> InvalidType
F.fmod(i(2), i(2)) -> InvalidType
F.fmod(f(2), f(3)) -> ValueError | InvalidType
F.fix(i(2)) -> int32 (2,)
F.digamma(i(2)) -> InvalidType
F.lgamma(i(2)) -> InvalidType
F.polygamma(f(2), f(2)) -> InvalidType
F.polygamma(i(2), i(2)) -> InvalidType
F.zeta(f(2), f(2)) -> float32 (2,)
F.erfc(i(2)) -> InvalidType
F.erfcx(i(2)) -> InvalidType
F.erfinv(i(2)) -> InvalidType
F.erfcinv(i(2)) -> InvalidType
F.ndtr(i(2)) -> InvalidType
F.ndtri(i(2)) -> InvalidType
F.log_ndtr(i(2)) -> InvalidType
F.sum(i(2, 3)) -> InvalidType
F.sum(l(2, 3), axis=1) -> InvalidType
F.sum(f(2, 3), axis=2) -> InvalidType
F.sum(f(2, 3), axis=-3) -> InvalidType
F.sum(f(2, 3), axis=(0, 0)) -> ValueError
F.sum(f(2, 3), axis=(0, 1.5)) -> TypeError
F.sum(f(2, 3), axis=1.5) -> TypeError
F.sum(f(2, 3), axis=(0, 1), keepdims=True) -> float32 (1, 1)
F.sum(f(2, 3), axis='0') -> TypeError
F.sum(f(2, 3), axis=[0]) -> TypeError | float32 (3,)
F.sum(h(2, 3)) -> float16 ()
F.mean(i(2, 3)) -> InvalidType
F.average(f(2, 3), axis=2) -> InvalidType
F.average(f(2, 3), weights=f(2, 3)) -> float32 ()
F.average(f(2, 3), axis=1, weights=f(2)) -> InvalidType
F.average(f(2, 3), axis=1, weights=f(3)) -> float32 (2,)
F.average(f(2, 3), axis=(0, 0)) -> ValueError
F.prod(i(2, 3)) -> InvalidType
F.prod(f(2, 3), axis=2) -> InvalidType
F.prod(f(2, 3), axis=(0, 0)) -> ValueError
F.max(i(2, 3)) -> InvalidType
F.max(f(2, 3), axis=2) -> InvalidType
F.max(f(2, 3), axis=(0, 0)) -> ValueError
F.max(f(2, 3), axis=1.5) -> TypeError
F.min(f(2, 3), axis=2) -> InvalidType
F.argmax(i(2, 3)) -> InvalidType
F.argmax(f(2, 3), axis=2) -> InvalidType
F.argmax(f(2, 3), axis=(0, 1)) -> TypeError
F.argmin(f(2, 3), axis=1.5) -> TypeError
F.logsumexp(i(2, 3)) -> InvalidType
F.logsumexp(f(2, 3), axis=2) -> InvalidType
F.logsumexp(f(2, 3), axis=(0, 0)) -> ValueError
F.logsumexp(f(2, 3), axis='a') -> TypeError
F.cumsum(f(2, 3), axis=2) -> InvalidType
F.cumsum(f(2, 3), axis=1.5) -> TypeError
F.cumsum(i(2, 3)) -> InvalidType
F.cumprod(f(2, 3), axis=2) -> InvalidType
F.cumprod(i(2, 3)) -> InvalidType
F.maximum(f(2), d(2)) -> InvalidType
F.maximum(f(2), f(3)) -> InvalidType
F.maximum(i(2), i(2)) -> InvalidType
F.minimum(f(2), i(2)) -> InvalidType
F.minimum(f(2, 3), f(3)) -> float32 (2, 3)
F.clip(f(2), 1, 0) -> ValueError
F.clip(f(2), 1, 1) -> ValueError
F.clip(i(2), 0, 1) -> InvalidType
F.clip(f(2), None, None) -> ValueError
F.matmul(f(2, 3), f(2, 3)) -> InvalidType
F.matmul(f(2, 3), d(3, 2)) -> float64 (2, 2)
F.matmul(f(2, 3), i(3, 2)) -> InvalidType
F.matmul(i(2, 3), i(3, 2)) -> InvalidType | int32 (2, 2)
F.matmul(f(()), f(())) -> InvalidType
F.matmul(f(3), f(4)) -> InvalidType
F.matmul(f(2, 2, 3), f(3, 3, 4)) -> InvalidType
F.matmul(f(2, 3), f(2, 3), transa=True) -> float32 (3, 3)
F.matmul(h(2, 3), f(3, 2)) -> float32 (2, 2)
F.batch_matmul(f(2, 3), f(2, 3, 4)) -> InvalidType
F.batch_matmul(f(2, 3, 4), f(3, 4, 5)) -> ValueError | InvalidType
F.batch_matmul(f(2, 3), f(3, 3)) -> InvalidType
F.batch_matmul(f(2, 3, 4), d(2, 4, 5)) -> InvalidType
F.tensordot(f(2, 3), f(4, 3), axes=1) -> ValueError
F.tensordot(f(2, 3), f(3, 4), axes=1) -> float32 (2, 4)
F.tensordot(f(2, 3), d(3, 4), axes=1) -> float64 (2, 4)
F.tensordot(f(2, 3), f(3, 4), axes=((0,), (0, 1))) -> ValueError
F.tensordot(f(2, 3), f(3, 4), axes='a') -> ValueError
F.tensordot(f(2, 3), f(2, 3), axes=((0, 1), (1, 0))) -> ValueError
F.einsum('ij,jk->ik', f(2, 3), f(3, 4)) -> float32 (2, 4)
F.einsum('ij,jk->ik', f(2, 3), d(3, 4)) -> float64 (2, 4)
F.einsum('ij,jk->ik', f(2, 3), f(2, 4)) -> InvalidType
F.einsum('ij,jk->iz', f(2, 3), f(3, 4)) -> ValueError
F.einsum('ij->ik', f(2, 3)) -> ValueError
F.einsum('ij', f(2, 3, 4)) -> ValueError
F.einsum('i,i', i(2), i(2)) -> InvalidType | int32 ()
F.einsum(f(2)) -> TypeError | ValueError
F.linear(f(2, 3), f(4, 5)) -> InvalidType
F.linear(f(2, 3), f(4, 3), f(5)) -> InvalidType
F.linear(f(2, 3), d(4, 3)) -> float32 (2, 4)
F.linear(f(2, 3), f(4, 3), d(4)) -> InvalidType
F.linear(i(2, 3), i(4, 3)) -> InvalidType
F.linear(f(2, 3), f(4)) -> IndexError | InvalidType
F.linear(f(3), f(4, 3)) -> IndexError | InvalidType
F.linear(f(2, 3), f(4, 3), n_batch_axes=0) -> ValueError
F.linear(f(2, 3), f(4, 3), n_batch_axes=2) -> InvalidType
F.linear(f(2, 3, 4), f(5, 12)) -> float32 (2, 5)
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=2) -> float32 (2, 3, 5)
F.linear(h(2, 3), f(4, 3)) -> float16 (2, 4)
F.bilinear(f(2, 3), f(2, 4), f(3, 5, 6)) -> InvalidType
F.bilinear(f(2, 3), f(2, 4), f(3, 4, 6), f(3, 6)) -> ValueError
F.bilinear(f(2, 3), d(2, 4), f(3, 4, 6)) -> InvalidType
F.bilinear(f(2, 3), f(3, 4), f(3, 4, 6)) -> InvalidType
F.convolution_2d(f(2, 3, 5, 5), f(4, 2, 3, 3)) -> InvalidType
F.convolution_2d(f(2, 3, 5), f(4, 3, 3, 3)) -> InvalidType
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3)) -> InvalidType
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), f(3)) -> InvalidType
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), f(4, 1)) -> InvalidType
F.convolution_2d(f(2, 3, 5, 5), d(4, 3, 3, 3)) -> float32 (2, 4, 3, 3)
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), d(4)) -> InvalidType
F.convolution_2d(h(2, 3, 5, 5), f(4, 3, 3, 3)) -> float16 (2, 4, 3, 3)
F.convolution_2d(i(2, 3, 5, 5), i(4, 3, 3, 3)) -> InvalidType
F.convolution_2d(f(2, 3, 2, 2), f(4, 3, 3, 3)) -> AssertionError | InvalidType
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), stride=0) -> ZeroDivisionError | ValueError
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), stride=(1, 2, 3)) -> ValueError
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), pad=-1) -> ValueError
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), dilate=0) -> ValueError
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), groups=2) -> InvalidType
F.convolution_2d(f(2, 4, 5, 5), f(3, 2, 3, 3), groups=2) -> ValueError | InvalidType
F.convolution_2d(f(2, 4, 5, 5), f(4, 2, 3, 3), groups=0) -> InvalidType | ValueError
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), foo=1) -> TypeError
F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), deterministic=True) -> ValueError
F.deconvolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3)) -> InvalidType
F.deconvolution_2d(f(2, 3, 5, 5), f(3, 4, 3, 3), f(3)) -> ValueError | InvalidType
F.deconvolution_2d(f(2, 3, 5, 5), f(3, 4, 3, 3), outsize=(9, 9)) -> InvalidType
F.deconvolution_2d(f(2, 3, 5, 5), f(3, 4, 3, 3), outsize=(7,)) -> ValueError
F.deconvolution_2d(f(2, 3, 5, 5), d(3, 4, 3, 3)) -> float32 (2, 4, 7, 7)
F.deconvolution_2d(f(2, 3, 5), f(3, 4, 3)) -> InvalidType
F.convolution_nd(f(2, 3, 5), f(4, 2, 3)) -> ValueError | InvalidType
F.convolution_nd(f(2, 3, 5), f(4, 3, 3), f(3)) -> InvalidType
F.convolution_nd(f(2, 3, 5), f(4, 3, 3), stride=(1, 1)) -> AssertionError
F.convolution_nd(f(2, 3, 5), f(4, 3, 3, 3)) -> InvalidType
F.convolution_nd(i(2, 3, 5), f(4, 3, 3)) -> InvalidType
F.convolution_nd(f(2, 3, 5), d(4, 3, 3)) -> float32 (2, 4, 3)
F.convolution_1d(f(2, 3, 5, 5), f(4, 3, 3, 3)) -> ValueError
F.convolution_3d(f(2, 3, 5), f(4, 3, 3)) -> ValueError
F.deconvolution_nd(f(2, 3, 5), f(4, 3, 3)) -> InvalidType
F.deconvolution_nd(f(2, 3, 5), f(3, 4, 3), outsize=(3,)) -> InvalidType
F.deconvolution_1d(f(2, 3, 5, 5), f(3, 4, 3, 3)) -> ValueError
F.dilated_convolution_2d(f(2, 3, 5, 5), f(4, 2, 3, 3)) -> InvalidType
F.depthwise_convolution_2d(f(2, 3, 5, 5), f(1, 2, 3, 3)) -> InvalidType
F.depthwise_convolution_2d(f(2, 3, 5, 5), f(2, 3, 3, 3), f(5)) -> InvalidType
F.local_convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 2, 3, 3)) -> InvalidType
F.local_convolution_2d(f(2, 3, 5, 5), f(4, 2, 3, 3, 3, 3)) -> float32 (2, 4, 2, 3) | InvalidType
F.deformable_convolution_2d_sampler(f(2, 3, 5, 5), f(2, 17, 3, 3), f(4, 3, 3, 3)) -> ValueError | InvalidType
F.embed_id(i(2), f(3)) -> InvalidType
F.embed_id(f(2), f(3, 4)) -> InvalidType
F.embed_id(i(2), i(3, 4)) -> InvalidType
F.embed_id(i(2, 2), f(4, 4)) -> float32 (2, 2, 4)
F.embed_id(l(2), f(4, 4)) -> float32 (2, 4)
F.embed_id(i(20), f(4, 4)) -> float32 (20, 4)
F.embed_id(-1 - i(2), f(4, 4)) -> float32 (2, 4) | IndexError
F.shift(f(2, 8, 3, 3)) -> InvalidType
F.shift(f(2, 9, 3, 3), 2) -> ValueError
F.max_pooling_2d(f(2, 3, 4), 2) -> ValueError
F.max_pooling_2d(i(2, 3, 4, 4), 2) -> InvalidType
F.max_pooling_2d(f(2, 3, 4, 4), 0) -> ZeroDivisionError | ValueError
F.max_pooling_2d(f(2, 3, 4, 4), 5, cover_all=False) -> AssertionError | InvalidType
F.max_pooling_2d(f(2, 3, 4, 4), (2, 2, 2)) -> AssertionError | ValueError
F.max_pooling_2d(f(2, 3, 4, 4), 2, stride=0) -> ZeroDivisionError | ValueError
F.max_pooling_2d(f(2, 3, 4, 4), 2, return_indices=True) -> float32 (2, 3, 2, 2); int64 (2, 3, 2, 2)
F.average_pooling_2d(f(2, 3, 4), 2) -> InvalidType
F.average_pooling_2d(i(2, 3, 4, 4), 2) -> InvalidType
F.average_pooling_2d(f(2, 3, 4, 4), 5) -> AssertionError | InvalidType
F.max_pooling_nd(f(2, 3, 4), (2, 2)) -> AssertionError
F.max_pooling_nd(i(2, 3, 4), 2) -> InvalidType
F.max_pooling_nd(f(2, 3), 2) -> ValueError | InvalidType
F.max_pooling_1d(f(2, 3, 4, 4), 2) -> ValueError
F.average_pooling_nd(f(2, 3, 4), 2, pad_value=1) -> ValueError
F.average_pooling_3d(f(2, 3, 4), 2) -> ValueError
F.unpooling_2d(f(2, 3, 4), 2) -> InvalidType
F.unpooling_2d(i(2, 3, 4, 4), 2) -> InvalidType
F.unpooling_2d(f(2, 3, 4, 4), 2, outsize=(3, 3)) -> InvalidType
F.unpooling_nd(f(2, 3, 4), 2, outsize=(3,)) -> InvalidType
F.unpooling_3d(f(2, 3, 4), 2) -> ValueError
F.upsampling_2d(f(2, 3, 4, 4), i(2, 3, 4, 3), 2) -> InvalidType
F.spatial_pyramid_pooling_2d(f(2, 3, 4, 4), 2, pooling='avg') -> ValueError
F.spatial_pyramid_pooling_2d(f(2, 3, 4), 2, pooling='max') -> ValueError | InvalidType
F.roi_max_pooling_2d(f(1, 2, 4, 4), f(2, 5), i(2), 2, 1.0) -> InvalidType
F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), i(3), 2, 1.0) -> InvalidType
F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), f(2), 2, 1.0) -> InvalidType
F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), i(2), -1, 1.0) -> TypeError
F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), i(2), 2, 'a') -> TypeError
F.roi_average_align_2d(f(3, 2, 4, 4), f(2, 4), i(2), 2, 1.0, 0) -> TypeError
F.roi_average_align_2d(f(3, 2, 4, 4), d(2, 4), i(2), 2, 1.0) -> InvalidType
F.roi_pooling_2d(f(3, 2, 4, 4), f(2, 4), 2, 2, 1.0) -> InvalidType
F.reshape(f(2, 3), (4, 2)) -> InvalidType
F.reshape(f(2, 3), (-1, -1)) -> AssertionError | ValueError
F.reshape(f(2, 3), (-1, 4)) -> InvalidType
F.reshape(f(2, 3), (2, 3.0)) -> float32 (2, 3) | TypeError
F.reshape(f(2, 3), 6) -> TypeError | float32 (6,)
F.reshape(i(2, 3), (3, 2)) -> int32 (3, 2)
F.transpose(f(2, 3), (0, 0)) -> ValueError
F.transpose(f(2, 3), (0,)) -> ValueError
F.transpose(f(2, 3), (0, 2)) -> AxisError | InvalidType
F.transpose(i(2, 3)) -> int32 (3, 2)
F.swapaxes(f(2, 3), 0, 2) -> AxisError | InvalidType
F.swapaxes(f(2, 3), 0, 1.5) -> TypeError
F.moveaxis(f(2, 3), 0, 2) -> InvalidType
F.moveaxis(f(2, 3), (0, 0), (0, 1)) -> ValueError
F.moveaxis(f(2, 3), (0,), (0, 1)) -> ValueError
F.moveaxis(f(2, 3), 'a', 0) -> TypeError
F.rollaxis(f(2, 3), 2) -> InvalidType
F.rollaxis(f(2, 3), 1, 3) -> InvalidType
F.rollaxis(f(2, 3), 1.5) -> TypeError
F.expand_dims(f(2), 3) -> InvalidType
F.expand_dims(f(2), -3) -> InvalidType
F.expand_dims(f(2), 'a') -> ValueError | TypeError
F.squeeze(f(2, 1), 0) -> ValueError
F.squeeze(f(2, 1), 3) -> InvalidType
F.squeeze(f(2, 1), 'a') -> TypeError
F.squeeze(f(1, 1), (0, 0)) -> ValueError
F.broadcast(f(2, 3), f(4)) -> InvalidType
F.broadcast() -> InvalidType
F.broadcast_to(f(2, 3), (2, 4)) -> InvalidType
F.broadcast_to(f(2, 3), (3,)) -> InvalidType
F.broadcast_to(f(2, 3), (2, 2, 3)) -> float32 (2, 2, 3)
F.concat([f(2, 3), f(3, 3)]) -> InvalidType
F.concat([f(2, 3), d(2, 3)]) -> InvalidType
F.concat([f(2, 3), f(2, 3)], axis=2) -> InvalidType
F.concat([f(2, 3), f(2)]) -> InvalidType
F.concat([f(2, 3)], axis='a') -> TypeError
F.concat([]) -> InvalidType
F.concat([i(2, 3), i(2, 3)]) -> int32 (2, 6)
F.stack([f(2), f(3)]) -> InvalidType
F.stack([f(2), d(2)]) -> InvalidType
F.stack([f(2), f(2)], axis=3) -> InvalidType
F.stack([]) -> InvalidType
F.hstack([f(2, 3), f(3, 3)]) -> InvalidType
F.vstack([f(2, 3), f(2, 4)]) -> InvalidType
F.vstack([f(2, 3), f(2)]) -> InvalidType
F.dstack([f(2, 3), f(2, 4)]) -> InvalidType
F.hstack([f(2), d(2)]) -> InvalidType
F.split_axis(f(2, 4), 3, 1) -> InvalidType
F.split_axis(f(2, 4), 2, 2) -> InvalidType
F.split_axis(f(2, 4), 0, 1) -> ZeroDivisionError | ValueError
F.split_axis(f(2, 4), [1, 9], 1) -> InvalidType
F.split_axis(f(2, 4), 'a', 1) -> TypeError
F.split_axis(f(2, 4), 2.5, 1) -> TypeError
F.separate(f(2, 3), axis=2) -> InvalidType
F.separate(f(())) -> InvalidType
F.tile(f(2), -1) -> ValueError
F.tile(f(2), 'a') -> TypeError
F.tile(f(2), (2, 2)) -> float32 (2, 4)
F.repeat(f(2), -1) -> ValueError
F.repeat(f(2, 3), 2, axis=2) -> AxisError | InvalidType
F.repeat(f(2), 'a') -> TypeError
F.repeat(f(2, 3), (1, 2), axis=1) -> ValueError
F.repeat(f(2), 2, axis='a') -> TypeError
F.flip(f(2, 3), 2) -> InvalidType
F.flip(f(2, 3), 'a') -> TypeError
F.flip(f(2, 3), -3) -> InvalidType
F.fliplr(f(3)) -> InvalidType
F.flipud(f(())) -> InvalidType
F.diagonal(f(3)) -> InvalidType
F.diagonal(f(2, 3), axis1=0, axis2=0) -> ValueError
F.diagonal(f(2, 3), axis1=0, axis2=5) -> InvalidType
F.pad(f(2), -1, 'constant') -> ValueError
F.pad(f(2), 1, 'foo') -> ValueError
F.pad(f(2), ((1, 1), (1, 1)), 'constant') -> ValueError
F.pad_sequence([f(2), f(3)], length=2) -> InvalidType
F.pad_sequence([f(2), d(3)]) -> InvalidType
F.pad_sequence([f(2, 2), f(3, 3)]) -> InvalidType
F.permutate(f(3), numpy.array([0, 1], 'i')) -> float32 (2,)
F.permutate(f(3), numpy.array([0, 1, 3], 'i')) -> IndexError
F.permutate(f(3), numpy.array([0, 1, 1], 'i')) -> float32 (3,)
F.permutate(f(3), f(3)) -> ValueError
F.permutate(f(3), numpy.array([0, 1, 2], 'i'), axis=1) -> InvalidType
F.where(f(2), f(2), f(2)) -> InvalidType
F.where(f(2) > 0, f(2), d(2)) -> InvalidType
F.where(f(2) > 0, f(3), f(2)) -> InvalidType
F.where(i(2), f(2), f(2)) -> InvalidType
F.cast(f(2), 'foo') -> TypeError
F.cast(f(2), 'i') -> int32 (2,)
F.cast(i(2), 'f') -> float32 (2,)
F.select_item(f(2, 3), i(3)) -> InvalidType
F.select_item(f(2, 3), f(2)) -> InvalidType
F.select_item(f(2), i(2)) -> InvalidType
F.select_item(f(2, 3), i(2) + 5) -> IndexError
F.get_item(f(2), 5) -> IndexError
F.scatter_add(f(4), slice(0, 2), f(3)) -> ValueError
F.scatter_add(f(4), slice(0, 2), d(2)) -> float32 (4,)
F.scatter_add({}, (), f(3)) -> TypeError
F.scatter_add(f(3), (), [1.0, 2.0, 3.0]) -> TypeError
F.transpose_sequence([f(2, 3), f(3, 3)]) -> InvalidType
F.transpose_sequence([f(2, 3), d(1, 3)]) -> float32 (2, 3); float32 (1, 3)
F.im2col(f(2, 3, 4), 2) -> InvalidType
F.im2col(f(2, 3, 4, 4), 9) -> AssertionError | InvalidType
F.resize_images(f(2, 3, 4), (2, 2)) -> InvalidType
F.resize_images(f(2, 3, 4, 4), (2,)) -> IndexError | ValueError
F.resize_images(f(2, 3, 4, 4), (2, 2), mode='foo') -> AssertionError | ValueError
F.resize_images(i(2, 3, 4, 4), (2, 2)) -> InvalidType
F.space2depth(f(2, 3, 5, 4), 2) -> ValueError
F.depth2space(f(2, 3, 4, 4), 2) -> ValueError
F.depth2space(f(2, 4), 2) -> InvalidType
F.spatial_transformer_grid(f(2, 3, 3), (2, 2)) -> InvalidType
F.spatial_transformer_sampler(f(2, 3, 4, 4), f(2, 3, 2, 2)) -> InvalidType
F.spatial_transformer_sampler(f(2, 3, 4, 4), d(2, 2, 2, 2)) -> InvalidType
F.as_strided(f(4), (3,), (2,)) -> ValueError
F.sum_to(f(2, 3), (2, 2)) -> float32 (2, 3) | InvalidType
F.sum_to(f(2, 3), (3,)) -> float32 (3,)
F.sum_to(f(0, 1), (0, 3)) -> float32 (0, 1) | InvalidType
F.accuracy(f(2, 3), i(3)) -> InvalidType
F.accuracy(f(2, 3), f(2)) -> InvalidType
F.accuracy(i(2, 3), i(2)) -> InvalidType
F.accuracy(f(2, 3, 2), i(2)) -> InvalidType
F.binary_accuracy(f(2), i(3)) -> InvalidType
F.binary_accuracy(f(2), f(2)) -> InvalidType
F.r2_score(f(2), f(3)) -> InvalidType
F.r2_score(f(4), f(4), multioutput='foo') -> ValueError
F.r2_score(f(4), f(4), sample_weight=f(4)) -> NotImplementedError
F.precision(f(2, 3), i(3)) -> InvalidType
F.precision(f(2, 3), f(2)) -> InvalidType
F.f1_score(i(2, 3), i(2)) -> InvalidType
F.softmax_cross_entropy(f(2, 3), i(3)) -> RuntimeError | InvalidType
F.softmax_cross_entropy(f(2, 3), f(2)) -> RuntimeError | InvalidType
F.softmax_cross_entropy(f(2, 3), f(2, 3)) -> float32 ()
F.softmax_cross_entropy(i(2, 3), i(2)) -> RuntimeError | InvalidType
F.softmax_cross_entropy(f(2, 3), i(2, 1)) -> RuntimeError | InvalidType
F.softmax_cross_entropy(f(2, 3), i(2), reduce='foo') -> ValueError
F.softmax_cross_entropy(f(2, 3), i(2), class_weight=f(2)) -> ValueError | InvalidType
F.softmax_cross_entropy(f(2, 3), i(2), class_weight=d(3)) -> float32 ()
F.softmax_cross_entropy(f(2, 3), i(2), class_weight=[1, 1, 1]) -> AttributeError | ValueError
F.softmax_cross_entropy(f(2, 3), i(2), class_weight=V(f(3))) -> ValueError
F.softmax_cross_entropy(f(2, 3), l(2)) -> float32 ()
F.softmax_cross_entropy(h(2, 3), i(2)) -> float16 ()
F.sigmoid_cross_entropy(f(2, 3), i(2)) -> InvalidType
F.sigmoid_cross_entropy(f(2, 3), f(2, 3)) -> InvalidType
F.sigmoid_cross_entropy(f(2, 3), i(2, 3), reduce='foo') -> ValueError
F.mean_squared_error(f(2), f(3)) -> InvalidType
F.mean_squared_error(f(2), d(2)) -> InvalidType
F.mean_squared_error(i(2), i(2)) -> InvalidType
F.mean_absolute_error(f(2), d(2)) -> InvalidType
F.mean_absolute_error(i(2), i(2)) -> InvalidType
F.squared_error(f(2), d(2)) -> InvalidType
F.squared_error(f(2), f(2, 1)) -> InvalidType
F.absolute_error(f(2), d(2)) -> InvalidType
F.absolute_error(i(2), i(2)) -> InvalidType
F.huber_loss(f(2, 3), f(2, 3), 1, reduce='foo') -> ValueError
F.huber_loss(f(2, 3), d(2, 3), 1) -> InvalidType
F.huber_loss(f(2, 3), f(2, 4), 1) -> InvalidType
F.hinge(f(2, 3), i(2), norm='L3') -> NotImplementedError
F.hinge(f(2, 3), i(3)) -> InvalidType
F.hinge(f(2, 3), f(2)) -> InvalidType
F.hinge(f(2, 3), i(2), reduce='foo') -> ValueError
F.contrastive(f(2, 3), f(2, 3), i(3)) -> InvalidType
F.contrastive(f(2, 3), f(2, 3), i(2), margin=-1) -> ValueError
F.contrastive(f(2, 3), d(2, 3), i(2)) -> InvalidType
F.contrastive(f(2, 3), f(2, 3), i(2), reduce='foo') -> ValueError
F.triplet(f(2, 3), f(2, 3), f(2, 4)) -> InvalidType
F.triplet(f(2, 3), f(2, 3), f(2, 3), margin=-1) -> ValueError
F.triplet(f(2, 3), f(2, 3), d(2, 3)) -> InvalidType
F.cross_covariance(f(2, 3), f(3, 3)) -> InvalidType
F.cross_covariance(f(2, 3), f(2, 3), reduce='foo') -> ValueError
F.decov(f(2, 3, 4)) -> InvalidType
F.decov(f(2, 3), reduce='foo') -> ValueError
F.decov(i(2, 3)) -> InvalidType
F.bernoulli_nll(f(2), f(2), reduce='foo') -> ValueError
F.bernoulli_nll(f(2), f(3)) -> ValueError | InvalidType
F.gaussian_kl_divergence(f(2), f(2), reduce='foo') -> ValueError
F.gaussian_nll(f(2), f(2), f(3)) -> InvalidType
F.gaussian_nll(f(2), f(2), f(2), reduce='foo') -> ValueError
F.crf1d(f(3, 3), [f(2, 3)], [i(2)], reduce='foo') -> ValueError
F.crf1d(f(3, 3), [f(2, 3)], [f(2)]) -> InvalidType
F.connectionist_temporal_classification(f(4, 2, 3), i(2, 2), 0) -> TypeError
F.connectionist_temporal_classification([f(2, 3)] * 4, i(2, 2), 9) -> AssertionError | ValueError
F.connectionist_temporal_classification([f(2, 3)] * 4, i(2, 2), '0') -> TypeError
F.connectionist_temporal_classification([f(2, 3)] * 4, f(2, 2), 0) -> InvalidType
F.connectionist_temporal_classification([f(2, 3)] * 4, i(3, 2), 0) -> InvalidType
F.connectionist_temporal_classification([f(2, 3)] * 4, i(2, 2), 0, reduce='foo') -> ValueError
F.negative_sampling(f(2, 3), i(2), f(4, 3), lambda s: i(*s), 2, reduce='mean') -> ValueError
F.negative_sampling(f(2, 3), f(2), f(4, 3), lambda s: i(*s), 2) -> InvalidType
F.negative_sampling(f(2, 3), i(3), f(4, 3), lambda s: i(*s), 2) -> InvalidType
F.negative_sampling(f(2, 3), i(2), f(4, 2), lambda s: i(*s), 2) -> ValueError | InvalidType
F.black_out(f(2, 3), i(2), f(4, 3), i(2, 2), reduce='foo') -> float32 (2,) | ValueError
F.batch_normalization(f(4, 3), f(2), f(3)) -> InvalidType
F.batch_normalization(f(4, 3), f(3), f(2)) -> InvalidType
F.batch_normalization(i(4, 3), f(3), f(3)) -> InvalidType
F.batch_normalization(f(4, 3), d(3), d(3)) -> float32 (4, 3)
F.batch_normalization(h(4, 3), f(3), f(3)) -> float16 (4, 3)
F.batch_normalization(f(4, 3), f(3), d(3)) -> InvalidType
F.batch_normalization(f(4, 3), f(3), f(3), axis=2) -> InvalidType
F.batch_normalization(f(4, 3), f(3), f(3), axis=1.5) -> RuntimeError | TypeError
F.batch_normalization(f(4, 3), f(3), f(3), foo=1) -> TypeError
F.batch_normalization(f(4, 3), f(3), f(3), axis=(0, 0)) -> RuntimeError | ValueError
F.fixed_batch_normalization(f(4, 3), f(3), f(3), f(2), f(3)) -> InvalidType
F.batch_renormalization(f(4, 3), f(3), f(3), 1, 1) -> TypeError
F.batch_renormalization(f(4, 3), f(3), f(3), 0, 1, running_mean=f(3), running_var=f(3)) -> ZeroDivisionError | ValueError
F.roi_average_pooling_2d(f(1, 1, 4, 7), f(1, 4), i(1), 2**62, 0.5) -> MemoryError
F.batch_renormalization(f(4, 3), f(2), f(3), 1, 1, running_mean=f(3), running_var=f(3)) -> InvalidType
F.layer_normalization(f(4, 3), f(2), f(3)) -> InvalidType
F.layer_normalization(f(4, 3, 2), f(3), f(3)) -> InvalidType
F.layer_normalization(f(4, 3), d(3), d(3)) -> InvalidType
F.group_normalization(f(4, 3), 2, f(3), f(3)) -> ValueError
F.group_normalization(f(4, 4), 2.0, f(4), f(4)) -> TypeError
F.group_normalization(f(4, 4), 2, f(3), f(4)) -> InvalidType
F.decorrelated_batch_normalization(f(4, 3), groups=2) -> InvalidType
F.normalize(f(4, 3), axis=5) -> AxisError | InvalidType
F.normalize(i(4, 3)) -> InvalidType
F.local_response_normalization(i(2, 3, 4, 4)) -> InvalidType
F.local_response_normalization(f(3)) -> InvalidType
F.dropout(f(2), 1.5) -> ValueError
F.dropout(f(2), -1) -> ValueError
F.dropout(i(2), .5) -> InvalidType
F.dropout(f(2), .5, mask=f(3)) -> ValueError | InvalidType
F.dropout(f(2), .5, train=False) -> ValueError
F.dropout(f(2), .5, foo=False) -> TypeError
F.gaussian(f(2), f(3)) -> InvalidType
F.gaussian(f(2), d(2)) -> InvalidType
F.gaussian(i(2), i(2)) -> InvalidType
F.gumbel_softmax(f(2, 3), axis=4) -> RuntimeError | InvalidType
F.simplified_dropconnect(f(2, 3), f(4, 4)) -> InvalidType
F.simplified_dropconnect(f(2, 3), f(4, 3), ratio=2) -> float32 (2, 4) | ValueError
F.zoneout(f(2), f(3)) -> ValueError | InvalidType
F.zoneout(f(2), d(2)) -> float64 (2,)
F.fft(f(3)) -> ValueError
F.fft((f(2), f(3))) -> InvalidType
F.fft((i(2), i(2))) -> InvalidType
F.inv(f(2, 3)) -> InvalidType
F.inv(f(2, 2, 2)) -> InvalidType
F.inv(f(2, 2) * 0) -> ValueError
F.batch_inv(f(2, 2)) -> InvalidType
F.det(f(2, 3)) -> InvalidType
F.det(i(2, 2)) -> InvalidType
F.batch_det(f(2, 2)) -> InvalidType
F.cholesky(f(2, 3)) -> LinAlgError | InvalidType
F.cholesky(i(2, 2)) -> InvalidType
F.bias(f(2, 3), f(2), axis=1) -> InvalidType
F.bias(f(2, 3), f(3), axis=2) -> InvalidType
F.scale(f(2, 3), f(2), axis=1) -> InvalidType
F.scale(f(2, 3), d(3)) -> float64 (2, 3) | InvalidType
F.identity() -> nothing
F.linear_interpolate(f(2), f(2), f(3)) -> InvalidType
F.linear_interpolate(f(2), d(2), f(2)) -> InvalidType
F.squared_difference(f(2), f(3)) -> InvalidType
F.squared_difference(f(2), d(2)) -> InvalidType
F.batch_l2_norm_squared(f(2)) -> InvalidType
F.batch_l2_norm_squared(i(2, 2)) -> InvalidType
F.sparse_matmul(f(2, 2), f(2, 2)) -> ValueError
F.forget(3, f(2)) -> TypeError
F.forget(lambda x: 3, f(2)) -> RuntimeError
F.n_step_lstm(1, 0., f(1, 2, 3), f(1, 2, 3), [[f(3, 3)] * 7], [[f(3)] * 8], [f(2, 3)]) -> IndexError | InvalidType
F.n_step_lstm(1, 0., f(1, 2, 3), f(1, 2, 3), [[f(3, 3)] * 8], [[f(3)] * 8], [d(2, 3)]) -> InvalidType
F.n_step_lstm(1, 0., f(1, 2, 3), f(1, 2, 3), [[f(3, 3)] * 8], [[f(3)] * 8], [f(2, 3)], a=1) -> TypeError
F.n_step_rnn(1, 0., f(1, 2, 3), [[f(3, 3)] * 2], [[f(3)] * 2], [f(2, 3)], 'foo') -> ValueError
F.n_step_gru(1, 0., f(1, 2, 3), [[f(3, 2)] * 6], [[f(3)] * 6], [f(2, 3)]) -> InvalidType
"""


def namespace(functions: Any, variable: Any) -> dict[str, Any]:
    """The names in the calls."""

    def maker(dtype: str) -> Any:
        def make(*shape: Any) -> numpy.ndarray:
            extents = () if shape == ((),) else shape
            size = int(numpy.prod(extents))
            return (numpy.arange(size) % 4).reshape(extents).astype(dtype)

        return make

    makers = {name: maker(dtype) for name, dtype in zip("hfdil", "efdiq")}
    return {"F": functions, "V": variable, "numpy": numpy, **makers}


def outcome(call: str, names: dict[str, Any]) -> str:
    """The error's name, or the dtypes and shapes of the results."""
    try:
        given = eval(call, dict(names))
    except Exception as error:
        name = type(error).__name__
        return "IndexError" if name == "IndexOutOfRange" else name
    parts = given if isinstance(given, (tuple, list)) else (given,)
    shown = [
        f"{part.dtype} {part.shape}" if hasattr(part, "dtype") else type(part).__name__
        for part in parts
    ]
    return "; ".join(shown) or "nothing"


def table(cases: str = CASES) -> list[tuple[str, str]]:
    """Calls with what is expected of renga."""
    rows = []
    for line in cases.strip().split("\n"):
        call, _, outcomes = line.partition(" -> ")
        rows.append((call, outcomes.rpartition(" | ")[2]))
    return rows


if __name__ == "__main__":
    import chainer

    known = namespace(chainer.functions, chainer.Variable)
    for line in CASES.strip().split("\n"):
        call = line.partition(" -> ")[0]
        print(f"{call} -> {outcome(call, known)}")
