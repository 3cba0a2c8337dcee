# ruff: noqa: E501
"""Calls of functions with odd axes, groups, sizes and ratios.

One row for each call: the error's name, or the dtypes and shapes of the results.
"""

CASES = r"""
F.sum(f(2, 3), 2**64) -> InvalidType
F.sum(f(2, 3), (0, 2**64)) -> InvalidType
F.sum(f(2, 3), (0, 0)) -> ValueError
F.sum(f(2, 3), (0, -2)) -> ValueError
F.sum(f(2, 3), 1.0) -> TypeError
F.sum(f(2, 3), 'a') -> TypeError
F.sum(f(2, 3), ()) -> float32 (2, 3)
F.sum(f(2, 3), (0,) * 20) -> ValueError
F.sum(f(2, 3), keepdims=2) -> float32 (1, 1)
F.sum(f(2, 3), [0]) -> TypeError
F.sum(f(2, 3), numpy.int64(0)) -> float32 (3,)
F.sum(f(2, 3), numpy.array(0)) -> float32 (3,)
F.sum(f(2, 3), True) -> float32 (2,)
F.max(f(2, 3), 2**64) -> InvalidType
F.min(f(2, 3), (1, 1)) -> ValueError
F.prod(f(2, 3), -2**64) -> InvalidType
F.logsumexp(f(2, 3), 2**64) -> InvalidType
F.logsumexp(f(0, 3), 0) -> float32 (3,)
F.logsumexp(i(2, 3), 0) -> InvalidType
F.argmax(f(2, 3), 2**64) -> InvalidType
F.argmax(f(2, 3), 2) -> InvalidType
F.argmax(f(2, 3), 1.0) -> TypeError
F.argmax(f(2, 3), (0, 1)) -> TypeError
F.argmin(f(2, 3), -2**64) -> InvalidType
F.mean(f(2, 3), 2**64) -> InvalidType
F.mean(f(2, 3), (0, 0)) -> ValueError
F.mean(f(2, 3), 1.0) -> TypeError
F.average(f(2, 3), 2**64, f(2)) -> InvalidType
F.average(f(2, 3), 1.5, f(3)) -> TypeError
F.average(f(2, 3), 'a', f(3)) -> TypeError
F.average(f(2, 3), 5, f(3)) -> InvalidType
F.average(f(2, 3), (5,), f(3)) -> InvalidType
F.average(f(2, 3), -5, f(3)) -> InvalidType
F.average(f(2, 3), 0, f(3)) -> InvalidType
F.softmax(f(2, 3), 2**64) -> InvalidType
F.softmax(f(2, 3), 2) -> InvalidType
F.softmax(f(2, 3), 1.0) -> TypeError
F.log_softmax(f(2, 3), 2**64) -> InvalidType
F.cumsum(f(2, 3), 2**64) -> InvalidType
F.cumsum(f(2, 3), 1.0) -> TypeError
F.cumsum(f(2, 3), (0, 1)) -> TypeError
F.cumprod(f(2, 3), -2**64) -> InvalidType
F.cumprod(f(2, 3), 'a') -> TypeError
F.tensordot(f(2, 3), f(3, 2), 2**64) -> ValueError
F.tensordot(f(2, 3), f(3, 2), -1) -> ValueError
F.tensordot(f(2, 3), f(3, 2), 1.0) -> TypeError
F.tensordot(f(2, 3), f(3, 2), None) -> TypeError
F.tensordot(f(2, 3), f(3, 2), ((1, 1), (0, 0))) -> ValueError
F.tensordot(f(3, 3), f(3, 3), ((1, 1), (0, 0))) -> ValueError
F.tensordot(f(3, 3), f(3, 3), ((1, -1), (0, 1))) -> ValueError
F.tensordot(f(3, 3), f(3, 3), ((0, 1), (0, 0))) -> ValueError
F.tensordot(f(2, 3), f(3, 2), ((2**64,), (0,))) -> IndexError
F.tensordot(f(2, 3), f(3, 2), ((1.0,), (0,))) -> TypeError
F.tensordot(f(2, 3), f(3, 2), (1,)) -> ValueError
F.tensordot(f(2, 3), f(3, 2), (1, 0, 1)) -> ValueError
F.tensordot(f(2, 3), f(3, 2), True) -> float32 (2, 2)
F.tensordot(f(2, 3), f(3, 2), numpy.array([[1], [0]])) -> float32 (2, 2)
F.tensordot(f(2, 3), f(3, 2), numpy.int64(1)) -> float32 (2, 2)
F.tensordot(f(()), f(()), 0) -> float32 ()
F.tensordot(f(2, 3), f(3, 2), (('a',), (0,))) -> TypeError
F.tensordot(F.broadcast_to(f(1), (2**40, 1)), F.broadcast_to(f(1), (1, 2**40)), 1) -> MemoryError
F.einsum('ij,jk->ik', f(2, 3), f(4, 2)) -> InvalidType
F.einsum('ij,jk->ikk', f(2, 3), f(3, 2)) -> ValueError
F.einsum('i->ii', f(2)) -> ValueError
F.einsum(f(2, 3), [0, 2**64], [0]) -> float32 (2,)
F.einsum(f(2, 3), [0, -1], [0]) -> ValueError
F.einsum(f(2, 3), [0, 1.5], [0]) -> ValueError
F.einsum(f(2, 3), 'ij') -> ValueError
F.einsum('ij') -> ValueError
F.einsum('i,j->ij', F.broadcast_to(f(1), 2**40), F.broadcast_to(f(1), 2**40)) -> MemoryError
F.einsum('abcdefghijklmnopqrstuvwxyz', f(2)) -> ValueError
F.einsum(None, f(2)) -> ValueError
F.einsum(',' * 20, *([f(())] * 21)) -> float32 ()
F.matmul(f(()), f(2)) -> InvalidType
F.matmul(F.broadcast_to(f(1), (2**40, 1)), F.broadcast_to(f(1), (1, 2**40))) -> MemoryError
F.matmul(F.broadcast_to(f(1), (2**20, 1)), F.broadcast_to(f(1), (1, 2**20))) -> MemoryError
F.matmul(F.broadcast_to(f(1), (2**40, 1, 1)), F.broadcast_to(f(1), (1, 2**20))) -> MemoryError
F.matmul(f(2, 0), f(0, 2)) -> float32 (2, 2)
F.matmul(f(2, 3), f(3, 2), transa='a') -> TypeError
F.add(F.broadcast_to(f(1), (2**40, 1)), F.broadcast_to(f(1), (1, 2**40))) -> MemoryError
F.exp(F.broadcast_to(f(1), 2**40)) -> MemoryError
F.relu(F.broadcast_to(f(1), 2**60)) -> MemoryError
F.cast(F.broadcast_to(f(1), 2**60), 'd') -> MemoryError
F.cast(F.broadcast_to(numpy.ones(1, '?'), 2**60), 'd') -> MemoryError
F.where(numpy.ones((1, 2), '?'), F.broadcast_to(f(1), (2**40, 1)), F.broadcast_to(f(1), (2**40, 1))) -> MemoryError
F.group_normalization(f(4, 4), 0, f(4), f(4)) -> ValueError
F.group_normalization(f(4, 4), -1, f(4), f(4)) -> ValueError
F.group_normalization(f(4, 4), 2**64, f(4), f(4)) -> ValueError
F.group_normalization(f(4, 4), None, f(4), f(4)) -> TypeError
F.group_normalization(f(4, 4), True, f(4), f(4)) -> float32 (4, 4)
F.group_normalization(f(4, 4), numpy.int64(2), f(4), f(4)) -> float32 (4, 4)
F.group_normalization(f(4, 0), 2, f(0), f(0)) -> float32 (4, 0)
F.decorrelated_batch_normalization(f(4, 4), groups=0) -> InvalidType
F.decorrelated_batch_normalization(f(4, 4), groups=-2) -> InvalidType
F.decorrelated_batch_normalization(f(4, 4), groups=2**64) -> InvalidType
F.decorrelated_batch_normalization(f(4, 4), groups=2.0) -> TypeError
F.decorrelated_batch_normalization(f(4, 0), groups=2**62) -> MemoryError
F.decorrelated_batch_normalization(f(4, 4), groups='2') -> TypeError
F.decorrelated_batch_normalization(f(4, 4), groups=None) -> TypeError
F.local_response_normalization(f(2, 3, 4, 4), 0) -> ValueError
F.local_response_normalization(f(2, 3, 4, 4), -1) -> ValueError
F.local_response_normalization(f(2, 3, 4, 4), 2**64) -> float32 (2, 3, 4, 4)
F.local_response_normalization(f(2, 3, 4, 4), 2.5) -> TypeError
F.local_response_normalization(f(2, 3, 4, 4), 'a') -> TypeError
F.local_response_normalization(f(2, 3, 4, 4), None) -> TypeError
F.batch_normalization(f(4, 3), f(3), f(3), axis=2**64) -> InvalidType
F.batch_normalization(f(4, 3), f(3), f(3), axis=-1) -> InvalidType
F.batch_normalization(f(4, 3), f(3), f(3), axis=(0, 2**64)) -> InvalidType
F.batch_normalization(f(4, 3), f(3), f(3), axis='a') -> TypeError
F.batch_normalization(f(4, 3), f(3), f(3), axis=()) -> InvalidType
F.normalize(f(2, 3), axis=2**64) -> InvalidType
F.normalize(f(2, 3), axis=(0, 0)) -> ValueError
F.normalize(f(2, 3), axis=()) -> float32 (2, 3)
F.normalize(f(2, 3), axis=1.0) -> TypeError
F.normalize(f(2, 3), axis=[0, 1]) -> TypeError
F.dropout(f(2), 2.0) -> ValueError
F.dropout(f(2), 1.0) -> ValueError
F.dropout(f(2), -1e-9) -> ValueError
F.dropout(f(2), float('nan')) -> ValueError
F.dropout(f(2), 'a') -> TypeError
F.dropout(f(2), None) -> TypeError
F.dropout(f(2), 2**2000) -> ValueError
F.dropout(f(2), .5, return_mask=True) -> float32 (2,); float32 (2,)
F.dropout(f(2), float('nan'), return_mask=True) -> ValueError
F.zoneout(f(2), f(2), 2.0) -> ValueError
F.zoneout(f(2), f(2), -1) -> ValueError
F.zoneout(f(2), f(2), float('nan')) -> ValueError
F.zoneout(f(2), f(2), 'a') -> TypeError
F.gumbel_softmax(f(2, 3), axis=2**64) -> InvalidType
F.gumbel_softmax(f(2, 3), tau=0) -> ValueError
F.gumbel_softmax(f(2, 3), tau=-1) -> ValueError
F.rrelu(f(2), 2., 1.) -> ValueError
F.simplified_dropconnect(f(2, 3), f(4, 3), ratio=float('nan')) -> ValueError
F.bias(f(2, 3), f(3), axis=2**64) -> InvalidType
F.bias(f(2, 3), f(3), axis=-1) -> InvalidType
F.bias(f(2, 3), f(3), axis=1.0) -> TypeError
F.bias(f(2, 3), f(()), axis=2**40) -> float32 (2, 3)
F.bias(f(2, 3), f(()), axis=20) -> float32 (2, 3)
F.scale(f(2, 3), f(3), axis=2**64) -> InvalidType
F.scale(f(2, 3), f(3), axis='a') -> TypeError
F.prelu(f(2, 3), f(3, 3)) -> InvalidType
F.crelu(f(2, 3), axis=2**64) -> InvalidType
F.crelu(f(2, 3), axis=5) -> InvalidType
F.crelu(f(2, 3), axis=1.0) -> TypeError
F.permutate(f(3), numpy.array([0, 1, 2], 'i'), axis=2**64) -> InvalidType
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=2) -> float32 (2, 3, 5)
F.linear(f(2, 3, 4), f(5, 4)) -> InvalidType
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=3) -> InvalidType
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=0) -> ValueError
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=-1) -> ValueError
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=2**64) -> InvalidType
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=1.5) -> TypeError
F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=None) -> TypeError
F.linear(d(2, 4), f(5, 4), f(5)) -> InvalidType
F.linear(d(2, 4), f(5, 4)) -> float64 (2, 5)
F.linear(f(2, 4), d(5, 4), d(5)) -> InvalidType
F.linear(f(2, 4), f(5, 4), d(5)) -> InvalidType
F.linear(h(2, 4), f(5, 4), f(5)) -> InvalidType
F.bilinear(d(2, 2), d(2, 3), f(2, 3, 4)) -> InvalidType
F.embed_id(i(2), f(0, 3)) -> IndexError
F.n_step_lstm(0, 0., f(1, 2, 3), f(1, 2, 3), [], [], [f(2, 3)]) -> InvalidType
F.n_step_lstm(-1, 0., f(1, 2, 3), f(1, 2, 3), [], [], [f(2, 3)]) -> ValueError
F.n_step_lstm(2**40, 0., f(1, 2, 3), f(1, 2, 3), [], [], [f(2, 3)]) -> ValueError
F.n_step_lstm(1.5, 0., f(1, 2, 3), f(1, 2, 3), [[f(3, 3)] * 8], [[f(3)] * 8], [f(2, 3)]) -> TypeError
renga._core.empty((2**40,), 'f') -> MemoryError
renga._core.empty((-1,), 'f') -> ValueError
renga._core.empty((2**62, 4), 'f') -> MemoryError
renga._core.empty((2**64,), 'f') -> MemoryError
renga._core.empty((0, 2**62, 2**62), 'f') -> MemoryError
"""
