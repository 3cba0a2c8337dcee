# ruff: noqa: E501
"""Calls of functions on shapes and axes with odd extents, axes and indices.

One row for each call: the error's name, or the dtypes and shapes of the results.
"""

CASES = r"""
F.reshape(f(2, 3), (-2, -3)) -> ValueError
F.reshape(f(2, 3), (-6,)) -> ValueError
F.reshape(f(2, 3), (-2, 3)) -> ValueError
F.reshape(f(2, 3), (-1, -6)) -> ValueError
F.reshape(f(2, 3), (-3, -1)) -> ValueError
F.reshape(f(2, 3), (2**32, 2**32)) -> InvalidType
F.reshape(f(0, 3), (2**32, 2**32)) -> InvalidType
F.reshape(f(0, 3), (0, 2**62, 2**62)) -> MemoryError
F.reshape(f(0, 3), (0, -1)) -> InvalidType
F.reshape(f(0, 3), (-1, 5)) -> float32 (0, 5)
F.reshape(f(2, 3), (2**63,)) -> InvalidType
F.reshape(f(2, 3), (2**64 + 6,)) -> InvalidType
F.reshape(f(2, 3), (-2**64,)) -> ValueError
F.reshape(f(2, 3), 2**64 + 6) -> InvalidType
F.reshape(f(2, 3), None) -> TypeError
F.reshape(f(2, 3), '6') -> TypeError
F.reshape(f(2, 3), '') -> TypeError
F.reshape(f(2, 3), (2.0, 3.0)) -> TypeError
F.reshape(f(2, 3), 6.0) -> TypeError
F.reshape(f(2, 3), (n for n in (2, 3))) -> TypeError
F.reshape(f(2, 3), ((2, 3),)) -> TypeError
F.reshape(f(2, 3), numpy.array([3, 2])) -> float32 (3, 2)
F.reshape(f(2, 3), numpy.array([3., 2.])) -> TypeError
F.reshape(f(2, 3), numpy.array(6)) -> float32 (6,)
F.reshape(f(2, 3), numpy.int64(6)) -> float32 (6,)
F.reshape(f(2, 3), numpy.float64(6)) -> TypeError
F.reshape(f(2, 3), (numpy.int8(3), numpy.uint64(2))) -> float32 (3, 2)
F.reshape(f(2, 3), (True, 6)) -> float32 (1, 6)
F.reshape(f(2, 3), [3, 2]) -> float32 (3, 2)
F.reshape(f(2, 3), {3, 2}) -> TypeError
F.reshape(f(2, 3), {3: 2, 2: 1}) -> TypeError
F.reshape(f(2, 3), b'\x03\x02') -> TypeError
F.reshape(f(1), (1,) * 16) -> float32 (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
F.reshape(f(1), (1,) * 17) -> ValueError
F.reshape(f(1), (1,) * 65) -> ValueError
F.reshape(f(()), ()) -> float32 ()
F.reshape(f(2, 3), ()) -> InvalidType
V(f(2, 3)).reshape(-2, -3) -> ValueError
V(f(2, 3)).reshape(2**32, 2**32) -> InvalidType
V(f(2, 3)).reshape((3, 2)) -> float32 (3, 2)
V(f(2, 3)).reshape() -> InvalidType
V(f(2, 3)).reshape(2.0, 3) -> TypeError
V(f(2, 3)).transpose(2**64, 0) -> InvalidType
V(f(2, 3)).transpose(0, 0) -> ValueError
V(f(2, 3)).transpose(-1, -1) -> ValueError
V(f(2, 3)).transpose(1.0, 0) -> TypeError
F.broadcast_to(f(1), (-3,)) -> ValueError
F.broadcast_to(f(1), (2, -3)) -> ValueError
F.broadcast_to(f(()), (-3,)) -> ValueError
F.broadcast_to(f(()), (-1,)) -> ValueError
F.broadcast_to(f(1), (2**62, 2**62)) -> MemoryError
F.broadcast_to(f(1), (2**63,)) -> MemoryError
F.broadcast_to(f(1), (2**33, 2**33)) -> MemoryError
F.broadcast_to(f(1), (0, 2**62, 2**62)) -> MemoryError
F.broadcast_to(f(1), 2**40) -> float32 (1099511627776,)
F.broadcast_to(f(1), 3) -> float32 (3,)
F.broadcast_to(f(2), (0,)) -> InvalidType
F.broadcast_to(f(1), 3.0) -> TypeError
F.broadcast_to(f(1), (1,) * 17) -> ValueError
F.broadcast_to(f(1), None) -> TypeError
F.broadcast_to(f(1), 'a') -> TypeError
F.sum_to(f(2, 3), (-3,)) -> InvalidType
F.sum_to(f(2, 3), (2**64,)) -> InvalidType
F.sum_to(f(2, 3), (-1, 3)) -> InvalidType
F.tile(f(2), 2**62) -> MemoryError
F.tile(f(2), 2**64) -> MemoryError
F.tile(f(2), (2**31, 2**31, 2**31)) -> MemoryError
F.tile(f(2), 2**40) -> MemoryError
F.tile(f(2), (2**40, 0)) -> float32 (1099511627776, 0)
F.tile(f(0), 2**62) -> MemoryError
F.tile(f(2), -2**64) -> ValueError
F.tile(f(2), 0) -> float32 (0,)
F.tile(f(2), 2.0) -> TypeError
F.tile(f(2), True) -> float32 (2,)
F.tile(f(2), [2, 2]) -> TypeError
F.tile(f(2), numpy.int64(2)) -> float32 (4,)
F.tile(f(2), numpy.array([2, 2])) -> TypeError
F.tile(f(2), (2.0, 1)) -> TypeError
F.tile(f(2), ()) -> float32 (2,)
F.tile(f(2), None) -> TypeError
F.tile(f(1), (1,) * 17) -> ValueError
F.repeat(f(2), 2**62) -> MemoryError
F.repeat(f(2), 2**64) -> MemoryError
F.repeat(f(2), 2**40) -> MemoryError
F.repeat(f(2), (2**62, 2**62)) -> MemoryError
F.repeat(f(2), (2**40, 2**40)) -> MemoryError
F.repeat(f(2), (2**64, 1)) -> MemoryError
F.repeat(f(2, 2), 2**61, axis=0) -> MemoryError
F.repeat(f(2), 0) -> float32 (0,)
F.repeat(f(0), 2**62) -> MemoryError
F.repeat(f(2), 2.5) -> TypeError
F.repeat(f(2), numpy.int64(2)) -> float32 (4,)
F.repeat(f(2), numpy.array([1, 2])) -> TypeError
F.repeat(f(2), [1, 2]) -> TypeError
F.repeat(f(2), (1, 2), axis=2**64) -> InvalidType
F.repeat(f(2), 2, axis=-2) -> InvalidType
F.repeat(f(2), ()) -> ValueError
F.repeat(f(2), None) -> TypeError
F.pad(f(2), 2**62, 'constant') -> MemoryError
F.pad(f(2), 2**63, 'constant') -> MemoryError
F.pad(f(2), 2**64, 'constant') -> MemoryError
F.pad(f(2), (2**62, 2**62), 'constant') -> MemoryError
F.pad(f(2), (2**62, -2**62), 'constant') -> ValueError
F.pad(f(2), 2**61, 'constant') -> MemoryError
F.pad(f(2, 2), 2**32, 'constant') -> MemoryError
F.pad(f(2, 2), 2**31, 'constant') -> MemoryError
F.pad(f(2), 2**40, 'constant') -> MemoryError
F.pad(f(2), 2**40, 'edge') -> MemoryError
F.pad(f(2), 2**62, 'edge') -> MemoryError
F.pad(f(2), 2**64, 'edge') -> MemoryError
F.pad(f(2), 2**62, 'wrap') -> MemoryError
F.pad(f(2), -1, 'edge') -> ValueError
F.pad(f(2), 1.5, 'edge') -> TypeError
F.pad(f(2), 1.0, 'constant') -> TypeError
F.pad(f(2), 'a', 'constant') -> TypeError
F.pad(f(2), None, 'constant') -> TypeError
F.pad(f(2), True, 'constant') -> float32 (4,)
F.pad(f(2), (1, 2, 3), 'constant') -> ValueError
F.pad(f(2), ((1, 2), (3, 4)), 'edge') -> ValueError
F.pad(f(0), 1, 'edge') -> ValueError
F.pad(f(0), 1, 'constant') -> float32 (2,)
F.pad(f(2), (), 'constant') -> TypeError
F.pad(f(2), {}, 'constant') -> TypeError
F.pad(f(2), [[1], [1, 2]], 'constant') -> TypeError
F.pad(f(2), 1, 'constant', constant_values='a') -> ValueError
F.pad(f(2), 1, 'constant', constant_values=(1, 2)) -> float32 (4,)
F.pad(f(2), 1, 'constant', constant_values=(1, 2, 3)) -> ValueError
F.pad(f(2), 2**40, 'constant', constant_values=(1, 2)) -> MemoryError
F.pad(f(2), (0, 2**62), 'constant', constant_values=(1, 2)) -> MemoryError
F.pad(f(2), (0, 2**64), 'constant', constant_values=(1, 2)) -> MemoryError
F.pad(f(2), 1, None) -> ValueError
F.pad_sequence([f(2), f(3)], length=2**40) -> MemoryError
F.pad_sequence([f(2), f(3)], length=2**62) -> MemoryError
F.pad_sequence([f(2), f(3)], length=2**64) -> MemoryError
F.pad_sequence([f(2), f(3)], length=-1) -> InvalidType
F.pad_sequence([f(2), f(3)], length=4.5) -> TypeError
F.pad_sequence([f(2), f(3)], length='a') -> TypeError
F.pad_sequence([f(2), f(3)], length=numpy.int64(4)) -> float32 (2, 4)
F.pad_sequence([f(()), f(3)]) -> InvalidType
F.pad_sequence([]) -> InvalidType
F.pad_sequence([f(2), f(3)], padding='a') -> TypeError
F.concat([f(2, 3), f(2, 3)], axis=2**64) -> InvalidType
F.concat([f(2, 3), f(2, 3)], axis=-2**64) -> InvalidType
F.concat([f(2, 3), f(2, 3)], axis=1.0) -> TypeError
F.concat([f(2, 3), f(2, 3)], axis=None) -> TypeError
F.concat([f(2, 3), f(2, 3)], axis=numpy.int64(1)) -> float32 (2, 6)
F.concat([f(2, 3), f(2, 3)], axis=True) -> float32 (2, 6)
F.concat([f(2, 3), f(2, 3)], axis=(0,)) -> TypeError
F.concat([f(()), f(())], axis=0) -> InvalidType
F.concat([F.broadcast_to(f(1), 2**60)] * 8, axis=0) -> MemoryError
F.concat([F.broadcast_to(f(1), 2**60)] * 2, axis=0) -> MemoryError
F.concat([F.broadcast_to(f(1), 2**60)] * 16, axis=0) -> MemoryError
F.concat(f(2, 3)) -> InvalidType
F.concat((x for x in (f(2, 3), f(2, 3)))) -> float32 (2, 6)
F.stack([f(2), f(2)], axis=2**64) -> InvalidType
F.stack([f(2), f(2)], axis=-3) -> InvalidType
F.stack([f(2), f(2)], axis=0.5) -> TypeError
F.stack([F.broadcast_to(f(1), 2**60)] * 8) -> MemoryError
F.stack([F.reshape(f(1), (1,) * 16)] * 2) -> ValueError
F.expand_dims(f(2), 2**64) -> InvalidType
F.expand_dims(f(2), -2**64) -> InvalidType
F.expand_dims(f(2), 1.0) -> TypeError
F.expand_dims(f(2), None) -> TypeError
F.expand_dims(f(2), (0,)) -> TypeError
F.expand_dims(F.reshape(f(1), (1,) * 16), 0) -> ValueError
F.squeeze(f(1, 2), 2**64) -> InvalidType
F.squeeze(f(1, 2), (0, 2**64)) -> InvalidType
F.squeeze(f(1, 2), (0, -2)) -> ValueError
F.squeeze(f(1, 2), 0.0) -> TypeError
F.squeeze(f(1, 2), -3) -> InvalidType
F.squeeze(f(1, 2), ()) -> float32 (1, 2)
F.swapaxes(f(2, 3), 0, 2**64) -> InvalidType
F.swapaxes(f(2, 3), -2**64, 1) -> InvalidType
F.swapaxes(f(2, 3), None, 1) -> TypeError
F.moveaxis(f(2, 3), 2**64, 0) -> InvalidType
F.moveaxis(f(2, 3), 0, 2**64) -> InvalidType
F.moveaxis(f(2, 3), (0, -2), (0, 1)) -> ValueError
F.moveaxis(f(2, 3), numpy.array([0]), numpy.array([1])) -> TypeError
F.moveaxis(f(2, 3), 1.0, 0) -> TypeError
F.rollaxis(f(2, 3), 2**64) -> InvalidType
F.rollaxis(f(2, 3), 0, 2**64) -> InvalidType
F.rollaxis(f(2, 3), 1, numpy.int64(0)) -> float32 (3, 2)
F.rollaxis(f(2, 3), 1, -3) -> InvalidType
F.rollaxis(f(2, 3), 1, True) -> float32 (2, 3)
F.transpose(f(2, 3), (0, 2**64)) -> InvalidType
F.transpose(f(2, 3), 2**64) -> InvalidType
F.transpose(f(2, 3), (0, 1, 1)) -> ValueError
F.transpose(f(2, 3), (0., 1.)) -> TypeError
F.transpose(f(2, 3), 'ab') -> TypeError
F.transpose(f(2, 3), (-1, 1)) -> ValueError
F.transpose(f(2, 3), ()) -> ValueError
F.transpose(f(()), ()) -> float32 ()
F.flip(f(2, 3), 2**64) -> InvalidType
F.flip(f(2, 3), None) -> TypeError
F.flip(f(2, 3), (0, 1)) -> TypeError
F.flip(f(2, 3), 1.0) -> TypeError
F.flip(f(()), 0) -> InvalidType
F.split_axis(f(2, 4), 2**64, 1) -> InvalidType
F.split_axis(f(2, 4), -2, 1) -> ValueError
F.split_axis(f(2, 4), 2, 2**64) -> InvalidType
F.split_axis(f(2, 4), 2, 1.0) -> TypeError
F.split_axis(f(2, 4), 2, 'a') -> TypeError
F.split_axis(f(2, 4), 2, None) -> TypeError
F.split_axis(f(2, 4), True, 1) -> float32 (2, 4)
F.split_axis(f(2, 4), [2**64], 1) -> InvalidType
F.split_axis(f(2, 4), [-2**64], 1) -> InvalidType
F.split_axis(f(2, 4), [3, 1], 1) -> InvalidType
F.split_axis(f(2, 4), [-9], 1) -> InvalidType
F.split_axis(f(2, 4), [1.5], 1) -> TypeError
F.split_axis(f(2, 4), ['a'], 1) -> TypeError
F.split_axis(f(2, 4), [[1, 2]], 1) -> TypeError
F.split_axis(f(2, 4), [], 1) -> float32 (2, 4)
F.split_axis(f(2, 4), numpy.array([1, 2]), 1) -> float32 (2, 1); float32 (2, 1); float32 (2, 2)
F.split_axis(f(2, 4), numpy.array([1., 2.]), 1) -> TypeError
F.split_axis(f(2, 4), numpy.array(2), 1) -> float32 (2, 2); float32 (2, 2)
F.split_axis(f(2, 4), numpy.int64(2), 1) -> float32 (2, 2); float32 (2, 2)
F.split_axis(f(2, 0), 2**40, 1) -> InvalidType
F.split_axis(f(2, 0), 10**9, 1) -> InvalidType
F.split_axis(f(()), 1, 0) -> InvalidType
F.separate(f(2, 3), 2**64) -> InvalidType
F.separate(f(2, 3), 1.0) -> TypeError
F.separate(f(2, 3), None) -> TypeError
F.hstack([]) -> InvalidType
F.hstack(f(2)) -> float32 (2,)
F.dstack([F.reshape(f(1), (1,) * 16)]) -> float32 (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
F.vstack([f(())]) -> float32 (1, 1)
F.hstack([f(())]) -> float32 (1,)
F.dstack([f(())]) -> float32 (1, 1, 1)
F.broadcast_to(f(1), (2**40, 1)) + F.broadcast_to(f(1), (1, 2**40)) -> MemoryError
F.broadcast_to(f(1), (2**31, 1)) * F.broadcast_to(f(1), (1, 2**31)) -> MemoryError
F.broadcast(F.broadcast_to(f(1), (2**40, 1)), F.broadcast_to(f(1), (1, 2**40))) -> InvalidType
F.get_item(f(4), slice(0, 2**64)) -> float32 (4,)
F.get_item(f(4), slice(0, 4, 2**64)) -> float32 (1,)
F.get_item(f(4), slice(0, 4, 0)) -> ValueError
F.get_item(f(4), slice(None, None, -2**64)) -> float32 (1,)
F.get_item(f(4), slice(0.5, 4)) -> TypeError
F.get_item(f(4), slice('a', 4)) -> TypeError
F.get_item(f(4), 2**64) -> IndexError
F.get_item(f(4), -2**64) -> IndexError
F.get_item(f(4), 1.0) -> IndexError
F.get_item(f(4), True) -> float32 (1, 4)
F.get_item(f(4), numpy.int64(2)) -> float32 ()
F.get_item(f(4), numpy.array([], 'i')) -> float32 (0,)
F.get_item(f(4), []) -> float32 (0,)
F.get_item(f(4), (None,) * 16) -> ValueError
F.get_item(f(4), (None,) * 15) -> float32 (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4)
F.get_item(f(2, 4), (slice(0, 1), slice(0, 4, 2**63 - 1))) -> float32 (1, 1)
F.get_item(f(2, 4), (slice(1, None, -2**62), slice(3, None, -2**62))) -> float32 (1, 1)
F.get_item(f(2, 4), (slice(1, None, -2**63), slice(0, 1))) -> float32 (1, 1)
F.get_item(f(2, 4), (0, 0, 0)) -> IndexError
F.get_item(f(2, 4), (..., ...)) -> IndexError
F.get_item(f(2, 4), {}) -> IndexError
F.diagonal(f(3, 3), 2**64) -> float32 (0,)
F.diagonal(f(3, 3), -2**64) -> float32 (0,)
F.diagonal(f(3, 3), 2**63 - 1) -> float32 (0,)
F.diagonal(f(3, 3), 5) -> float32 (0,)
F.diagonal(f(3, 3), 1.5) -> TypeError
F.diagonal(f(3, 3), 'a') -> TypeError
F.diagonal(f(3, 3), 0, 2**64, 1) -> InvalidType
F.as_strided(f(4), (2**40,), (0,)) -> MemoryError
F.as_strided(f(4), (2**62, 2**62), (0, 0)) -> MemoryError
F.as_strided(f(4), (2**64,), (0,)) -> MemoryError
F.as_strided(f(4), (-2,), (1,)) -> ValueError
F.as_strided(f(4), (2,), (2**62,)) -> ValueError
F.as_strided(f(4), (2,), (2**63,)) -> ValueError
F.as_strided(f(4), (5,), (2**62,)) -> ValueError
F.as_strided(f(4), (5,), (2**61,)) -> ValueError
F.as_strided(f(4), (3, 3), (2**62, 2**62)) -> ValueError
F.as_strided(f(4), (2,), (1,), 2**64) -> ValueError
F.as_strided(f(4), (2,), (1,), 2**63 - 1) -> ValueError
F.as_strided(f(4), (2,), (1,), -1) -> ValueError
F.as_strided(f(4), (2,), (1, 1)) -> ValueError
F.as_strided(f(4), (2, 2), (1,)) -> ValueError
F.as_strided(f(4), (2.0,), (1,)) -> TypeError
F.as_strided(f(4), (2,), (1.5,)) -> TypeError
F.as_strided(f(4), (2,), (1,), 0.5) -> TypeError
F.as_strided(f(4), 2, 1) -> TypeError
F.as_strided(f(4), (0,), (2**62,)) -> float32 (0,)
V(f(2, 3)).mean(2**64) -> InvalidType
V(f(2, 3)).__getitem__(2**64) -> IndexError
V(f(2, 3))[::0] -> ValueError
V(numpy.broadcast_to(f(1), 2**40)) + 1 -> MemoryError
V(numpy.broadcast_to(f(1), (2**31, 2**29))) + 1 -> MemoryError
F.batch_det(f(2, 3)) -> InvalidType
F.batch_det(f(2, 3, 2)) -> InvalidType
F.batch_inv(f(2, 3)) -> InvalidType
F.batch_inv(f(2, 3, 2)) -> InvalidType
F.batch_l2_norm_squared(f(3)) -> InvalidType
F.binary_accuracy(f(2, 3), i(2, 1)) -> InvalidType
F.binary_accuracy(f(2, 3), f(2, 3)) -> InvalidType
F.black_out(f(2, 3), i(2), f(4, 3), i(2, 2)) -> float32 ()
F.black_out(f(2, 3, 1), i(2), f(4, 3), i(2, 2)) -> InvalidType
F.black_out(f(2, 3), i(2), f(4, 3, 1), i(2, 2)) -> InvalidType
F.black_out(f(2, 3), i(2), f(4, 3), i(2)) -> InvalidType
F.black_out(f(2, 3), i(2), f(4, 2), i(2, 2)) -> InvalidType
F.black_out(f(2, 3), i(3), f(4, 3), i(2, 2)) -> InvalidType
F.black_out(f(2, 3), i(2), f(4, 3), i(3, 2)) -> InvalidType
F.cholesky(f(2, 2, 2)) -> InvalidType
F.cholesky(f(2, 3)) -> InvalidType
F.contrastive(f(2, 3, 1), f(2, 3, 1), i(2)) -> InvalidType
F.contrastive(f(2, 3), f(2, 3), i(2, 1)) -> InvalidType
F.contrastive(f(2, 3), f(2, 3), f(2)) -> InvalidType
F.cross_covariance(f(2, 3), f(2, 4)) -> float32 ()
F.cross_covariance(f(2, 3, 1), f(2, 4)) -> InvalidType
F.cross_covariance(f(2, 3), f(2, 4, 1)) -> InvalidType
F.cross_covariance(f(2, 3), f(3, 4)) -> InvalidType
F.decov(f(3)) -> InvalidType
F.decov(f(2, 3, 1)) -> InvalidType
F.det(f(2, 2, 2)) -> InvalidType
F.det(f(2, 3)) -> InvalidType
F.inv(f(2, 2, 2)) -> InvalidType
F.inv(f(2, 3)) -> InvalidType
F.deformable_convolution_2d_sampler(f(1, 2, 4, 4), f(1, 18, 4, 4), f(3, 2, 3, 3), pad=1) -> float32 (1, 3, 4, 4)
F.deformable_convolution_2d_sampler(f(1, 2, 4, 4), f(1, 18, 4, 4), f(3, 1, 3, 3), pad=1) -> InvalidType
F.deformable_convolution_2d_sampler(f(1, 2, 4, 4), f(1, 9, 4, 4), f(3, 2, 3, 3), pad=1) -> InvalidType
F.deformable_convolution_2d_sampler(f(1, 2, 4, 4), f(2, 18, 4, 4), f(3, 2, 3, 3), pad=1) -> InvalidType
F.deformable_convolution_2d_sampler(f(1, 2, 4, 4), f(1, 18, 4, 4), f(3, 2, 3, 3), f(2), pad=1) -> InvalidType
F.deformable_convolution_2d_sampler(f(2, 4, 4), f(1, 18, 4, 4), f(3, 2, 3, 3), pad=1) -> InvalidType
F.depth2space(f(4, 4, 4), 2) -> InvalidType
F.space2depth(f(4, 4, 4), 2) -> InvalidType
F.depthwise_convolution_2d(f(1, 2, 4, 4), f(3, 1, 2, 2)) -> InvalidType
F.depthwise_convolution_2d(f(1, 2, 4), f(3, 2, 2, 2)) -> InvalidType
F.depthwise_convolution_2d(f(1, 2, 4, 4), f(3, 2, 2)) -> InvalidType
F.discriminative_margin_based_clustering_loss(f(1, 2, 3, 3), i(1, 3, 3), 1, 2, 2) -> float32 (); float32 (); float32 ()
F.discriminative_margin_based_clustering_loss(f(1, 2, 9), i(1, 9), 1, 2, 2) -> InvalidType
F.discriminative_margin_based_clustering_loss(f(1, 2, 3, 3), i(1, 3, 2), 1, 2, 2) -> InvalidType
F.discriminative_margin_based_clustering_loss(f(1, 2, 3, 3), i(2, 3, 3), 1, 2, 2) -> InvalidType
F.fixed_decorrelated_batch_normalization(f(3, 4), f(2, 2), f(2, 2, 2), groups=2) -> float32 (3, 4)
F.fixed_decorrelated_batch_normalization(f(3, 4), f(2, 1), f(2, 2, 2), groups=2) -> InvalidType
F.fixed_decorrelated_batch_normalization(f(3, 4), f(2, 2), f(2, 2, 1), groups=2) -> InvalidType
F.fixed_decorrelated_batch_normalization(f(3, 4), f(1, 4), f(1, 4, 4), groups=2) -> InvalidType
F.fliplr(f(3)) -> InvalidType
F.flipud(f(())) -> InvalidType
F.group_normalization(f(6), 2, f(6), f(6)) -> InvalidType
F.group_normalization(f(2, 6), 2, f(5), f(6)) -> InvalidType
F.group_normalization(f(2, 6), 2, f(6), f(5)) -> InvalidType
F.group_normalization(f(2, 6), 2, f(3), f(3)) -> InvalidType
F.hinge(f(2, 3, 1), i(2)) -> InvalidType
F.hinge(f(2, 3), i(3)) -> InvalidType
F.hinge(f(2, 3), i(2, 1)) -> InvalidType
F.im2col(f(1, 4, 4), 2) -> InvalidType
F.local_convolution_2d(f(1, 2, 4, 4), f(5, 3, 3, 2, 2, 2)) -> float32 (1, 5, 3, 3)
F.local_convolution_2d(f(2, 4, 4), f(5, 3, 3, 2, 2, 2)) -> InvalidType
F.local_convolution_2d(f(1, 2, 4, 4), f(5, 3, 3, 2, 2)) -> InvalidType
F.local_convolution_2d(f(1, 2, 4, 4), f(5, 3, 3, 1, 2, 2)) -> InvalidType
F.local_convolution_2d(f(1, 2, 4, 4), f(5, 3, 2, 2, 2, 2)) -> InvalidType
F.local_convolution_2d(f(1, 2, 4, 4), f(5, 3, 3, 2, 2, 2), f(5, 3, 2)) -> InvalidType
F.local_response_normalization(f(3)) -> InvalidType
F.negative_sampling(f(2, 3), i(2), f(4, 3), lambda shape: numpy.zeros(shape, 'i'), 2) -> float32 ()
F.negative_sampling(f(2, 3, 1), i(2), f(4, 3), lambda shape: numpy.zeros(shape, 'i'), 2) -> InvalidType
F.negative_sampling(f(2, 3), i(2), f(4, 3, 1), lambda shape: numpy.zeros(shape, 'i'), 2) -> InvalidType
F.negative_sampling(f(2, 3), i(2), f(4, 2), lambda shape: numpy.zeros(shape, 'i'), 2) -> InvalidType
F.negative_sampling(f(2, 3), i(3), f(4, 3), lambda shape: numpy.zeros(shape, 'i'), 2) -> InvalidType
F.negative_sampling(f(2, 3), f(2), f(4, 3), lambda shape: numpy.zeros(shape, 'i'), 2) -> InvalidType
F.r2_score(f(2), f(3)) -> InvalidType
F.resize_images(f(1, 4, 4), (2, 2)) -> InvalidType
F.roi_pooling_2d(f(1, 2, 3, 3), f(5), 2, 2, 1.0) -> InvalidType
F.roi_pooling_2d(f(1, 2, 3, 3), f(1, 4), 2, 2, 1.0) -> InvalidType
F.roi_pooling_2d(f(2, 3, 3), f(1, 5), 2, 2, 1.0) -> InvalidType
F.rrelu(f(2), r=f(3)) -> InvalidType
F.shift(f(1, 9, 4, 4)) -> float32 (1, 9, 4, 4)
F.shift(f(1, 8, 4, 4)) -> InvalidType
F.shift(f(9, 4, 4)) -> InvalidType
F.simplified_dropconnect(f(2, 3), f(4, 2)) -> InvalidType
F.simplified_dropconnect(f(2, 3), f(4, 3, 1)) -> InvalidType
F.slstm(f(2, 3), f(2, 3), f(2, 12), f(2, 12)) -> float32 (2, 3); float32 (2, 3)
F.slstm(f(2, 3), f(2, 2), f(2, 12), f(2, 12)) -> InvalidType
F.slstm(f(2, 3), f(2, 3), f(2, 12), f(2, 11)) -> InvalidType
F.slstm(f(2, 3), f(2, 3), f(2, 11), f(2, 12)) -> InvalidType
F.slstm(f(2, 3), f(2, 3), f(3, 12), f(3, 12)) -> InvalidType
F.spatial_pyramid_pooling_2d(f(2, 4, 4), 1, 'max') -> InvalidType
F.spatial_transformer_grid(f(2, 2, 3), (4, 4)) -> float32 (2, 2, 4, 4)
F.spatial_transformer_grid(f(2, 3), (4, 4)) -> InvalidType
F.spatial_transformer_grid(f(2, 3, 3), (4, 4)) -> InvalidType
F.spatial_transformer_grid(f(2, 2, 2), (4, 4)) -> InvalidType
F.spatial_transformer_sampler(f(2, 1, 4, 4), f(2, 2, 3, 3)) -> float32 (2, 1, 3, 3)
F.spatial_transformer_sampler(f(1, 4, 4), f(2, 2, 3, 3)) -> InvalidType
F.spatial_transformer_sampler(f(2, 1, 4, 4), f(2, 3, 3)) -> InvalidType
F.spatial_transformer_sampler(f(2, 1, 4, 4), f(1, 2, 3, 3)) -> InvalidType
F.spatial_transformer_sampler(f(2, 1, 4, 4), f(2, 3, 3, 3)) -> InvalidType
F.tree_lstm(f(2, 3), f(2, 3), f(2, 15)) -> float32 (2, 3); float32 (2, 3)
F.tree_lstm(f(2, 3), f(2, 2), f(2, 15)) -> InvalidType
F.tree_lstm(f(2, 3), f(2, 3), f(2, 14)) -> InvalidType
F.tree_lstm(f(2, 3), f(2, 3), f(3, 15)) -> InvalidType
F.tree_lstm(f(3), f(3), f(15)) -> InvalidType
F.upsampling_2d(f(1, 1, 2, 2), i(1, 1, 2, 1), 2) -> InvalidType
F.upsampling_2d(f(1, 2, 2), i(1, 2, 2), 2) -> InvalidType
F.zoneout(f(2), f(3)) -> InvalidType
"""
