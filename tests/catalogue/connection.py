"""Products with filters and weights."""

from __future__ import annotations

import numpy as np
import scipy.special as sp

import renga.functions as F
from renga.variable import as_variable
from tests.fuzz import oracles
from tests.fuzz.draw import Draw
from tests.fuzz.table import call

from . import speed
from .row import case, drawn, function
from .shared import SEED, philox, some


def each_offset(w, sizes, stride, dilate, groups):
    """For every kernel offset: its weights (groups, …) and the index of what it reads."""
    grouped = w.reshape(groups, -1, *w.shape[1:])
    for offset in np.ndindex(*w.shape[2:]):
        read = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(offset, dilate, sizes, stride)
        )
        yield grouped[(..., *offset)], (..., *read)


def reaches(w, dilate):
    return [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilate)]


def convolution(x, w, stride, pad, dilate, groups):
    """Cross-correlation by definition: shifts of the padded image times the weights."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    sizes = [
        (n - r) // s + 1 for n, r, s in zip(x.shape[2:], reaches(w, dilate), stride)
    ]
    xs = x.reshape(len(x), groups, -1, *x.shape[2:])
    y = sum(
        np.einsum("ngc...,gfc->ngf...", xs[read], f)
        for f, read in each_offset(w, sizes, stride, dilate, groups)
    )
    return y.reshape(len(x), -1, *sizes)


WINDOWS = [
    ((1, 1), (1, 1), (1, 1), 1),
    ((2, 1), (0, 2), (1, 1), 1),
    ((1, 2), (2, 1), (2, 1), 2),
]


def window(g: Draw, axes):
    """Filter extents, stride, padding, dilation and an image that they fit."""
    k = [g.pick(1, 1, 2, 3, 3, 4) for _ in range(axes)]
    stride, pad = some(g, axes, 1, 1, 2, 3), some(g, axes, 0, 1, 2)
    dilate = some(g, axes, 1, 1, 1, 2)
    low = [
        max(1, d * (n - 1) + 1 - 2 * p)
        for n, d, p in zip(k, oracles.each(dilate, axes), oracles.each(pad, axes))
    ]
    size = [n + g.integer(0, 4) for n in low]
    return k, stride, pad, dilate, size


def channels(g: Draw):
    groups = g.pick(1, 1, 1, 2, 3)
    c = g.pick(1, 2, 3, 4, 16) if g.chance(0.9) else 33
    return groups, c, g.pick(1, 2, 3, 8)


def draw_convolution(g: Draw, axes):
    k, stride, pad, dilate, size = window(g, axes)
    groups, c, f = channels(g)
    x, W = (g.extent(), groups * c, *size), (groups * f, c, *k)
    b = g.x(groups * f) if g.chance(0.5) else None
    return call(
        g.x(*x),
        g.x(*W),
        b,
        stride=stride,
        pad=pad,
        cover_all=g.chance(0.2),
        dilate=dilate,
        groups=groups,
    )


def core(draw, axes):
    """The same call with the core's window."""

    def drawn(g: Draw):
        (x, W, b), o = draw(g, axes)
        values = [oracles.each(o[name], axes) for name in ("stride", "pad", "dilate")]
        return call(x, W, b, (*values, o["groups"]))

    return drawn


def of_window(function):
    def oracle(x, W, b, window):
        stride, pad, dilate, groups = window
        return function(x, W, b, stride=stride, pad=pad, dilate=dilate, groups=groups)

    return oracle


OF_IMAGES = 2 * 4 * 64 * 64 * 9 * 32 * 32

