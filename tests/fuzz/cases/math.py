"""Reductions, products, linear algebra and Fourier transforms."""

import numpy as np

from renga.utils import CooMatrix

from ..draw import FLOATS, INTS, Built, Draw
from ..table import call, case


def over_axes(g: Draw, keepdims=True, low=-2.0, high=2.0):
    """x, and axes of it; at times with keepdims."""
    x = g.x(*g.shape(), low=low, high=high)
    more = {"keepdims": g.chance(0.5)} if keepdims else {}
    return call(x, axis=g.axes(x.value.ndim), **more)


def summed(g: Draw):
    """Without the least number: it cancels the largest, in the order of the memory."""
    (x,), more = over_axes(g)
    x.value[x.value == np.finfo(x.value.dtype).min] = -1
    return call(x, **more)


def over_axis(g: Draw):
    """x of at least one axis, and one axis of it or None."""
    x = g.x(*g.shape(1))
    return call(x, axis=g.pick(None, g.axis(x.value.ndim)))


case("sum", summed, np.sum, special=True)
case("prod", lambda g: over_axes(g, low=-1.2, high=1.2), np.prod)
case("max", over_axes, np.max, smooth=False, special=True)
case("min", over_axes, np.min, smooth=False, special=True)
case("mean average", lambda g: call(*over_axes(g)[0], axis=None), lambda x, axis: x.mean(axis))
case("mean average", over_axes, np.mean)
case("logsumexp", lambda g: over_axes(g, keepdims=False), lambda x, axis: np.logaddexp.reduce(x, tuple(range(x.ndim)) if axis is None else axis), special=True)
case("argmax", over_axis, np.argmax, smooth=False, special=True)
case("argmin", over_axis, np.argmin, smooth=False, special=True)
case("cumsum", over_axis, np.cumsum)
case("cumprod", over_axis, np.cumprod)


def weighted(g: Draw):
    x = g.x(*g.shape(1, least=1))
    axis = g.axis(x.value.ndim)
    w = g.positive(*(x.value.shape if g.chance(0.5) else [x.value.shape[axis]]))
    return call(x, axis=axis, weights=w, keepdims=g.chance(0.5))


def average(x, axis, weights, keepdims):
    return np.average(x, axis, weights, keepdims=keepdims)


case("average mean", weighted, average, within=8)


def sum_to(g: Draw):
    x = g.x(*g.shape())
    return call(x, g.broadcastable(x.value.shape))


