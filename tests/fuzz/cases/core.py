"""Operations of the core that no public function calls directly."""

import numpy as np

from ..draw import Draw
from ..table import call, case
from . import array, normalization, oracles, pooling

case("ops.dropout", lambda g: call(g.x(*g.shape()), g.uniform(0, 0.9), g.integer(0, 2**40)), smooth=False, layouts=False)
case("ops.gaussian", lambda g: (lambda s: call(g.x(*s), g.x(*s), g.integer(0, 2**40)))(g.shape()))


def alone(own):
    """What a rank that is alone gathers."""
    return own[None]


def multi_node(g: Draw):
    x, gamma, beta, _, more = normalization.batch(g)
    return call(x, gamma, beta, (alone, g.chance(0.5), None), **more)


def multi_node_of(x, gamma, beta, ranks, axis=None):
    return oracles.normalized(x, gamma, beta, normalization.default(x, axis))


case("ops.multi_node_batch_normalization", multi_node, multi_node_of, within=20)
case(
    "ops.batch_normalization", normalization.normalization, normalization.normalized, within=20
)


def labelled(g: Draw):
    """Scores, labels (-1 is ignored) and at times the weights of the classes."""
    shape, c = g.shape(1, 3), g.extent(1)
    x = g.x(shape[0], c, *shape[1:])
    return x, g.index(c, *shape, low=-1), g.pick(None, g.positive(c, role="constant"))


def core_loss(g: Draw):
    x, t, weight = labelled(g)
    return call(x, t, g.chance(0.5), weight)


def cross_entropy(x, t, normalize, weight):
    losses = oracles.negative_log_softmax(x, t, weight, -1)
    count = (t.astype(int) != -1).sum() if normalize else len(t)
    return losses.sum() / max(count, 1)


case("ops.softmax_cross_entropy", core_loss, cross_entropy, within=2)
case("ops.softmax_nll", lambda g: call(*labelled(g)), lambda x, t, w: oracles.negative_log_softmax(x, t, w, -1))
case("ops.sum_of_squares", lambda g: call(g.x(*g.shape(0, 6))), lambda x: np.sum(x * x))
case("ops.sum", lambda g: call(g.x(*g.shape(0, 6))), np.sum)


def between(g: Draw, n: int, size: int):
    """``n`` positions between the pixels of an axis."""
    return g.x(n, low=0, high=size - 1, role="constant")


def resampled(g: Draw):
    h, w = g.integer(1, 6), g.integer(1, 6)
    return call(g.x(g.extent(), g.extent(), h, w), between(g, g.extent(), h), between(g, g.extent(), w))


case("ops.resample_2d", resampled, dtypes="fd", within=2)


def sampled(g: Draw):
    n, points = g.extent(), g.shape(0, 2)
    h, w = g.integer(1, 6), g.integer(1, 6)
    at = [g.x(n, *points, low=-1.5, high=size + 0.5) for size in (h, w)]
    return call(g.x(n, g.extent(), h, w), *at)


case("ops.sample_2d", sampled, dtypes="fd", smooth=False, within=4)


def core_regions(g: Draw, *more):
    (x, rois, index, _, _), _ = pooling.regions(g)
    rois.value = rois.value.astype("d")
    return call(x, rois, index, (2, 3), [g.pick(-1, 0, 2)] * 2, *more)


case("ops.roi_average_2d", core_regions, dtypes="fd", smooth=False, within=4)
case("ops.roi_max_2d", lambda g: core_regions(g, 0.5), dtypes="fd", smooth=False, within=100, layouts=False)


def core_strided(g: Draw):
    (x, shape, strides, *_), _ = array.strided(g)
    return call(x, shape, strides, 0)


case("ops.as_strided", core_strided, array.as_strided)


def core_upsample(g: Draw):
    (x, at, k), _ = pooling.upsample(g)
    return call(x, at, (k, k, (0, 0)), tuple(n * size for n, size in zip(x.value.shape[2:], k)))


case("ops.upsampling_2d", core_upsample, lambda x, at, window, outs: pooling.upsampled(x, at, window[0], False))


def taken(g: Draw):
    x = g.x(*(max(n, 1) for n in g.shape(1)))
    axis = g.integer(-x.value.ndim, x.value.ndim - 1)
    n = x.value.shape[axis]
    return x, g.index(n, *g.shape(0, 2), low=-n), axis


def added_at(x, index, y, axis):
    z = x.copy()
    np.add.at(np.moveaxis(z, axis, 0), index.astype(int), np.moveaxis(y, tuple(range(axis % x.ndim, axis % x.ndim + index.ndim)), tuple(range(index.ndim))))
    return z


def index_add(g: Draw):
    x, index, axis = taken(g)
    return call(x, index, g.x(*np.take(x.value, index.value.astype(int), axis).shape), axis)


case("ops.take", lambda g: call(*taken(g)), lambda x, index, axis: np.take(x, index.astype(int), axis))
case("ops.index_add", index_add, added_at, within=4)


def pad_by_copy(g: Draw):
    x = g.x(*(max(n, 1) for n in g.shape(1)))
    before, after = ([g.integer(0, 4) for _ in x.value.shape] for _ in range(2))
    return call(x, before, after, g.pick("edge", "reflect", "symmetric", "wrap"))


case("ops.pad_by_copy", pad_by_copy, lambda x, before, after, mode: np.pad(x, list(zip(before, after)), mode), within=2)


def sparse(g: Draw):
    k, n, m = g.extent(), g.integer(1, 5), g.integer(1, 5)
    return call(g.x(k), g.index(n, k, low=-1), g.index(m, k, low=-1), g.x(n, g.extent()), m)


def sparse_product(data, sources, targets, x, m):
    y = np.zeros((m, x.shape[1]), x.dtype)
    for v, i, j in zip(data, sources.astype(int), targets.astype(int)):
        if i >= 0 and j >= 0:
            y[j] += v * x[i]
    return y


case("ops.sparse_product", sparse, sparse_product, within=4)


def aligned(g: Draw):
    """Enough steps for any path of labels, between which there are blanks."""
    n, kinds, labels = g.integer(1, 3), g.integer(2, 4), g.integer(1, 2)
    steps = 2 * labels + g.integer(0, 2)
    path = np.zeros((n, 2 * labels + 1), np.int64)
    path[:, 1::2] = [[g.integer(1, kinds - 1) for _ in range(labels)] for _ in range(n)]
    lengths = np.array([g.integer(2 * labels, steps) for _ in range(n)], np.int64)
    positions = np.array([2 * g.integer(0, labels) + 1 for _ in range(n)], np.int64)
    return call(g.x(steps, n, kinds), path, lengths, positions, 0)


case("ops.alignment_loss", aligned, dtypes="fd", smooth=False, within=6)


def scored_steps(g: Draw):
    """Fewer sequences from step to step, and the costs of transitions."""
    kinds = g.integer(1, 4)
    sizes = sorted((g.integer(1, 4) for _ in range(g.integer(1, 4))), reverse=True)
    return call(g.x(kinds, kinds), [g.x(n, kinds) for n in sizes])


case("ops.best_paths", scored_steps, dtypes="fd", smooth=False)
