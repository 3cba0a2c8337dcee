"""Windows and regions of images."""

import numpy as np

from ..draw import Draw
from ..table import call, case
from . import oracles
from .connection import some


def pool(g: Draw, axes):
    """An image, and the extent, stride and padding of the windows."""
    ksize = some(g, axes, 1, 2, 2, 3)
    k = oracles.each(ksize, axes)
    stride = g.pick(None, some(g, axes, 1, 2, 3))
    pad = g.pick(0, 0, tuple(g.integer(0, (n - 1) // 1 if n > 1 else 0) // 2 for n in k))
    size = [n + g.integer(0, 4) for n in k]
    return g.x(g.extent(), g.pick(1, 2, 3, 16), *size), ksize, stride, pad


def maxima(g: Draw, axes):
    return call(*pool(g, axes), cover_all=g.chance(0.5), return_indices=g.chance(0.3))


def means(g: Draw, axes):
    return call(*pool(g, axes), **({"pad_value": g.pick(0, None)} if axes != 2 else {}))


case("max_pooling_2d", lambda g: maxima(g, 2), oracles.max_pooling, smooth=False, weight=3)
case("average_pooling_2d", lambda g: means(g, 2), oracles.average_pooling, weight=2)
for axes in (1, 3):
    case(f"max_pooling_{axes}d max_pooling_nd", lambda g, n=axes: maxima(g, n), oracles.max_pooling, smooth=False)
    case(f"average_pooling_{axes}d average_pooling_nd", lambda g, n=axes: means(g, n), oracles.average_pooling)


def core(g: Draw):
    x, *options = pool(g, 2)
    k, stride, pad = options
    stride = k if stride is None else stride
    return call(x, tuple(oracles.each(o, 2) for o in (k, stride, pad)))


def core_maxima(g: Draw):
    return call(*core(g)[0], g.chance(0.5))


case("ops.average_pooling_2d", core, lambda x, w: oracles.average_pooling(x, *w))
case("ops.max_pooling_2d", core_maxima, lambda x, w, c: oracles.max_pooling(x, *w, c), smooth=False)
# Its indices are those of F.max_pooling_2d, but for windows without elements.
case("ops.max_pooling_2d_with_indices", core_maxima, lambda x, w, c: oracles.max_pooling(x, *w, c), smooth=False)


def unpool(g: Draw, axes):
    x, ksize, stride, pad = pool(g, axes)
    x.value = x.value[(..., *[slice(0, 3)] * axes)].copy()
    return call(x, ksize, stride, pad, cover_all=g.chance(0.5))


def core_unpool(g: Draw):
    x, k, stride, pad = unpool(g, 2)[0]
    k, stride, pad = (oracles.each(o, 2) for o in (k, k if stride is None else stride, pad))
    outs = [s * (n - 1) + a - 2 * b for n, a, s, b in zip(x.value.shape[2:], k, stride, pad)]
    return call(x, (k, stride, pad), outs)


def unpooled(x, ksize, stride, pad, outsize=None, cover_all=True):
    return oracles.unpooling(x, ksize, stride, pad, outsize, cover_all)


case("unpooling_2d", lambda g: unpool(g, 2), unpooled)
for axes in (1, 3):
    case(f"unpooling_{axes}d unpooling_nd", lambda g, n=axes: unpool(g, n), unpooled)


def upsample(g: Draw):
    k = (g.integer(1, 3), g.integer(1, 3))
    shape = (g.extent(), g.integer(1, 2), g.extent(1), g.extent(1))
    return call(g.x(*shape), g.index(k[0] * k[1], *shape, dtypes="bilqB"), k, cover_all=False)


def upsampled(x, at, k, cover_all):
    if cover_all:
        raise ValueError("only without cover_all")
    at = at.astype(int)
    n, c, h, w = x.shape
    y = np.zeros((n, c, h, k[0], w, k[1]))
    i = np.indices(x.shape)
    if at.size and not (0 <= at.min() and at.max() < k[0] * k[1]):
        raise IndexError("outside the window")
    y[i[0], i[1], i[2], at // k[1], i[3], at % k[1]] = x
    return y.reshape(n, c, h * k[0], w * k[1])


case("upsampling_2d", upsample, upsampled)
case("spatial_pyramid_pooling_2d", lambda g: call(g.x(g.extent(), g.integer(1, 3), g.integer(4, 9), g.integer(4, 9)), g.integer(1, 3), "max"), smooth=False)


def regions(g: Draw, ratio=False):
    """Images, regions (y, x, y, x) inside or over the border, and their images."""
    x = g.x(g.extent(1), g.integer(1, 3), g.integer(4, 9), g.integer(4, 9))
    n = g.extent()
    rois = g.x(n, 4, low=0, high=4, role="constant")
    rois.value[:, 2:] = rois.value[:, :2] + rois.value[:, 2:] * 1.5 + 1
    options = {"sampling_ratio": g.pick(None, 1, 2, (1, 2))} if ratio else {}
    outsize = g.pick(1, 2, (2, 3))
    index = g.index(len(x.value), n, dtypes="i")
    return call(x, rois, index, outsize, g.pick(1.0, 0.5, 1.7), **options)


for kind in ("average", "max"):
    case(f"roi_{kind}_pooling_2d", regions, dtypes="fd", smooth=False, within=4)
    # Near ties of the maximum may be decided otherwise in float64, and ties of rows that are one by
    # the rounding of their interpolation.
    case(f"roi_{kind}_align_2d", lambda g: regions(g, True), dtypes="fd", smooth=False, within=100 if kind == "max" else 4, layouts=kind != "max")


def old_regions(g: Draw):
    (x, rois, index, _, scale), _ = regions(g)
    rois.value = np.concatenate([index.value[:, None].astype(rois.value.dtype), rois.value[:, [1, 0, 3, 2]]], 1)
    return call(x, rois, 2, 3, scale)


case("roi_pooling_2d", old_regions, dtypes="fd", smooth=False)
case("ops.unpooling_2d", core_unpool, lambda x, w, outs: oracles.unpooling(x, *w, outs, False))