function(
    "convolution_2d",
    cases=[
        *[
            case(
                lambda o, x, w, v=window: o.convolution_2d(x, w, None, v),
                lambda x, w, v=window: convolution(x, w, *v),
                (2, 4, 6, 7),
                (6, 4 // groups, 3, 2),
            )
            for window in WINDOWS
            for groups in [window[3]]
        ],
        case(
            lambda o, x, w, b: o.convolution_2d(x, w, b, WINDOWS[0]),
            lambda x, w, b: convolution(x, w, *WINDOWS[0]) + b[:, None, None],
            (2, 3, 5, 5),
            (4, 3, 3, 3),
            (4,),
        ),
    ],
    fuzz=[
        drawn(
            lambda g: draw_convolution(g, 2), oracles.convolution, weight=4, within=2
        ),
        drawn(
            core(draw_convolution, 2),
            of_window(oracles.convolution),
            within=2,
            of="ops",
        ),
    ],
    signature="(x, W, b=None, stride=1, pad=0, cover_all=False, **kwargs)",
    edges=[
        "F.convolution_2d(s(N, 3, 5, 5), s(4, 3, 3, 3), s(4))",
        "F.convolution_2d(s(N, 4, 5, 5), s(4, 2, 3, 3), stride=2, pad=1, groups=2)",
    ],
    errors=[
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 2, 3, 3)) -> InvalidType",
        "F.convolution_2d(f(2, 3, 5), f(4, 3, 3, 3)) -> InvalidType",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3)) -> InvalidType",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), f(3)) -> InvalidType",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), f(4, 1)) -> InvalidType",
        "F.convolution_2d(f(2, 3, 5, 5), d(4, 3, 3, 3)) -> float32 (2, 4, 3, 3)",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), d(4)) -> InvalidType",
        "F.convolution_2d(h(2, 3, 5, 5), f(4, 3, 3, 3)) -> float16 (2, 4, 3, 3)",
        "F.convolution_2d(i(2, 3, 5, 5), i(4, 3, 3, 3)) -> InvalidType",
        "F.convolution_2d(f(2, 3, 2, 2), f(4, 3, 3, 3)) -> AssertionError | InvalidType",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), stride=0) -> ZeroDivisionError | ValueError",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), stride=(1, 2, 3)) -> ValueError",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), pad=-1) -> ValueError",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), dilate=0) -> ValueError",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), groups=2) -> InvalidType",
        "F.convolution_2d(f(2, 4, 5, 5), f(3, 2, 3, 3), groups=2) -> ValueError | InvalidType",
        "F.convolution_2d(f(2, 4, 5, 5), f(4, 2, 3, 3), groups=0) -> InvalidType | ValueError",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), foo=1) -> TypeError",
        "F.convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3), deterministic=True) -> ValueError",
    ],
    onnx="exported",
    speed=[
        speed.row(
            speed.normal(4, 64, 32, 32),
            speed.normal(64, 64, 3, 3),
            flops=OF_IMAGES,
            pad=1,
        ),
        speed.row(
            speed.last(speed.normal(4, 64, 32, 32)),
            speed.normal(64, 64, 3, 3),
            flops=OF_IMAGES,
            use="channels last",
            pad=1,
        ),
        speed.row(
            speed.normal(4, 128, 32, 32),
            speed.normal(128, 128, 1, 1),
            flops=2 * 4 * 128 * 128 * 1024,
            use="of pixels",
        ),
        speed.row(
            speed.normal(4, 64, 32, 32),
            speed.normal(64, 16, 3, 3),
            flops=OF_IMAGES / 4,
            use="in groups",
            pad=1,
            groups=4,
        ),
        speed.row(
            speed.normal(4, 3, 64, 64),
            speed.normal(32, 3, 7, 7),
            flops=2 * 4 * 3 * 32 * 49 * 1024,
            use="of colours",
            stride=2,
            pad=3,
        ),
    ],
)


def transposed_convolution(x, w, stride, pad, dilate, groups):
    """Adds a scaled filter to the output for every element of x."""
    sizes = x.shape[2:]
    extents = [(n - 1) * s + r for n, s, r in zip(sizes, stride, reaches(w, dilate))]
    y = np.zeros((len(x), groups, w.shape[1], *extents), x.dtype)
    xs = x.reshape(len(x), groups, -1, *sizes)
    for f, read in each_offset(w, sizes, stride, dilate, groups):
        y[read] += np.einsum("ngc...,gcf->ngf...", xs, f)
    inside = tuple(slice(p, n - p) for p, n in zip(pad, extents))
    return y.reshape(len(x), -1, *extents)[(..., *inside)]


