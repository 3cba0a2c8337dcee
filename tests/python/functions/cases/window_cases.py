# ruff: noqa: E501
"""Calls of poolings and other functions on images with odd windows and sizes.

One row for each call: the error's name, or the dtypes and shapes of the results.
"""

CASES = r"""
F.max_pooling_2d(f(1, 1, 4, 4), 0) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), -1) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 0) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, -1) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 1, -1) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 1, 2**62) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 1, 2**40) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 2**62, 2**62) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 2**40, 2**40) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 2**62) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, 2**62, cover_all=False) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2**62) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2**40) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2**31) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2**14) -> float32 (1, 1, 1, 1)
F.max_pooling_2d(f(1, 1, 4, 4), (1, 2**31), 1, (0, 2**30)) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2**64) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2**62, 1, 2**61) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2**32, 2**32, 2**31) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 5, 1, 0, False) -> InvalidType
F.max_pooling_2d(f(1, 1, 4, 4), 2.5) -> TypeError
F.max_pooling_2d(f(1, 1, 4, 4), '2') -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), None) -> TypeError
F.max_pooling_2d(f(1, 1, 4, 4), (2,)) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), (2, 2, 2)) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), numpy.array([2, 2])) -> float32 (1, 1, 2, 2)
F.max_pooling_2d(f(1, 1, 4, 4), numpy.int64(2)) -> float32 (1, 1, 2, 2)
F.max_pooling_2d(f(1, 1, 4, 4), True) -> float32 (1, 1, 4, 4)
F.max_pooling_2d(f(0, 1, 4, 4), 2, 1, 2**40) -> ValueError
F.max_pooling_2d(f(1, 1, 0, 0), 2) -> InvalidType
F.average_pooling_2d(f(1, 1, 4, 4), 0) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2, 0) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2, 1, -1) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2, 1, 2**62) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2, 2**62, 2**62) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2**40, 2**40, 2**40) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2**20, 2**20, 2**20) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2**62, 2**62, 2**61) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2**32, 2**32, 2**31) -> ValueError
F.average_pooling_2d(f(1, 1, 4, 4), 2**64) -> ValueError
F.average_pooling_nd(f(1, 1, 4, 4), 0) -> ValueError
F.average_pooling_nd(f(1, 1, 4, 4), 2, 0) -> ValueError
F.average_pooling_nd(f(1, 1, 4, 4, 4), 2, 0) -> ValueError
F.average_pooling_nd(f(1, 1, 4, 4, 4), 2, 1, 2**62) -> ValueError
F.average_pooling_nd(f(1, 1, 4, 4, 4), 2, 1, 2**20, None) -> MemoryError
F.average_pooling_nd(f(1, 1, 4, 4, 4), 2**64) -> ValueError
F.average_pooling_1d(f(1, 1, 4), 2, 1, 2**40) -> ValueError
F.average_pooling_1d(f(1, 1, 4), 2, 1, -1, None) -> ValueError
F.average_pooling_1d(f(1, 1, 4), 2, 2**62, 2**62, None) -> ValueError
F.average_pooling_1d(f(1, 1, 4), 1, 1, 1, None) -> float32 (1, 1, 6)
F.average_pooling_1d(f(1, 1, 4), 2, 1, 0, 1) -> ValueError
F.max_pooling_nd(f(1, 1, 4, 4, 4), 0) -> ValueError
F.max_pooling_nd(f(1, 1, 4, 4, 4), 2, 0) -> ValueError
F.max_pooling_nd(f(1, 1, 4, 4, 4), 2, 0, return_indices=True) -> ValueError
F.max_pooling_nd(f(1, 1, 4, 4, 4), 2, 1, 2**40) -> ValueError
F.max_pooling_nd(f(1, 1, 4, 4, 4), 2**40, return_indices=True) -> ValueError
F.max_pooling_nd(f(1, 1, 4, 4, 4), 2**15, return_indices=True) -> float32 (1, 1, 1, 1, 1); int64 (1, 1, 1, 1, 1)
F.max_pooling_nd(f(1, 1, 4, 4, 4), 2**12, return_indices=True) -> float32 (1, 1, 1, 1, 1); int64 (1, 1, 1, 1, 1)
F.max_pooling_nd(f(1, 1, 4, 4, 4), (2, 2)) -> AssertionError
F.max_pooling_nd(f(1, 1, 4, 4, 4), 'abc') -> TypeError
F.max_pooling_1d(f(1, 1, 4), 2**64) -> ValueError
F.max_pooling_1d(f(1, 1, 4), 2**40) -> ValueError
F.max_pooling_1d(f(1, 1, 4), 2, -2**64) -> ValueError
F.max_pooling_2d(f(1, 1, 4, 4), 2, return_indices=True) -> float32 (1, 1, 2, 2); int64 (1, 1, 2, 2)
F.unpooling_2d(f(1, 1, 2, 2), 0) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), -1) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, 0) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, -1) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, -1) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 5) -> float32 (1, 1, 0, 0)
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 1, (2, 2)) -> float32 (1, 1, 2, 2)
F.unpooling_2d(f(1, 1, 2, 2), 2**64) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2**40) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, 2**40) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 0, (2**40, 2**40)) -> InvalidType
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 0, (-4, -4)) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 0, (0, 0)) -> ValueError
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 0, (4.0, 4.0)) -> TypeError
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 0, 4) -> float32 (1, 1, 4, 4)
F.unpooling_2d(f(1, 1, 2, 2), 2, 2, 0, 'ab') -> TypeError
F.unpooling_2d(f(1, 1, 2, 2), 1.5) -> TypeError
F.unpooling_2d(f(1, 1, 2, 2), 2**62, 2**62, 2**62, (4, 4)) -> ValueError
F.unpooling_nd(f(1, 1, 2), 2, 2**62) -> ValueError
F.unpooling_1d(f(1, 1, 2), 0) -> ValueError
F.unpooling_1d(f(1, 1, 1), 2**33) -> ValueError
F.unpooling_3d(f(1, 1, 2, 2, 2), 2**62) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 0) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), -2) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 0) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, -1) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, -1) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 2**40) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 2**64) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2**64) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2**40) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2**40) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, (2**40, 2**40)) -> InvalidType
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, (-4, -4)) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, (-8, -8)) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, (0, 0)) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, 4) -> float32 (1, 1, 4, 4)
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, (4,)) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, (4, 4, 4)) -> ValueError
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2.0) -> TypeError
F.upsampling_2d(f(1, 1, 2, 2), f(1, 1, 2, 2), 2) -> InvalidType
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 2), 2, 2, 0, (4.0, 4.0)) -> TypeError
F.im2col(f(1, 1, 4, 4), 0) -> ValueError
F.im2col(f(1, 1, 4, 4), -1) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 0) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, -1) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 1, -1) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 1, 2**40) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 1, 2**62) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 1, 2**64) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 2**62, 2**61) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 2**64) -> ValueError
F.im2col(f(1, 1, 4, 4), 2**40) -> ValueError
F.im2col(f(1, 1, 4, 4), 2**40, 1, 2**40) -> ValueError
F.im2col(f(1, 1, 4, 4), 2**14, 1, 2**14) -> MemoryError
F.im2col(f(1, 1, 4, 4), 2**64) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, dilate=0) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, dilate=-1) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, dilate=2**62) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, dilate=2**64) -> ValueError
F.im2col(f(1, 1, 4, 4), 2, 2**40, 0, True) -> ValueError
F.im2col(f(1, 1, 4, 4), 5) -> InvalidType
F.im2col(f(1, 1, 4, 4), 2.0) -> TypeError
F.im2col(f(1, 1, 4, 4), (2, 2, 2)) -> ValueError
F.im2col(f(1, 1, 4, 4), None) -> TypeError
F.im2col(f(0, 1, 4, 4), 2) -> float32 (0, 4, 3, 3)
F.im2col(f(0, 1, 4, 4), 2, 1, 2**40) -> ValueError
F.shift(f(1, 9, 4, 4), 0) -> ValueError
F.shift(f(1, 9, 4, 4), 1) -> float32 (1, 9, 4, 4)
F.shift(f(1, 9, 4, 4), -1) -> ValueError
F.shift(f(1, 9, 4, 4), -3) -> ValueError
F.shift(f(1, 9, 4, 4), 2**64 + 1) -> ValueError
F.shift(f(1, 9, 4, 4), 3, 2**64) -> ValueError
F.shift(f(1, 9, 4, 4), 3, 2**62) -> ValueError
F.shift(f(1, 9, 4, 4), 3, 0) -> ValueError
F.shift(f(1, 9, 4, 4), 3, -1) -> ValueError
F.shift(f(1, 9, 4, 4), 3.0) -> TypeError
F.shift(f(1, 9, 4, 4), 3, 1.5) -> TypeError
F.space2depth(f(1, 4, 4, 4), 0) -> ValueError
F.space2depth(f(1, 4, 4, 4), -2) -> ValueError
F.space2depth(f(1, 4, 4, 4), 2**64) -> ValueError
F.space2depth(f(1, 4, 4, 4), 2.0) -> TypeError
F.space2depth(f(1, 4, 4, 4), None) -> TypeError
F.space2depth(f(1, 4, 4, 4), '2') -> TypeError
F.space2depth(f(1, 4, 4, 4), True) -> float32 (1, 4, 4, 4)
F.space2depth(f(1, 4, 4, 4), numpy.int64(2)) -> float32 (1, 16, 2, 2)
F.space2depth(f(1, 4, 0, 0), 2**62) -> MemoryError
F.depth2space(f(1, 4, 4, 4), 0) -> ValueError
F.depth2space(f(1, 4, 4, 4), -2) -> ValueError
F.depth2space(f(1, 4, 4, 4), 2**64) -> ValueError
F.depth2space(f(1, 4, 4, 4), 2.0) -> TypeError
F.depth2space(f(1, 4, 4, 4), None) -> TypeError
F.depth2space(f(1, 0, 4, 4), 2**62) -> MemoryError
F.depth2space(f(1, 0, 4, 4), 2**64) -> MemoryError
F.depth2space(f(1, 0, 4, 4), 2) -> float32 (1, 0, 8, 8)
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), 0, 'max') -> ValueError
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), -1, 'max') -> ValueError
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), 2**62, 'max') -> MemoryError
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), 40, 'max') -> MemoryError
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), 5, 'max') -> float32 (1, 341, 1, 1)
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), 1.5, 'max') -> TypeError
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), None, 'max') -> TypeError
F.spatial_pyramid_pooling_2d(f(1, 1, 4, 4), '2', 'max') -> TypeError
F.spatial_pyramid_pooling_2d(f(1, 1, 0, 0), 2, 'max') -> InvalidType
F.maxout(f(2, 4), 0) -> ValueError
F.maxout(f(2, 4), -1) -> ValueError
F.maxout(f(2, 4), 2**64) -> InvalidType
F.maxout(f(2, 4), 2.0) -> TypeError
F.maxout(f(2, 4), None) -> TypeError
F.maxout(f(2, 4), 2, 2**64) -> InvalidType
F.maxout(f(2, 0), 2**62) -> MemoryError
F.maxout(f(2, 0), 2) -> float32 (2, 0)
F.maxout(f(2, 4), '2') -> TypeError
F.resize_images(f(1, 1, 4, 4), (0, 0)) -> float32 (1, 1, 0, 0)
F.resize_images(f(1, 1, 4, 4), (-1, 2)) -> ValueError
F.resize_images(f(1, 1, 4, 4), (2**40, 2)) -> MemoryError
F.resize_images(f(1, 1, 4, 4), (2**62, 2)) -> MemoryError
F.resize_images(f(1, 1, 4, 4), (2**64, 2)) -> MemoryError
F.resize_images(f(1, 1, 4, 4), (2.0, 2)) -> TypeError
F.resize_images(f(1, 1, 4, 4), (2.5, 2)) -> TypeError
F.resize_images(f(1, 1, 4, 4), ('a', 2)) -> TypeError
F.resize_images(f(1, 1, 4, 4), 2) -> TypeError
F.resize_images(f(1, 1, 4, 4), None) -> TypeError
F.resize_images(f(1, 1, 4, 4), (2, 2, 2)) -> ValueError
F.resize_images(f(1, 1, 0, 0), (2, 2)) -> InvalidType
F.resize_images(f(1, 1, 4, 4), (-1, 2), mode='nearest') -> ValueError
F.resize_images(f(1, 1, 4, 4), (0, 2), mode='nearest') -> float32 (1, 1, 0, 2)
F.resize_images(f(1, 1, 4, 4), (0, 2), align_corners=False) -> float32 (1, 1, 0, 2)
F.resize_images(f(1, 1, 4, 4), (2**40, 2), mode='nearest') -> MemoryError
F.resize_images(f(1, 1, 4, 4), (numpy.int64(2), 2)) -> float32 (1, 1, 2, 2)
F.spatial_transformer_grid(f(1, 2, 3), (-1, 2)) -> ValueError
F.spatial_transformer_grid(f(1, 2, 3), (0, 2)) -> float32 (1, 2, 0, 2)
F.spatial_transformer_grid(f(1, 2, 3), (2**40, 2)) -> MemoryError
F.spatial_transformer_grid(f(1, 2, 3), (2**64, 2)) -> MemoryError
F.spatial_transformer_grid(f(1, 2, 3), (2**20, 2**20)) -> MemoryError
F.spatial_transformer_grid(f(1, 2, 3), (2.0, 2)) -> TypeError
F.spatial_transformer_grid(f(1, 2, 3), 2) -> TypeError
F.spatial_transformer_grid(f(1, 2, 3), (2, 2, 2)) -> ValueError
"""
