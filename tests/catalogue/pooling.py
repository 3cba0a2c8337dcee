"""Pooling, its inverses, and regions of images."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import renga.functions as F
from renga.variable import as_variable
from tests.fuzz import oracles
from tests.fuzz.draw import Draw
from tests.fuzz.table import call

from . import speed
from .row import case, drawn, function, positive
from .shared import interpolated, some


def windows_of(x, ksize, stride, pad, cover_all, fill):
    """The windows of a padded image, their elements on the last axis."""
    after = [p + (s - 1 if cover_all else 0) for p, s in zip(pad, stride)]
    x = np.pad(
        x,
        [(0, 0), (0, 0), (pad[0], after[0]), (pad[1], after[1])],
        constant_values=fill,
    )
    windows = sliding_window_view(x, ksize, (2, 3))[:, :, :: stride[0], :: stride[1]]
    return windows.reshape(*windows.shape[:4], -1)


POOLS = [((2, 2), (2, 2), (0, 0)), ((3, 2), (1, 2), (1, 0)), ((2, 3), (2, 1), (0, 1))]


def pool(g: Draw, axes):
    """An image, and the extent, stride and padding of the windows."""
    ksize = some(g, axes, 1, 2, 2, 3)
    k = oracles.each(ksize, axes)
    stride = g.pick(None, some(g, axes, 1, 2, 3))
    pad = g.pick(
        0, 0, tuple(g.integer(0, (n - 1) // 1 if n > 1 else 0) // 2 for n in k)
    )
    size = [n + g.integer(0, 4) for n in k]
    return g.x(g.extent(), g.pick(1, 2, 3, 16), *size), ksize, stride, pad


def maxima(g: Draw, axes):
    return call(*pool(g, axes), cover_all=g.chance(0.5), return_indices=g.chance(0.3))


def core(g: Draw):
    x, *options = pool(g, 2)
    k, stride, pad = options
    stride = k if stride is None else stride
    return call(x, tuple(oracles.each(o, 2) for o in (k, stride, pad)))


def core_maxima(g: Draw):
    return call(*core(g)[0], g.chance(0.5))


function(
    "max_pooling_2d",
    cases=[
        case(
            lambda o, x, p=pool, c=cover_all: o.max_pooling_2d(x, p, c),
            lambda x, p=pool, c=cover_all: windows_of(x, *p, c, -np.inf).max(-1),
            (2, 3, 6, 7),
        )
        for pool in POOLS
        for cover_all in (False, True)
    ],
    fuzz=[
        drawn(lambda g: maxima(g, 2), oracles.max_pooling, smooth=False, weight=3),
        drawn(
            core_maxima,
            lambda x, w, c: oracles.max_pooling(x, *w, c),
            smooth=False,
            of="ops",
        ),
    ],
    signature="(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False)",
    edges="F.max_pooling_2d(s(N, 3, 4, 4), 2)",
    errors=[
        "F.max_pooling_2d(f(2, 3, 4), 2) -> ValueError",
        "F.max_pooling_2d(i(2, 3, 4, 4), 2) -> InvalidType",
        "F.max_pooling_2d(f(2, 3, 4, 4), 0) -> ZeroDivisionError | ValueError",
        "F.max_pooling_2d(f(2, 3, 4, 4), 5, cover_all=False) -> AssertionError | InvalidType",
        "F.max_pooling_2d(f(2, 3, 4, 4), (2, 2, 2)) -> AssertionError | ValueError",
        "F.max_pooling_2d(f(2, 3, 4, 4), 2, stride=0) -> ZeroDivisionError | ValueError",
        "F.max_pooling_2d(f(2, 3, 4, 4), 2, return_indices=True) -> float32 (2, 3, 2, 2); int64 (2, 3, 2, 2)",
    ],
    nothing=[(0, 3, 2, 2)],
    onnx="exported",
    speed=[
        speed.row(speed.images, 2),
        speed.row(speed.images, 3, 2, 1, use="of overlapping windows"),
        speed.row(speed.last(speed.images), 2, use="channels last"),
        speed.row(
            speed.last(speed.images),
            3,
            2,
            1,
            use="of overlapping windows channels last",
        ),
    ],
)


def means(g: Draw, axes):
    return call(*pool(g, axes), **({"pad_value": g.pick(0, None)} if axes != 2 else {}))


function(
    "average_pooling_2d",
    cases=[
        case(
            lambda o, x, p=pool: o.average_pooling_2d(x, p),
            lambda x, p=pool: windows_of(x, *p, False, 0).mean(-1),
            (2, 3, 6, 7),
        )
        for pool in POOLS
    ],
    fuzz=[
        drawn(lambda g: means(g, 2), oracles.average_pooling, weight=2),
        drawn(core, lambda x, w: oracles.average_pooling(x, *w), of="ops"),
    ],
    signature="(x, ksize, stride=None, pad=0)",
    edges="F.average_pooling_2d(s(N, 3, 4, 4), 2)",
    errors=[
        "F.average_pooling_2d(f(2, 3, 4), 2) -> InvalidType",
        "F.average_pooling_2d(i(2, 3, 4, 4), 2) -> InvalidType",
        "F.average_pooling_2d(f(2, 3, 4, 4), 5) -> AssertionError | InvalidType",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.images, 2),
        speed.row(speed.last(speed.images), 2, use="channels last"),
    ],
)

function(
    "max_pooling_1d",
    fuzz=drawn(lambda g, n=1: maxima(g, n), oracles.max_pooling, smooth=False),
    signature="(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False)",
    edges="F.max_pooling_1d(s(N, 3, 4), 2)",
    errors="F.max_pooling_1d(f(2, 3, 4, 4), 2) -> ValueError",
    nothing=[(0, 3, 2)],
    onnx="exported",
    speed=speed.row(speed.normal(64, 32, 512), 2),
)

volumes = speed.normal(4, 16, 24, 24, 24)

function(
    "max_pooling_nd",
    fuzz=[
        drawn(lambda g, n=1: maxima(g, n), oracles.max_pooling, smooth=False),
        drawn(lambda g, n=3: maxima(g, n), oracles.max_pooling, smooth=False),
    ],
    signature="(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False)",
    edges="F.max_pooling_nd(s(N, 3, 4, 4), 2)",
    errors=[
        "F.max_pooling_nd(f(2, 3, 4), (2, 2)) -> AssertionError",
        "F.max_pooling_nd(i(2, 3, 4), 2) -> InvalidType",
        "F.max_pooling_nd(f(2, 3), 2) -> ValueError | InvalidType",
    ],
    nothing=[(0, 3, 2, 2)],
    onnx="exported",
    speed=speed.row(volumes, 2),
)

function(
    "max_pooling_3d",
    fuzz=drawn(lambda g, n=3: maxima(g, n), oracles.max_pooling, smooth=False),
    signature="(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False)",
    edges="F.max_pooling_3d(s(N, 3, 4, 4, 4), 2)",
    nothing=[(0, 3, 2, 2, 2)],
    onnx="exported",
    speed=speed.row(volumes, 2),
)

function(
    "average_pooling_1d",
    fuzz=drawn(lambda g, n=1: means(g, n), oracles.average_pooling),
    signature="(x, ksize, stride=None, pad=0, pad_value=0)",
    edges="F.average_pooling_1d(s(N, 3, 4), 2)",
    nothing=[(0, 3, 2)],
    onnx="exported",
    speed=speed.row(speed.normal(64, 32, 512), 2),
)

function(
    "average_pooling_nd",
    fuzz=[
        drawn(lambda g, n=1: means(g, n), oracles.average_pooling),
        drawn(lambda g, n=3: means(g, n), oracles.average_pooling),
    ],
    signature="(x, ksize, stride=None, pad=0, pad_value=0)",
    edges="F.average_pooling_nd(s(N, 3, 4, 4), 2)",
    errors="F.average_pooling_nd(f(2, 3, 4), 2, pad_value=1) -> ValueError",
    nothing=[(0, 3, 2, 2)],
    onnx="exported",
    speed=speed.row(volumes, 2),
)

function(
    "average_pooling_3d",
    fuzz=drawn(lambda g, n=3: means(g, n), oracles.average_pooling),
    signature="(x, ksize, stride=None, pad=0, pad_value=0)",
    edges="F.average_pooling_3d(s(N, 3, 4, 4, 4), 2)",
    errors="F.average_pooling_3d(f(2, 3, 4), 2) -> ValueError",
    nothing=[(0, 3, 2, 2, 2)],
    onnx="exported",
    speed=speed.row(volumes, 2),
)


def with_indices(y, indices):
    return [y, as_variable(indices)]


function(
    "max_pooling_2d_with_indices",
    cases=[
        case(
            lambda o, x, p=pool: with_indices(
                *o.max_pooling_2d_with_indices(x, p, False)
            ),
            lambda x, p=pool: [
                f(windows_of(x, *p, False, -np.inf), -1) for f in (np.max, np.argmax)
            ],
            (2, 3, 6, 7),
            orders=0,
        )
        for pool in POOLS
    ],
    node="max_pooling_2d",
    # N C H' W' kh kw comparisons are made.
    flops=[2 * 3 * 3 * 3 * 4, 2 * 3 * 6 * 3 * 6, 2 * 3 * 3 * 7 * 6],
    fuzz=[
        # Its indices are those of F.max_pooling_2d, but for windows without elements.
        drawn(
            core_maxima,
            lambda x, w, c: oracles.max_pooling(x, *w, c),
            smooth=False,
            of="ops",
        )
    ],
)


def unpooled(x, ksize, stride, pad):
    """Each pixel added to all of its window in the smallest image."""
    (kh, kw), (sh, sw), (ph, pw), (h, w) = ksize, stride, pad, x.shape[2:]
    y = np.zeros((*x.shape[:2], sh * (h - 1) + kh, sw * (w - 1) + kw), x.dtype)
    for i, j in np.ndindex(h, w):
        y[:, :, i * sh : i * sh + kh, j * sw : j * sw + kw] += x[:, :, i, j, None, None]
    return y[:, :, ph : y.shape[2] - ph, pw : y.shape[3] - pw]


def unpool(g: Draw, axes):
    x, ksize, stride, pad = pool(g, axes)
    x.value = x.value[(..., *[slice(0, 3)] * axes)].copy()
    return call(x, ksize, stride, pad, cover_all=g.chance(0.5))


def core_unpool(g: Draw):
    x, k, stride, pad = unpool(g, 2)[0]
    k, stride, pad = (
        oracles.each(o, 2) for o in (k, k if stride is None else stride, pad)
    )
    outs = [
        s * (n - 1) + a - 2 * b for n, a, s, b in zip(x.value.shape[2:], k, stride, pad)
    ]
    return call(x, (k, stride, pad), outs)


def unpooled_of(x, ksize, stride, pad, outsize=None, cover_all=True):
    return oracles.unpooling(x, ksize, stride, pad, outsize, cover_all)


function(
    "unpooling_2d",
    cases=[
        case(
            lambda o, x, p=pool: o.unpooling_2d(
                x, p, [s * (n - 1) + k - 2 * d for n, k, s, d in zip(x.shape[2:], *p)]
            ),
            lambda x, p=pool: unpooled(x, *p),
            (2, 3, 4, 5),
        )
        for pool in POOLS
    ],
    # Sums where windows or points overlap do not count.
    flops=[0] * 3,
    fuzz=[
        drawn(lambda g: unpool(g, 2), unpooled_of),
        drawn(
            core_unpool,
            lambda x, w, outs: oracles.unpooling(x, *w, outs, False),
            of="ops",
        ),
    ],
    signature="(x, ksize, stride=None, pad=0, outsize=None, cover_all=True)",
    edges="F.unpooling_2d(s(N, 3, 2, 2), 2)",
    errors=[
        "F.unpooling_2d(f(2, 3, 4), 2) -> InvalidType",
        "F.unpooling_2d(i(2, 3, 4, 4), 2) -> InvalidType",
        "F.unpooling_2d(f(2, 3, 4, 4), 2, outsize=(3, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.normal(8, 32, 32, 32), 2, outsize=(64, 64)),
        speed.row(
            speed.last(speed.normal(8, 32, 32, 32)),
            2,
            use="channels last",
            outsize=(64, 64),
        ),
    ],
)

function(
    "unpooling_1d",
    fuzz=drawn(lambda g, n=1: unpool(g, n), unpooled_of),
    signature="(x, ksize, stride=None, pad=0, outsize=None, cover_all=True)",
    edges="F.unpooling_1d(s(N, 3, 2), 2)",
    onnx="exported",
    speed=speed.row(
        speed.normal(64, 32, 256),
        2,
        call=lambda x, k: F.unpooling_1d(x, k, outsize=(512,)),
    ),
)

function(
    "unpooling_nd",
    fuzz=[
        drawn(lambda g, n=1: unpool(g, n), unpooled_of),
        drawn(lambda g, n=3: unpool(g, n), unpooled_of),
    ],
    signature="(x, ksize, stride=None, pad=0, outsize=None, cover_all=True)",
    edges="F.unpooling_nd(s(N, 3, 2, 2), 2)",
    errors="F.unpooling_nd(f(2, 3, 4), 2, outsize=(3,)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.normal(4, 16, 12, 12, 12), 2, outsize=(24, 24, 24)),
)

function(
    "unpooling_3d",
    fuzz=drawn(lambda g, n=3: unpool(g, n), unpooled_of),
    signature="(x, ksize, stride=None, pad=0, outsize=None, cover_all=True)",
    edges="F.unpooling_3d(s(N, 3, 2, 2, 2), 2)",
    errors="F.unpooling_3d(f(2, 3, 4), 2) -> ValueError",
    onnx="exported",
    speed=speed.row(speed.normal(4, 16, 12, 12, 12), 2, outsize=(24, 24, 24)),
)


def upsampled(x, at, ksize, stride, pad, extents):
    """Pixels at positions of their windows, one after the other."""
    y = np.zeros((*x.shape[:2], *extents))
    for n, c, i, j in np.ndindex(*x.shape):
        row, column = (
            p * s - d + e
            for p, s, d, e in zip((i, j), stride, pad, divmod(at[n, c, i, j], ksize[1]))
        )
        if 0 <= row < extents[0] and 0 <= column < extents[1]:
            y[n, c, row, column] += x[n, c, i, j]
    return y


def upsample(g: Draw):
    k = (g.integer(1, 3), g.integer(1, 3))
    shape = (g.extent(), g.integer(1, 2), g.extent(1), g.extent(1))
    return call(
        g.x(*shape), g.index(k[0] * k[1], *shape, dtypes="bilqB"), k, cover_all=False
    )


def upsampled_of(x, at, k, cover_all):
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


def core_upsample(g: Draw):
    (x, at, k), _ = upsample(g)
    return call(
        x, at, (k, k, (0, 0)), tuple(n * size for n, size in zip(x.value.shape[2:], k))
    )


INDEXES = speed.constant(
    speed.Input(lambda r, s: r.randint(0, 4, s).astype("i"), (8, 32, 32, 32))
)

function(
    "upsampling_2d",
    cases=[
        case(
            lambda o, x, p=pool, a=at, e=extents: o.upsampling_2d(x, a, p, e),
            lambda x, p=pool, a=at, e=extents: upsampled(x, a, *p, e),
            (2, 3, 4, 5),
        )
        for pool in POOLS
        for at in [np.arange(120).reshape(2, 3, 4, 5) * 7 % (pool[0][0] * pool[0][1])]
        for margin in (0, -1)
        for extents in [
            [
                s * (n - 1) + k - 2 * d + (margin if s > 1 else 0)
                for n, k, s, d in zip((4, 5), *pool)
            ]
        ]
    ],
    operands=case(
        lambda o, x, t: o.upsampling_2d(
            x, positive(t), ((2, 2), (2, 2), (0, 0)), (8, 10)
        ),
        None,
        (2, 3, 4, 5),
        (2, 3, 4, 5),
    ),
    node="MaxPoolingNDGrad",
    flops=[0] * 6,
    fuzz=[
        drawn(upsample, upsampled_of),
        drawn(
            core_upsample,
            lambda x, at, window, outs: upsampled_of(x, at, window[0], False),
            of="ops",
        ),
    ],
    signature="(x, indexes, ksize, stride=None, pad=0, outsize=None, cover_all=True)",
    edges="F.upsampling_2d(s(N, 3, 2, 2), i(4, N, 3, 2, 2), 2, cover_all=False)",
    errors="F.upsampling_2d(f(2, 3, 4, 4), i(2, 3, 4, 3), 2) -> InvalidType",
    onnx="exported",
    speed=speed.row(
        speed.normal(8, 32, 32, 32),
        INDEXES,
        2,
        call=lambda x, i, k: F.upsampling_2d(x, i, k, outsize=(64, 64)),
    ),
)

function(
    "spatial_pyramid_pooling_2d",
    fuzz=drawn(
        lambda g: call(
            g.x(g.extent(), g.integer(1, 3), g.integer(4, 9), g.integer(4, 9)),
            g.integer(1, 3),
            "max",
        ),
        smooth=False,
    ),
    signature="(x, pyramid_height, pooling=None)",
    edges="F.spatial_pyramid_pooling_2d(s(N, 3, 4, 4), 2, 'max')",
    errors=[
        "F.spatial_pyramid_pooling_2d(f(2, 3, 4, 4), 2, pooling='avg') -> ValueError",
        "F.spatial_pyramid_pooling_2d(f(2, 3, 4), 2, pooling='max') -> ValueError | InvalidType",
    ],
    nothing=[(0, 15, 1, 1)],
    onnx="exported",
    speed=speed.row(speed.images, 3, "max"),
)


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


rois = speed.constant(
    speed.Input(
        lambda r, s: np.sort(r.uniform(0, 63, (s[0], 2, 2)), 1).reshape(s).astype("f"),
        (64, 4),
    )
)

places = speed.indices(8, 64)

function(
    "roi_average_pooling_2d",
    fuzz=drawn(regions, dtypes="fd", smooth=False, within=4),
    signature="(x, rois, roi_indices, outsize, spatial_scale)",
    edges="F.roi_average_pooling_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1.)",
    errors="F.roi_average_pooling_2d(f(1, 1, 4, 7), f(1, 4), i(1), 2**62, 0.5) -> MemoryError",
    onnx="no counterpart",
    speed=speed.row(speed.images, rois, places, 7, 1.0),
)

function(
    "roi_max_pooling_2d",
    fuzz=drawn(regions, dtypes="fd", smooth=False, within=4),
    signature="(x, rois, roi_indices, outsize, spatial_scale)",
    edges="F.roi_max_pooling_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1.)",
    errors=[
        "F.roi_max_pooling_2d(f(1, 2, 4, 4), f(2, 5), i(2), 2, 1.0) -> InvalidType",
        "F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), i(3), 2, 1.0) -> InvalidType",
        "F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), f(2), 2, 1.0) -> InvalidType",
        "F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), i(2), -1, 1.0) -> TypeError",
        "F.roi_max_pooling_2d(f(3, 2, 4, 4), f(2, 4), i(2), 2, 'a') -> TypeError",
    ],
    onnx="no counterpart",
    speed=speed.row(speed.images, rois, places, 7, 1.0),
)

function(
    "roi_average_align_2d",
    fuzz=drawn(lambda g: regions(g, True), dtypes="fd", smooth=False, within=4),
    signature="(x, rois, roi_indices, outsize, spatial_scale, sampling_ratio=None)",
    edges="F.roi_average_align_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1., 2)",
    errors=[
        "F.roi_average_align_2d(f(3, 2, 4, 4), f(2, 4), i(2), 2, 1.0, 0) -> TypeError",
        "F.roi_average_align_2d(f(3, 2, 4, 4), d(2, 4), i(2), 2, 1.0) -> InvalidType",
    ],
    half=False,
    onnx="no counterpart",
    speed=speed.row(speed.images, rois, places, 7, 1.0),
)

function(
    "roi_max_align_2d",
    fuzz=[
        # Near ties of the maximum may be decided otherwise in float64, and ties of rows that are one by
        # the rounding of their interpolation.
        drawn(
            lambda g: regions(g, True),
            dtypes="fd",
            smooth=False,
            within=100,
            layouts=False,
        )
    ],
    signature="(x, rois, roi_indices, outsize, spatial_scale, sampling_ratio=None)",
    edges="F.roi_max_align_2d(s(2, 3, 8, 8), 6 * u(N, 4) * numpy.array([.2, .2, 1, 1], DTYPE), i(2, N), 2, 1., 2)",
    half=False,
    onnx="no counterpart",
    speed=speed.row(speed.images, rois, places, 7, 1.0),
)


def old_regions(g: Draw):
    (x, rois, index, _, scale), _ = regions(g)
    rois.value = np.concatenate(
        [index.value[:, None].astype(rois.value.dtype), rois.value[:, [1, 0, 3, 2]]], 1
    )
    return call(x, rois, 2, 3, scale)


function(
    "roi_pooling_2d",
    fuzz=drawn(old_regions, dtypes="fd", smooth=False),
    signature="(x, rois, outh, outw, spatial_scale)",
    edges="F.roi_pooling_2d(s(1, 3, 8, 8), numpy.array([[0, 1, 1, 5, 5], [0, 0, 2, 3, 7]], DTYPE)[:N], 2, 2, 1.)",
    errors="F.roi_pooling_2d(f(3, 2, 4, 4), f(2, 4), 2, 2, 1.0) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(
        speed.images,
        rois,
        call=lambda x, rois: F.roi_pooling_2d(
            x,
            np.concatenate((np.arange(64, dtype="f")[:, None] % 8, rois), 1),
            7,
            7,
            1.0,
        ),
    ),
)

# (top, left, bottom, right) of regions, and two points of each cell along rows and three along columns.
REGIONS = np.array([[0.5, 1, 4.5, 5], [1, -1.5, 3, 2], [-3, -3, 1.5, 7]])

REGION_IMAGES = np.array([1, 0, 1])


def pooled_regions(x, reduce):
    y = np.zeros((3, x.shape[1], 2, 2))
    h, w = x.shape[2:]
    for r, (top, left, bottom, right) in enumerate(REGIONS):
        rows = top + (np.arange(4) + 0.5) * (bottom - top) / 4
        columns = left + (np.arange(6) + 0.5) * (right - left) / 6
        for c, i, j in np.ndindex(*y.shape[1:]):
            points = [
                interpolated(
                    x[REGION_IMAGES[r], c],
                    np.clip(row, 0, h - 1),
                    np.clip(column, 0, w - 1),
                )
                if -1 <= row <= h and -1 <= column <= w
                else None
                for row in rows[2 * i : 2 * i + 2]
                for column in columns[3 * j : 3 * j + 3]
            ]
            y[r, c, i, j] = reduce(points)
    return y


def core_regions(g: Draw, *more):
    (x, rois, index, _, _), _ = regions(g)
    rois.value = rois.value.astype("d")
    return call(x, rois, index, (2, 3), [g.pick(-1, 0, 2)] * 2, *more)


function(
    "roi_average_2d",
    cases=case(
        lambda o, x: o.roi_average_2d(x, REGIONS, REGION_IMAGES, (2, 2), [2, 3]),
        lambda x: pooled_regions(x, lambda points: sum(p or 0 for p in points) / 6),
        (2, 2, 5, 6),
    ),
    takes_arrays=True,
    flops=[0],
    fuzz=drawn(core_regions, dtypes="fd", smooth=False, within=4, of="ops"),
)

function(
    "roi_max_2d",
    cases=case(
        lambda o, x: o.roi_max_2d(x, REGIONS, REGION_IMAGES, (2, 2), [2, 3], 0.0),
        lambda x: pooled_regions(
            x, lambda points: max((p for p in points if p is not None), default=0)
        ),
        (2, 2, 5, 6),
    ),
    takes_arrays=True,
    flops=[0],
    fuzz=drawn(
        lambda g: core_regions(g, 0.5),
        dtypes="fd",
        smooth=False,
        within=100,
        layouts=False,
        of="ops",
    ),
)