def deconvolution(g: Draw, axes):
    k, stride, pad, dilate, _ = window(g, axes)
    groups, c, f = channels(g)
    stretch = zip(
        k,
        oracles.each(dilate, axes),
        oracles.each(pad, axes),
        oracles.each(stride, axes),
    )
    size = [
        max(1, -(-(2 * p - d * (n - 1)) // s) + 1) + g.integer(0, 3)
        for n, d, p, s in stretch
    ]
    x, W = (g.extent(), groups * c, *size), (groups * c, f, *k)
    b = g.x(groups * f) if g.chance(0.5) else None
    return call(
        g.x(*x), g.x(*W), b, stride=stride, pad=pad, dilate=dilate, groups=groups
    )


def deconvolved(x, W, b, outsize=None, **options):
    return oracles.deconvolution(x, W, b, out=outsize, **options)


function(
    "deconvolution_2d",
    cases=[
        case(
            lambda o, x, w, v=window: o.deconvolution_2d(x, w, None, v),
            lambda x, w, v=window: transposed_convolution(x, w, *v),
            (2, 4, 5, 4),
            (4, 6 // groups, 3, 3),
        )
        for window in WINDOWS
        for groups in [window[3]]
    ],
    fuzz=[
        drawn(lambda g: deconvolution(g, 2), deconvolved, weight=3, within=2),
        drawn(
            core(deconvolution, 2), of_window(oracles.deconvolution), within=2, of="ops"
        ),
    ],
    signature="(x, W, b=None, stride=1, pad=0, outsize=None, **kwargs)",
    edges=[
        "F.deconvolution_2d(s(N, 4, 3, 3), s(4, 3, 3, 3), s(3))",
        "F.deconvolution_2d(s(N, 4, 3, 3), s(4, 2, 3, 3), stride=2, groups=2)",
    ],
    errors=[
        "F.deconvolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 3)) -> InvalidType",
        "F.deconvolution_2d(f(2, 3, 5, 5), f(3, 4, 3, 3), f(3)) -> ValueError | InvalidType",
        "F.deconvolution_2d(f(2, 3, 5, 5), f(3, 4, 3, 3), outsize=(9, 9)) -> InvalidType",
        "F.deconvolution_2d(f(2, 3, 5, 5), f(3, 4, 3, 3), outsize=(7,)) -> ValueError",
        "F.deconvolution_2d(f(2, 3, 5, 5), d(3, 4, 3, 3)) -> float32 (2, 4, 7, 7)",
        "F.deconvolution_2d(f(2, 3, 5), f(3, 4, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(4, 64, 16, 16),
        speed.normal(64, 32, 4, 4),
        flops=2 * 4 * 64 * 32 * 16 * 256,
        stride=2,
        pad=1,
    ),
)

WINDOWS_ND = [  # window, extents of the image, of the kernel
    (((2,), (1,), (1,), 2), (7,), (3,)),
    (((1, 2, 1), (1, 0, 2), (1, 1, 2), 1), (3, 4, 3), (2, 3, 2)),
    (((2, 1, 1), (1, 1, 0), (1, 1, 1), 2), (4, 3, 2), (3, 2, 1)),
    (((1, 2, 1, 1), (0, 1, 0, 0), (1, 1, 1, 1), 1), (2, 3, 2, 2), (2, 2, 1, 2)),
]

function(
    "convolution_nd",
    cases=[
        case(
            lambda o, x, w, b, v=window: o.convolution_nd(x, w, b, v),
            lambda x, w, b, v=window: (
                convolution(x, w, *v) + b.reshape(-1, *(1,) * (x.ndim - 2))
            ),
            (2, 4, *size),
            (6, 4 // groups, *kernel),
            (6,),
        )
        for window, size, kernel in WINDOWS_ND
        for groups in [window[3]]
    ],
    fuzz=[
        drawn(lambda g, n=1: draw_convolution(g, n), oracles.convolution, within=2),
        drawn(lambda g, n=3: draw_convolution(g, n), oracles.convolution, within=2),
        drawn(
            core(draw_convolution, 1),
            of_window(oracles.convolution),
            within=2,
            of="ops",
        ),
        drawn(
            core(draw_convolution, 2),
            of_window(oracles.convolution),
            within=2,
            of="ops",
        ),
        drawn(
            core(draw_convolution, 3),
            of_window(oracles.convolution),
            within=2,
            of="ops",
        ),
    ],
    signature="(x, W, b=None, stride=1, pad=0, cover_all=False, dilate=1, groups=1)",
    edges="F.convolution_nd(s(N, 3, 5, 5), s(4, 3, 3, 3), s(4))",
    errors=[
        "F.convolution_nd(f(2, 3, 5), f(4, 2, 3)) -> ValueError | InvalidType",
        "F.convolution_nd(f(2, 3, 5), f(4, 3, 3), f(3)) -> InvalidType",
        "F.convolution_nd(f(2, 3, 5), f(4, 3, 3), stride=(1, 1)) -> AssertionError",
        "F.convolution_nd(f(2, 3, 5), f(4, 3, 3, 3)) -> InvalidType",
        "F.convolution_nd(i(2, 3, 5), f(4, 3, 3)) -> InvalidType",
        "F.convolution_nd(f(2, 3, 5), d(4, 3, 3)) -> float32 (2, 4, 3)",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(4, 64, 32, 32), speed.normal(64, 64, 3, 3), flops=OF_IMAGES, pad=1
    ),
)

function(
    "convolution_1d",
    fuzz=drawn(lambda g, n=1: draw_convolution(g, n), oracles.convolution, within=2),
    signature="(x, W, b=None, stride=1, pad=0, cover_all=False, dilate=1, groups=1)",
    edges="F.convolution_1d(s(N, 3, 5), s(4, 3, 3), s(4))",
    errors="F.convolution_1d(f(2, 3, 5, 5), f(4, 3, 3, 3)) -> ValueError",
    onnx="exported",
    speed=speed.row(
        speed.normal(8, 64, 1024),
        speed.normal(64, 64, 3),
        flops=2 * 8 * 64 * 64 * 3 * 1024,
        pad=2,
        dilate=2,
    ),
)

function(
    "convolution_3d",
    fuzz=drawn(lambda g, n=3: draw_convolution(g, n), oracles.convolution, within=2),
    signature="(x, W, b=None, stride=1, pad=0, cover_all=False, dilate=1, groups=1)",
    edges="F.convolution_3d(s(N, 3, 4, 4, 4), s(4, 3, 3, 3, 3), s(4))",
    errors="F.convolution_3d(f(2, 3, 5), f(4, 3, 3)) -> ValueError",
    onnx="exported",
    speed=speed.row(
        speed.normal(1, 32, 16, 24, 24),
        speed.normal(32, 32, 3, 3, 3),
        flops=2 * 32 * 32 * 27 * 9216,
        pad=1,
    ),
)

function(
    "deconvolution_nd",
    cases=[
        case(
            lambda o, x, w, b, v=window: o.deconvolution_nd(x, w, b, v),
            lambda x, w, b, v=window: (
                transposed_convolution(x, w, *v) + b.reshape(-1, *(1,) * (x.ndim - 2))
            ),
            (2, 4, *size),
            (4, 6 // groups, *kernel),
            (6,),
        )
        for window, size, kernel in WINDOWS_ND
        for groups in [window[3]]
    ],
    fuzz=[
        drawn(lambda g, n=1: deconvolution(g, n), deconvolved, within=2),
        drawn(lambda g, n=3: deconvolution(g, n), deconvolved, within=2),
        drawn(
            core(deconvolution, 1), of_window(oracles.deconvolution), within=2, of="ops"
        ),
        drawn(
            core(deconvolution, 2), of_window(oracles.deconvolution), within=2, of="ops"
        ),
        drawn(
            core(deconvolution, 3), of_window(oracles.deconvolution), within=2, of="ops"
        ),
    ],
    signature="(x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1)",
    edges="F.deconvolution_nd(s(N, 4, 3, 3), s(4, 3, 3, 3), s(3))",
    errors=[
        "F.deconvolution_nd(f(2, 3, 5), f(4, 3, 3)) -> InvalidType",
        "F.deconvolution_nd(f(2, 3, 5), f(3, 4, 3), outsize=(3,)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(4, 64, 16, 16),
        speed.normal(64, 32, 4, 4),
        flops=2 * 4 * 64 * 32 * 16 * 256,
        stride=2,
        pad=1,
    ),
)

function(
    "deconvolution_1d",
    fuzz=drawn(lambda g, n=1: deconvolution(g, n), deconvolved, within=2),
    signature="(x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1)",
    edges="F.deconvolution_1d(s(N, 4, 3), s(4, 3, 3), s(3))",
    errors="F.deconvolution_1d(f(2, 3, 5, 5), f(3, 4, 3, 3)) -> ValueError",
    onnx="exported",
    speed=speed.row(
        speed.normal(8, 64, 512),
        speed.normal(64, 32, 4),
        flops=2 * 8 * 64 * 32 * 4 * 512,
        stride=2,
        pad=1,
    ),
)

function(
    "deconvolution_3d",
    fuzz=drawn(lambda g, n=3: deconvolution(g, n), deconvolved, within=2),
    signature="(x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1)",
    edges="F.deconvolution_3d(s(N, 4, 2, 2, 2), s(4, 3, 3, 3, 3), s(3))",
    onnx="exported",
    speed=speed.row(
        speed.normal(1, 32, 8, 12, 12),
        speed.normal(32, 16, 4, 4, 4),
        flops=2 * 32 * 16 * 64 * 1152,
        stride=2,
        pad=1,
    ),
)


def block_convolution(x, w, stride, pad, dilate, groups, extents):
    """The first outputs, up to extents, of an image with zeros after it."""
    after = [(0, n * s + r) for n, s, r in zip(extents, stride, reaches(w, dilate))]
    x = np.pad(x, [(0, 0), (0, 0), *after])
    padded = np.pad(x, [(0, 0), (0, 0), *((p, 0) for p in pad)])
    y = convolution(padded, w, stride, (0, 0), dilate, groups)
    return y[:, :, : extents[0], : extents[1]]


BLOCKS = [  # window, extents of the larger block, of the smaller block
    (((1, 1), (1, 0), (1, 1), 1), (3, 4), (2, 3)),
    (((2, 1), (0, 2), (1, 2), 2), (4, 2), (3, 2)),
]

# Two operations for each of (N O H' W') (I / groups kh kw).
BLOCK_FLOPS = [2 * (2 * 2 * 2 * 3) * (4 * 3 * 2), 2 * (2 * 2 * 3 * 2) * (2 * 3 * 2)]


def part(g: Draw):
    """A part of an image, its filters, and how many outputs are wanted."""
    (x, W, b), o = draw_convolution(g, 2)
    stride, pad, dilate = values = [
        oracles.each(o[name], 2) for name in ("stride", "pad", "dilate")
    ]
    reach = [d * (k - 1) + 1 for k, d in zip(W.value.shape[2:], dilate)]
    # Windows start in the image or before it, and may reach over its end.
    free = [n + p - r for n, p, r in zip(x.value.shape[2:], pad, reach)]
    outs = tuple(max(f // s, 0) + g.integer(1, 2) for f, s in zip(free, stride))
    return x, W, b, (*values, o["groups"]), outs


def block_convolution_of(x, W, b, window, outs):
    stride, pad, dilate, groups = window
    after = [n * s + d * k for n, s, d, k in zip(outs, stride, dilate, W.shape[2:])]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad, after)])
    y = oracles.convolution(x, W, b, stride, 0, dilate=dilate, groups=groups)
    return y[:, :, : outs[0], : outs[1]]


function(
    "block_convolution",
    cases=[
        case(
            lambda o, x, w, b, v=window, n=small: as_variable(
                o.block_convolution(x, w, b, v, n)
            ),
            lambda x, w, b, v=window, n=small: (
                block_convolution(x, w, *v, n) + b[:, None, None]
            ),
            x_shape,
            w_shape,
            (2,),
            **options,
        )
        for window, large, small in BLOCKS
        for x_shape, w_shape, y_shape in [
            (
                (2, 4, *large),
                (2, 4 // window[3], 3, 2),
                (2, 2, *small),
            )
        ]
        for options in [dict(orders=0, dtypes="fd", tolerance=1e-4)]
    ],
    takes_arrays=True,
    returns_arrays=True,
    flops=BLOCK_FLOPS,
    fuzz=drawn(
        lambda g: call(*part(g)), block_convolution_of, within=2, dtypes="fd", of="ops"
    ),
)


def transposed_linear(x, linear, shape):
    """The transpose of a linear map of arrays of a shape, applied to x."""
    basis = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    return np.array([(linear(e) * x).sum() for e in basis]).reshape(shape)


def part_input_grad(g: Draw):
    x, W, _, win, outs = part(g)
    return call(
        g.x(x.value.shape[0], W.value.shape[0], *outs), W, None, win, x.value.shape[2:]
    )


function(
    "block_convolution_input_grad",
    cases=[
        case(
            lambda o, g, w, b, v=window, n=large: as_variable(
                o.block_convolution_input_grad(g, w, b, v, n)
            ),
            lambda g, w, b, v=window, n=small, s=x_shape: (
                b[:, None, None]
                + transposed_linear(g, lambda x: block_convolution(x, w, *v, n), s)
            ),
            y_shape,
            w_shape,
            (4,),
            **options,
        )
        for window, large, small in BLOCKS
        for x_shape, w_shape, y_shape in [
            (
                (2, 4, *large),
                (2, 4 // window[3], 3, 2),
                (2, 2, *small),
            )
        ]
        for options in [dict(orders=0, dtypes="fd", tolerance=1e-4)]
    ],
    takes_arrays=True,
    returns_arrays=True,
    flops=BLOCK_FLOPS,
    fuzz=drawn(part_input_grad, within=2, dtypes="fd", of="ops"),
)


def part_weight_grad(g: Draw):
    x, W, _, win, outs = part(g)
    return call(
        g.x(x.value.shape[0], W.value.shape[0], *outs), x, win, W.value.shape[2:]
    )


function(
    "block_convolution_weight_grad",
    cases=[
        case(
            lambda o, g, x, v=window, n=w_shape[2:]: as_variable(
                o.block_convolution_weight_grad(g, x, v, n)
            ),
            lambda g, x, v=window, n=small, s=w_shape: transposed_linear(
                g, lambda w: block_convolution(x, w, *v, n), s
            ),
            y_shape,
            x_shape,
            **options,
        )
        for window, large, small in BLOCKS
        for x_shape, w_shape, y_shape in [
            (
                (2, 4, *large),
                (2, 4 // window[3], 3, 2),
                (2, 2, *small),
            )
        ]
        for options in [dict(orders=0, dtypes="fd", tolerance=1e-4)]
    ],
    takes_arrays=True,
    returns_arrays=True,
    flops=BLOCK_FLOPS,
    fuzz=drawn(part_weight_grad, within=2, dtypes="fd", of="ops"),
)


def dilated(g: Draw):
    (x, W, b), o = draw_convolution(g, 2)
    W.value = W.value[: max(1, len(W.value) // o["groups"])]
    b = None if b is None else g.x(len(W.value))
    x.value = x.value[:, : W.value.shape[1]].copy()
    return call(x, W, b, stride=o["stride"], pad=o["pad"], dilate=o["dilate"])


function(
    "dilated_convolution_2d",
    fuzz=drawn(dilated, oracles.convolution, within=2),
    signature="(x, W, b=None, stride=1, pad=0, dilate=1, cover_all=False)",
    edges="F.dilated_convolution_2d(s(N, 3, 6, 6), s(4, 3, 3, 3), s(4), dilate=2)",
    errors="F.dilated_convolution_2d(f(2, 3, 5, 5), f(4, 2, 3, 3)) -> InvalidType",
    onnx="exported",
    speed=speed.row(
        speed.normal(4, 64, 32, 32),
        speed.normal(64, 64, 3, 3),
        flops=OF_IMAGES,
        pad=2,
        dilate=2,
    ),
)


def depthwise(g: Draw):
    k, stride, pad, _, size = window(g, 2)
    size = [max(n, m) for n, m in zip(size, k)]
    c, m = g.integer(1, 5), g.integer(1, 3)
    b = g.x(c * m) if g.chance(0.5) else None
    return call(g.x(g.extent(), c, *size), g.x(m, c, *k), b, stride=stride, pad=pad)


def depthwise_convolution(x, W, b, stride, pad):
    m, c, *k = W.shape
    W = W.transpose(1, 0, 2, 3).reshape(c * m, 1, *k)
    return oracles.convolution(x, W, b, stride, pad, groups=c)


function(
    "depthwise_convolution_2d",
    fuzz=drawn(depthwise, depthwise_convolution, within=2),
    signature="(x, W, b=None, stride=1, pad=0)",
    edges="F.depthwise_convolution_2d(s(N, 3, 5, 5), s(2, 3, 3, 3), s(6))",
    errors=[
        "F.depthwise_convolution_2d(f(2, 3, 5, 5), f(1, 2, 3, 3)) -> InvalidType",
        "F.depthwise_convolution_2d(f(2, 3, 5, 5), f(2, 3, 3, 3), f(5)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(4, 64, 64, 64),
        speed.normal(1, 64, 3, 3),
        flops=2 * 4 * 64 * 9 * 4096,
        pad=1,
    ),
)


def local(g: Draw):
    k, stride, _, _, size = window(g, 2)
    size = [max(n, m) for n, m in zip(size, k)]
    outs = [
        oracles.outsize(n, m, s, 0) for n, m, s in zip(size, k, oracles.each(stride, 2))
    ]
    c, f = g.integer(1, 3), g.integer(1, 3)
    b = g.x(f, *outs) if g.chance(0.5) else None
    return call(g.x(g.extent(), c, *size), g.x(f, *outs, c, *k), b, stride=stride)


def local_convolution(x, W, b, stride):
    f, h, w, c, *k = W.shape
    y = np.zeros((len(x), f, h, w))
    step = oracles.each(stride, 2)
    for i, j in np.ndindex(h, w):
        seen = x[:, :, i * step[0] :, j * step[1] :][:, :, : k[0], : k[1]]
        y[:, :, i, j] = np.einsum("ncij,fcij->nf", seen, W[:, i, j])
    return y if b is None else y + b


function(
    "local_convolution_2d",
    fuzz=drawn(local, local_convolution, within=2),
    signature="(x, W, b=None, stride=1)",
    edges="F.local_convolution_2d(s(N, 3, 5, 5), s(4, 3, 3, 3, 3, 3), s(4, 3, 3))",
    errors=[
        "F.local_convolution_2d(f(2, 3, 5, 5), f(4, 3, 3, 2, 3, 3)) -> InvalidType",
        "F.local_convolution_2d(f(2, 3, 5, 5), f(4, 2, 3, 3, 3, 3)) -> float32 (2, 4, 2, 3) | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(16, 8, 18, 18),
        speed.normal(8, 16, 16, 8, 3, 3),
        flops=2 * 16 * 8 * 256 * 72,
    ),
)


def deformable(g: Draw):
    k, stride, pad, _, size = window(g, 2)
    size = [max(n, m) for n, m in zip(size, k)]
    outs = [
        oracles.outsize(n, m, s, p)
        for n, m, s, p in zip(size, k, oracles.each(stride, 2), oracles.each(pad, 2))
    ]
    n, c, f = g.extent(), g.integer(1, 3), g.integer(1, 3)
    b = g.x(f) if g.chance(0.5) else None
    return call(
        g.x(n, c, *size),
        g.x(n, 2 * k[0] * k[1], *outs),
        g.x(f, c, *k),
        b,
        stride=stride,
        pad=pad,
    )


function(
    "deformable_convolution_2d_sampler",
    fuzz=drawn(deformable, within=4, smooth=False, dtypes="fd"),
    signature="(x, offset, W, b=None, stride=1, pad=0)",
    edges="F.deformable_convolution_2d_sampler(s(N, 3, 5, 5), u(N, 18, 3, 3), s(4, 3, 3, 3), s(4))",
    errors="F.deformable_convolution_2d_sampler(f(2, 3, 5, 5), f(2, 17, 3, 3), f(4, 3, 3, 3)) -> ValueError | InvalidType",
    nothing=[(0, 4, 3, 3)],
    onnx="exported",
    speed=speed.row(
        speed.normal(2, 16, 32, 32),
        speed.normal(2, 18, 32, 32),
        speed.normal(16, 16, 3, 3),
        call=lambda x, offset, W: F.deformable_convolution_2d_sampler(
            x, offset, W, pad=1
        ),
        flops=2 * 2 * 16 * 16 * 9 * 1024,
    ),
)


def moved(g: Draw):
    k = g.pick(1, 3)
    x = g.x(
        g.extent(), k * k * g.integer(1, 2) + g.integer(0, 2), g.extent(1), g.extent(1)
    )
    return call(x, k, g.integer(1, 2))


function(
    "shift",
    fuzz=drawn(moved),
    signature="(x, ksize=3, dilate=1)",
    edges="F.shift(s(N, 9, 4, 4))",
    errors=[
        "F.shift(f(2, 8, 3, 3)) -> InvalidType",
        "F.shift(f(2, 9, 3, 3), 2) -> ValueError",
    ],
    onnx="exported",
    speed=speed.row(speed.images),
)


def im2col(g: Draw):
    k, stride, pad, dilate, size = window(g, 2)
    x = g.x(g.extent(), g.integer(1, 3), *size)
    return call(
        x, tuple(k), stride=stride, pad=pad, cover_all=g.chance(0.2), dilate=dilate
    )


function(
    "im2col",
    fuzz=drawn(im2col, oracles.im2col),
    signature="(x, ksize, stride=1, pad=0, cover_all=False, dilate=1)",
    edges="F.im2col(s(N, 3, 5, 5), 3)",
    errors=[
        "F.im2col(f(2, 3, 4), 2) -> InvalidType",
        "F.im2col(f(2, 3, 4, 4), 9) -> AssertionError | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(4, 16, 64, 64), 3, call=lambda x, k: F.im2col(x, k, 1, 1)
    ),
)


def linear(g: Draw, batch_axes=True):
    n = g.integer(1, 2) if batch_axes else 1
    batch, rest = (
        [g.extent() for _ in range(n)],
        g.shape(1, 2) if batch_axes else (g.extent(),),
    )
    size, out = int(np.prod(rest)), g.extent()
    b = g.x(out) if g.chance(0.6) else None
    more = {"n_batch_axes": n} if batch_axes else {}
    return call(g.x(*batch, *rest), g.x(out, size), b, **more)


def linear_of(x, W, b, n_batch_axes=1):
    y = x.reshape(*x.shape[:n_batch_axes], W.shape[1]) @ W.T
    return y if b is None else y + b


function(
    "linear",
    cases=[
        case(
            lambda o, x, w, b: o.linear(x, w, b),
            lambda x, w, b: x @ w.T + b,
            (3, 4),
            (5, 4),
            (5,),
        ),
        case(lambda o, x, w: o.linear(x, w), lambda x, w: x @ w.T, (30, 40), (50, 40)),
    ],
    fuzz=[
        drawn(linear, linear_of, weight=3),
        drawn(lambda g: linear(g, False), linear_of, of="ops"),
    ],
    signature="(x, W, b=None, n_batch_axes=1)",
    edges=[
        "F.linear(s(N, 3), s(4, 3), s(4))",
        "F.linear(s(2, N, 3), s(4, 3), s(4), n_batch_axes=2)",
        "F.linear(s(), s(4, 3))",
    ],
    errors=[
        "F.linear(f(2, 3), f(4, 5)) -> InvalidType",
        "F.linear(f(2, 3), f(4, 3), f(5)) -> InvalidType",
        "F.linear(f(2, 3), d(4, 3)) -> float32 (2, 4)",
        "F.linear(f(2, 3), f(4, 3), d(4)) -> InvalidType",
        "F.linear(i(2, 3), i(4, 3)) -> InvalidType",
        "F.linear(f(2, 3), f(4)) -> IndexError | InvalidType",
        "F.linear(f(3), f(4, 3)) -> IndexError | InvalidType",
        "F.linear(f(2, 3), f(4, 3), n_batch_axes=0) -> ValueError",
        "F.linear(f(2, 3), f(4, 3), n_batch_axes=2) -> InvalidType",
        "F.linear(f(2, 3, 4), f(5, 12)) -> float32 (2, 5)",
        "F.linear(f(2, 3, 4), f(5, 4), n_batch_axes=2) -> float32 (2, 3, 5)",
        "F.linear(h(2, 3), f(4, 3)) -> float16 (2, 4)",
    ],
    nothing={
        "F.linear(s(2, N, 3), s(4, 3), s(4), n_batch_axes=2)": [(2, 0, 4)],
    },
    others={"F.linear(s(), s(4, 3))": "InvalidType"},
    onnx="exported",
    speed=[
        speed.row(
            speed.normal(512, 512),
            speed.normal(512, 512),
            speed.normal(512),
            flops=2 * 512**3,
        ),
        speed.row(speed.normal(1, 2048), speed.normal(2048, 2048), use="of one sample"),
    ],
)


def attention(q, k, v, mask=None, scale=None, dropped=1):
    scores = q @ k.swapaxes(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = (
            np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        )
    return sp.softmax(scores, 3) * dropped @ v


QUERIES, KEYS, VALUES = (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)

SOME_KEYS = np.array([[True, True, False, True, False, True, True]])


def keep_keys(ratio, queries, keys):
    """The factors of a dropout that draws 64 numbers at a time for each query."""
    blocks = -(-keys // 64)
    numbers = philox(SEED, queries * blocks * 64).reshape(queries, blocks * 64)
    return (numbers[:, :keys] >= ratio * 2**32) / (1 - ratio)


def draw_attention(g: Draw):
    n, h, length, keys, depth, width = (g.extent() for _ in range(6))
    q, k, v = g.x(n, h, length, depth), g.x(n, h, keys, depth), g.x(n, h, keys, width)
    mask = (
        g.x(*g.pick((n, 1, length, 1), (keys,), (h, 1, keys)))
        if g.chance(0.5)
        else None
    )
    return call(q, k, v, mask, is_causal=g.chance(0.5), scale=g.pick(None, 0.5))


def attention_of(q, k, v, mask, is_causal, scale):
    scores = (
        q @ k.swapaxes(2, 3) * (max(q.shape[3], 1) ** -0.5 if scale is None else scale)
    )
    if is_causal:
        scores = np.where(np.tri(*scores.shape[2:]) > 0, scores, -np.inf)
    if isinstance(mask, bool):
        mask = 0 if mask else -np.inf
    scores = scores if mask is None else scores + mask
    if not scores.size:
        return scores @ v
    if scale is not None and abs(scale) > 1000:
        raise ValueError("rounding decides between scores that are nearly equal")
    # A query that may look at nothing gets zeros.
    seen = scores.max(3, keepdims=True) != -np.inf
    return np.where(seen, sp.softmax(np.where(seen, scores, 0), 3) @ v, 0)


function(
    "scaled_dot_product_attention",
    cases=[
        case(
            lambda o, q, k, v: o.scaled_dot_product_attention(q, k, v),
            attention,
            QUERIES,
            KEYS,
            VALUES,
        ),
        case(
            lambda o, q, k, v: o.scaled_dot_product_attention(
                q, k, v, is_causal=True, scale=0.7
            ),
            lambda q, k, v: attention(q, k, v, np.tri(5, 7) > 0, 0.7),
            QUERIES,
            KEYS,
            VALUES,
        ),
        case(
            lambda o, q, k, v: o.scaled_dot_product_attention(q, k, v, SOME_KEYS),
            lambda q, k, v: attention(q, k, v, SOME_KEYS),
            QUERIES,
            KEYS,
            VALUES,
        ),
        case(
            lambda o, q, k, v, m: o.scaled_dot_product_attention(q, k, v, m),
            attention,
            QUERIES,
            KEYS,
            VALUES,
            (3, 1, 7),
        ),
        case(
            lambda o, q, k, v: o.scaled_dot_product_attention(
                q, k, v, None, 0.3, False, None, SEED
            ),
            lambda q, k, v: attention(
                q, k, v, dropped=keep_keys(0.3, 30, 7).reshape(2, 3, 5, 7)
            ),
            QUERIES,
            KEYS,
            VALUES,
        ),
        case(
            lambda o, q, k, v: o.scaled_dot_product_attention(q, k, v),
            attention,
            (1, 2, 70, 36),
            (1, 2, 300, 36),
            (1, 2, 300, 40),
            orders=1,
            low=-1,
            high=1,
        ),
    ],
    # Two operations for each of (N H L S) (E + V).
    flops=[*[2 * (2 * 3 * 5 * 7) * (4 + 6)] * 5, 2 * (2 * 70 * 300) * (36 + 40)],
    fuzz=[
        # sums that cancel
        drawn(draw_attention, attention_of, within=16, of="F ops")
    ],
    speed=speed.row(
        speed.normal(2, 8, 256, 64),
        speed.normal(2, 8, 256, 64),
        speed.normal(2, 8, 256, 64),
        flops=4 * 16 * 256 * 256 * 64,
    ),
)


def rotated_of(x, position, base, step):
    angles = np.outer(
        position + step * np.arange(x.shape[-2]),
        base ** (-np.arange(x.shape[-1] // 2) / max(x.shape[-1] // 2, 1)),
    )
    first, second = np.split(x, 2, -1)
    return np.concatenate(
        [
            first * np.cos(angles) - second * np.sin(angles),
            second * np.cos(angles) + first * np.sin(angles),
        ],
        -1,
    )


function(
    "rotary_embedding",
    fuzz=drawn(
        lambda g: call(
            g.x(*g.shape(1, 2), 2 * g.integer(1, 3)),
            position=g.integer(0, 5),
            base=100.0,
            step=g.integer(1, 3),
        ),
        rotated_of,
    ),
    speed=speed.row(speed.normal(4, 8, 256, 128)),
)

ANGLES = np.arange(15).reshape(5, 3) * 0.37


def rotated(x):
    points = (x[..., :3] + 1j * x[..., 3:]) * np.exp(1j * ANGLES)
    return np.concatenate([points.real, points.imag], -1)


def counted_rotation(x):
    cosines, sines = np.cos(ANGLES), np.sin(ANGLES)
    first, second = x[..., :3], x[..., 3:]
    return np.concatenate(
        [first * cosines - second * sines, second * cosines + first * sines], -1
    )


def pairs(g: Draw):
    length, half = g.extent(), g.integer(1, 3)
    tables = [g.x(length, half, role="constant") for _ in range(2)]
    return call(g.x(*g.shape(2, 2), length, 2 * half), *tables)


def rotated_pairs(x, cosines, sines):
    first, second = np.split(x, 2, -1)
    return np.concatenate(
        [first * cosines - second * sines, second * cosines + first * sines], -1
    )


function(
    "rotate_pairs",
    cases=[
        case(
            lambda o, x: o.rotate_pairs(x, np.cos(ANGLES), np.sin(ANGLES)),
            rotated,
            shape,
        )
        for shape in ((2, 3, 5, 6), (2, 1, 3, 5, 6), (0, 2, 5, 6))
    ],
    operands=case(
        lambda o, x, c, s: o.rotate_pairs(x, c, s), None, (2, 3, 5, 6), (5, 3), (5, 3)
    ),
    flops=counted_rotation,
    fuzz=drawn(pairs, rotated_pairs, of="ops"),
)


def positions(g: Draw):
    rows = g.integer(1, 6)
    position = g.integer(0, rows - 1)
    return call(
        g.x(rows, g.extent()), g.index(3, 2, g.integer(0, rows - position)), position
    )


function(
    "position_embedding",
    fuzz=drawn(positions, lambda W, x, position: W[position : position + x.shape[1]]),
    speed=speed.row(speed.normal(512, 256), speed.normal(8, 512, 256)),
)


def bilinear(g: Draw):
    n, j, k, m = g.extent(), g.extent(1), g.extent(1), g.integer(1, 4)
    rest = (g.x(j, m), g.x(k, m), g.x(m)) if g.chance(0.5) else (None,) * 3
    return call(g.x(n, j), g.x(n, k), g.x(j, k, m), *rest)


def bilinear_of(e1, e2, W, V1, V2, b):
    y = np.einsum("ij,ik,jkl->il", e1, e2, W)
    return y if b is None else y + e1 @ V1 + e2 @ V2 + b


function(
    "bilinear",
    fuzz=drawn(bilinear, bilinear_of, within=2),
    signature="(e1, e2, W, V1=None, V2=None, b=None)",
    edges="F.bilinear(s(N, 2), s(N, 3), s(2, 3, 4), s(2, 4), s(3, 4), s(4))",
    errors=[
        "F.bilinear(f(2, 3), f(2, 4), f(3, 5, 6)) -> InvalidType",
        "F.bilinear(f(2, 3), f(2, 4), f(3, 4, 6), f(3, 6)) -> ValueError",
        "F.bilinear(f(2, 3), d(2, 4), f(3, 4, 6)) -> InvalidType",
        "F.bilinear(f(2, 3), f(3, 4), f(3, 4, 6)) -> InvalidType",
    ],
    half=False,
    onnx="exported",
    speed=speed.row(
        speed.normal(256, 32),
        speed.normal(256, 32),
        speed.normal(32, 32, 32),
        flops=2 * 256 * 32**3,
    ),
)


def dropconnect(g: Draw):
    n, i, o = g.extent(), g.extent(1), g.extent(1)
    mask = g.mask(n, o, i) if g.chance(0.5) else None
    b = g.x(o) if g.chance(0.5) else None
    return call(g.x(n, i), g.x(o, i), b, ratio=0.5, mask=mask)


function(
    "simplified_dropconnect",
    fuzz=drawn(dropconnect),
    signature="(x, W, b=None, ratio=0.5, train=True, mask=None, use_batchwise_mask=True)",
    edges="F.simplified_dropconnect(s(N, 3), s(4, 3), s(4), mask=i(2, N, 4, 3).astype('?'))",
    errors=[
        "F.simplified_dropconnect(f(2, 3), f(4, 4)) -> InvalidType",
        "F.simplified_dropconnect(f(2, 3), f(4, 3), ratio=2) -> float32 (2, 4) | ValueError",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(32, 256), speed.normal(256, 256), speed.normal(256)),
)