def to_shape(x, shape):
    x = x.sum(tuple(range(x.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)
    return x.sum(axes, keepdims=True)


case("sum_to", sum_to, to_shape)


def softmax_input(g: Draw):
    x = g.x(*g.shape(2))
    return call(x, axis=g.axis(x.value.ndim))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


case("softmax", softmax_input, softmax, special=True)
case("log_softmax", softmax_input, log_softmax, special=True)


def product_operands(g: Draw):
    """Matrices, or stacks of them that broadcast, transposed or not."""
    n, k, m = g.extent(), g.extent(), g.extent()
    batch = g.shape(0, 2) if g.chance(0.4) else ()
    transa, transb = g.chance(0.3), g.chance(0.3)
    a, b = ((k, n) if transa else (n, k)), ((m, k) if transb else (k, m))
    a, b = (*g.broadcastable(batch), *a), (*g.broadcastable(batch), *b)
    return call(g.x(*a), g.x(*b), transa=transa, transb=transb)


def matmul(a, b, transa=False, transb=False):
    a = a.swapaxes(-1, -2) if transa and a.ndim > 1 else a
    b = b.swapaxes(-1, -2) if transb and b.ndim > 1 else b
    return np.matmul(a, b) if a.ndim and b.ndim else a * b


case("matmul", product_operands, matmul, weight=3)
case("matmul", product_operands, matmul, dtypes="bhil")
case("matmul", lambda g: (lambda n: call(g.x(n), g.pick(g.x(n), g.x(n, 3), g.x(2, n, 3))))(g.extent()), matmul)


def batch_matmul(g: Draw):
    n, i, k, j = g.extent(), g.extent(), g.extent(), g.extent()
    ta, tb = g.chance(0.3), g.chance(0.3)
    a, b = ((k, i) if ta else (i, k)), ((j, k) if tb else (k, j))
    return call(g.x(n, *a), g.x(n, *b), transa=ta, transb=tb)


case("batch_matmul", batch_matmul, matmul)


def sparse(g: Draw):
    """A sparse matrix, or a batch of them, and a dense one."""
    n, k, m = g.extent(1), g.extent(1), g.extent(1)
    batch = (g.integer(1, 3),) if g.chance(0.4) else ()
    nnz = g.integer(1, 6)
    ta, tb, first = g.chance(0.3), g.chance(0.3), g.chance(0.7)
    a, b = ((k, n) if ta else (n, k)), ((m, k) if tb else (k, m))
    shape = a if first else b
    parts = (
        g.x(*batch, nnz, role="constant"),
        g.index(shape[0], *batch, nnz, dtypes="i"),
        g.index(shape[1], *batch, nnz, dtypes="i"),
        shape,
    )
    dense = g.x(*batch, *(b if first else a))
    matrix = Built(CooMatrix, parts)
    pair = (matrix, dense) if first else (dense, matrix)
    return call(*pair, transa=ta, transb=tb)


def sparse_matmul(a, b, transa, transb):
    return matmul(dense(a), dense(b), transa, transb)


def dense(a):
    if isinstance(a, np.ndarray):
        return a
    data, rows, columns = (np.asarray(getattr(p, "array", p)) for p in (a.data, a.row, a.col))
    full = np.zeros((*data.shape[:-1], *a.shape))
    for place in np.ndindex(data.shape):
        full[(*place[:-1], rows[place], columns[place])] += data[place]
    return full


case("sparse_matmul", sparse, sparse_matmul)


def tensordot(g: Draw):
    shared = g.shape(0, 2)
    a, b = (*g.shape(0, 2), *shared), (*shared, *g.shape(0, 2))
    return call(g.x(*a), g.x(*b), axes=len(shared))


def tensordot_pairs(g: Draw):
    a = g.x(*g.shape(1, 3))
    axes = g.rng.permutation(a.value.ndim)[: g.integer(1, a.value.ndim)].tolist()
    b = g.x(*(a.value.shape[i] for i in axes), *g.shape(0, 1))
    return call(a, b, axes=(axes, list(range(len(axes)))))


case("tensordot", tensordot, np.tensordot)
case("tensordot", tensordot_pairs, np.tensordot)

EINSUMS = "ij,jk->ik ij,kj->ik i,i-> i,j->ij ii->i ij->ji ijk->ik ij->j abc,cd->abd ijk,ilk->ijl i,i,i->i ij,jk,kl->il i...,i...->... ...ij,...jk->...ik"


def einsum(g: Draw):
    text = g.pick(*EINSUMS.split())
    extents = {letter: g.extent() for letter in "abcdijkl"}
    rest = g.shape(0, 2)
    shapes = []
    for part in text.split("->")[0].split(","):
        before, dots, after = part.partition("...")
        shapes.append([*(extents[c] for c in before), *(rest if dots else ()), *(extents[c] for c in after)])
    return call(text, *(g.x(*s) for s in shapes))


case("einsum", einsum, np.einsum, within=2)


def well_conditioned(g: Draw, batch=False, positive=False):
    """Square matrices whose inverse is no larger than they are."""
    n = g.integer(1, 5)
    shape = (g.extent(), n, n) if batch else (n, n)
    x = g.x(*shape, low=-0.3, high=0.3)
    value = x.value.astype("d") + 2 * np.eye(n)
    if positive:
        value = value + value.swapaxes(-1, -2)
    x.value = value.astype(x.value.dtype)
    return call(x)


case("ops.det det", well_conditioned, np.linalg.det, dtypes="fd", within=4, refuses=(ValueError,))
case("batch_det", lambda g: well_conditioned(g, True), np.linalg.det, dtypes="fd", within=4, refuses=(ValueError,))
case("ops.inv inv", well_conditioned, np.linalg.inv, dtypes="fd", within=4, layouts=False)
case("batch_inv", lambda g: well_conditioned(g, True), np.linalg.inv, dtypes="fd", within=4, layouts=False)
case("ops.cholesky cholesky", lambda g: well_conditioned(g, positive=True), np.linalg.cholesky, dtypes="fd", within=4, smooth=False)


def complex_pair(g: Draw):
    shape = g.shape(1, 3, least=1)
    return call((g.x(*shape), g.x(*shape)))


def parts(z):
    return z.real, z.imag


case("fft", complex_pair, lambda x: parts(np.fft.fft(x[0] + 1j * x[1])), within=4)
case("ifft", complex_pair, lambda x: parts(np.fft.ifft(x[0] + 1j * x[1])), within=4)
case("ops.fft", lambda g: call(*complex_pair(g)[0][0]), lambda x, y: parts(np.fft.fft(x + 1j * y)), dtypes="fd", within=4)
case("ops.ifft", lambda g: call(*complex_pair(g)[0][0]), lambda x, y: parts(np.fft.ifft(x + 1j * y)), dtypes="fd", within=4)
case("batch_l2_norm_squared", lambda g: call(g.x(*g.shape(2))), lambda x: (x**2).reshape(len(x), int(np.prod(x.shape[1:]))).sum(1), within=2)
case("normalize", lambda g: (lambda x: call(x, axis=g.pick(*range(x.value.ndim), (0, 1))))(g.positive(*g.shape(2))), lambda x, axis: x / (np.sqrt((x**2).sum(axis, keepdims=True)) + 1e-5))
case("ops.normalize", lambda g: (lambda x: call(x, 1e-5, [g.pick(*range(x.value.ndim))]))(g.positive(*g.shape(2))), lambda x, eps, axis: x / (np.sqrt((x**2).sum(axis[0], keepdims=True)) + eps))
case("ops.cast cast", lambda g: call(g.x(*g.shape()), g.pick(*"efd")), lambda x, d: x.astype(d), dtypes=FLOATS + INTS, smooth=False)
case("cast", lambda g: call(g.x(*g.shape(), low=0, high=100), g.pick(*"bhilBq")), lambda x, d: x.astype(d), dtypes=FLOATS, smooth=False)
