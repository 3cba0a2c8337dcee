"""Functions that move elements, and those that pick them."""

from __future__ import annotations

import numpy as np

import renga.functions as F
from tests.fuzz.draw import FLOATS, INTS, Draw
from tests.fuzz.table import call

from . import speed
from .row import FLOATS_AND_INTS, case, drawn, function, positive
from .shared import added_at, interpolated

ALL = {"dtypes": FLOATS + INTS, "special": True}


def reshape(g: Draw):
    x = g.x(*g.shape())
    size, shape = x.value.size, []
    while size > 1 and g.chance(0.7):
        n = g.pick(*(d for d in range(1, size + 1) if size % d == 0))
        shape.append(n)
        size //= n
    shape.append(size)
    if g.chance(0.4) and 0 not in shape:
        shape[g.integer(0, len(shape) - 1)] = -1
    return call(x, tuple(shape))


function(
    "reshape",
    cases=case(
        lambda o, x: o.reshape(x, (6, -1)), lambda x: x.reshape(6, -1), (3, 4, 2)
    ),
    fuzz=drawn(reshape, np.reshape, **ALL),
    signature="(x, shape)",
    edges=[
        "F.reshape(s(N, 6), (N, 2, 3))",
        "F.reshape(s(N, 6), (3, -1))",
        "F.reshape(s(), (1, 1))",
    ],
    errors=[
        "F.reshape(f(2, 3), (4, 2)) -> InvalidType",
        "F.reshape(f(2, 3), (-1, -1)) -> AssertionError | ValueError",
        "F.reshape(f(2, 3), (-1, 4)) -> InvalidType",
        "F.reshape(f(2, 3), (2, 3.0)) -> float32 (2, 3) | TypeError",
        "F.reshape(f(2, 3), 6) -> TypeError | float32 (6,)",
        "F.reshape(i(2, 3), (3, 2)) -> int32 (3, 2)",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, (512, 2048)),
)

function(
    "flatten",
    cases=case(lambda o, x: o.flatten(x), np.ravel, (2, 3, 4)),
    node="reshape",
    fuzz=drawn(lambda g: call(g.x(*g.shape())), np.ravel, **ALL),
    signature="(x)",
    edges=["F.flatten(s(N, 3))", "F.flatten(s())"],
    onnx="exported",
    speed=speed.row(speed.matrix),
)


def permutation(g: Draw, n):
    return tuple(int(a) - n * g.integer(0, 1) for a in g.rng.permutation(n))


function(
    "transpose",
    cases=[
        case(lambda o, x: o.transpose(x), np.transpose, (2, 3, 4)),
        case(
            lambda o, x: o.transpose(x, (1, -1, 0)),
            lambda x: x.transpose(1, 2, 0),
            (2, 3, 4),
        ),
    ],
    fuzz=drawn(
        lambda g: (lambda x: call(x, axes=g.pick(None, permutation(g, x.value.ndim))))(
            g.x(*g.shape())
        ),
        lambda x, axes: np.transpose(x, axes),
        **ALL,
    ),
    signature="(x, axes=None)",
    edges=["F.transpose(s(N, 3))", "F.transpose(s())"],
    errors=[
        "F.transpose(f(2, 3), (0, 0)) -> ValueError",
        "F.transpose(f(2, 3), (0,)) -> ValueError",
        "F.transpose(f(2, 3), (0, 2)) -> AxisError | InvalidType",
        "F.transpose(i(2, 3)) -> int32 (3, 2)",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.matrix),
        speed.row(speed.images, (0, 2, 3, 1), use="of images"),
    ],
)

function(
    "swapaxes",
    cases=[
        case(lambda o, x: o.swapaxes(x, 0, -1), lambda x: x.swapaxes(0, -1), (2, 3, 4)),
        case(lambda o, x: o.swapaxes(x, 1, 2), lambda x: x.swapaxes(1, 2), (2, 3, 4)),
    ],
    node="transpose",
    fuzz=drawn(
        lambda g: (lambda x: call(x, g.axis(x.value.ndim), g.axis(x.value.ndim)))(
            g.x(*g.shape(1))
        ),
        np.swapaxes,
        **ALL,
    ),
    signature="(x, axis1, axis2)",
    edges="F.swapaxes(s(N, 3), 0, 1)",
    errors=[
        "F.swapaxes(f(2, 3), 0, 2) -> AxisError | InvalidType",
        "F.swapaxes(f(2, 3), 0, 1.5) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(64, 128, 128), 0, 1),
)

function(
    "moveaxis",
    fuzz=[
        drawn(
            lambda g: (lambda x: call(x, g.axis(x.value.ndim), g.axis(x.value.ndim)))(
                g.x(*g.shape(1))
            ),
            np.moveaxis,
            **ALL,
        ),
        drawn(
            lambda g: (
                lambda x: call(
                    x, permutation(g, x.value.ndim), permutation(g, x.value.ndim)
                )
            )(g.x(*g.shape(1))),
            np.moveaxis,
            **ALL,
        ),
    ],
    signature="(x, source, destination)",
    edges="F.moveaxis(s(N, 3, 2), 0, 2)",
    errors=[
        "F.moveaxis(f(2, 3), 0, 2) -> InvalidType",
        "F.moveaxis(f(2, 3), (0, 0), (0, 1)) -> ValueError",
        "F.moveaxis(f(2, 3), (0,), (0, 1)) -> ValueError",
        "F.moveaxis(f(2, 3), 'a', 0) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.images, 1, -1),
)

function(
    "rollaxis",
    fuzz=drawn(
        lambda g: (
            lambda x: call(
                x, g.axis(x.value.ndim), g.integer(-x.value.ndim, x.value.ndim)
            )
        )(g.x(*g.shape(1))),
        np.rollaxis,
        **ALL,
    ),
    signature="(x, axis, start=0)",
    edges="F.rollaxis(s(N, 3, 2), 2)",
    errors=[
        "F.rollaxis(f(2, 3), 2) -> InvalidType",
        "F.rollaxis(f(2, 3), 1, 3) -> InvalidType",
        "F.rollaxis(f(2, 3), 1.5) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.images, 3, 1),
)


def of_axis(g: Draw, low=1):
    x = g.x(*g.shape(low))
    return call(x, axis=g.axis(x.value.ndim))


function(
    "flip",
    fuzz=drawn(of_axis, np.flip, **ALL),
    signature="(x, axis)",
    edges=["F.flip(s(N, 3), 0)", "F.flip(s(), 0)"],
    errors=[
        "F.flip(f(2, 3), 2) -> InvalidType",
        "F.flip(f(2, 3), 'a') -> TypeError",
        "F.flip(f(2, 3), -3) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, 1),
)

function(
    "fliplr",
    fuzz=drawn(lambda g: call(g.x(*g.shape(2))), np.fliplr, **ALL),
    signature="(a)",
    edges="F.fliplr(s(N, 3))",
    errors="F.fliplr(f(3)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "flipud",
    fuzz=drawn(lambda g: call(g.x(*g.shape(1))), np.flipud, **ALL),
    signature="(a)",
    edges="F.flipud(s(N, 3))",
    errors="F.flipud(f(())) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "broadcast_to",
    cases=case(
        lambda o, x: o.broadcast_to(x, (2, 3, 4)),
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        (3, 1),
    ),
    fuzz=drawn(
        lambda g: (lambda s: call(g.x(*g.broadcastable(s)), s))(g.shape()),
        np.broadcast_to,
        **ALL,
    ),
    signature="(x, shape)",
    edges=["F.broadcast_to(s(N, 1), (N, 3))", "F.broadcast_to(s(), (2, 3))"],
    errors=[
        "F.broadcast_to(f(2, 3), (2, 4)) -> InvalidType",
        "F.broadcast_to(f(2, 3), (3,)) -> InvalidType",
        "F.broadcast_to(f(2, 3), (2, 2, 3)) -> float32 (2, 2, 3)",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(1, 1024), speed.MATRIX),
)

function(
    "broadcast",
    fuzz=drawn(
        lambda g: (
            lambda s: call(*(g.x(*g.broadcastable(s)) for _ in range(g.integer(2, 3))))
        )(g.shape()),
        np.broadcast_arrays,
        **ALL,
    ),
    signature="(*args)",
    edges=["F.broadcast(s(N, 3), s(3), s(N, 1))", "F.broadcast(s(), s(2))"],
    errors=[
        "F.broadcast(f(2, 3), f(4)) -> InvalidType",
        "F.broadcast() -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(1024, 1), speed.matrix, call=lambda *xs: F.broadcast(*xs)[0]
    ),
)

function(
    "expand_dims",
    cases=[
        case(lambda o, x: o.expand_dims(x, -1), lambda x: x[..., None], (2, 3)),
        case(lambda o, x: o.expand_dims(x, 1), lambda x: x[:, None], (2, 3)),
        case(lambda o, x: o.expand_dims(x, 0), lambda x: x[None], (2, 3)),
    ],
    fuzz=drawn(
        lambda g: (lambda x: call(x, g.integer(-x.value.ndim - 1, x.value.ndim)))(
            g.x(*g.shape())
        ),
        np.expand_dims,
        **ALL,
    ),
    signature="(x, axis)",
    edges=["F.expand_dims(s(N, 3), 1)", "F.expand_dims(s(), 0)"],
    errors=[
        "F.expand_dims(f(2), 3) -> InvalidType",
        "F.expand_dims(f(2), -3) -> InvalidType",
        "F.expand_dims(f(2), 'a') -> ValueError | TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, 1),
)


def squeeze(g: Draw):
    x = g.x(*(1 if g.chance(0.5) else n for n in g.shape()))
    ones = [
        i - x.value.ndim * g.integer(0, 1)
        for i, n in enumerate(x.value.shape)
        if n == 1
    ]
    return call(x, axis=g.pick(None, tuple(ones), *ones))


function(
    "squeeze",
    cases=[
        case(lambda o, x: o.squeeze(x), np.squeeze, (1, 3, 1)),
        case(lambda o, x: o.squeeze(x, (0,)), lambda x: x[0], (1, 3, 1)),
    ],
    node="reshape",
    fuzz=drawn(squeeze, lambda x, axis: np.squeeze(x, axis), **ALL),
    signature="(x, axis=None)",
    edges=["F.squeeze(s(N, 1, 3))", "F.squeeze(s())"],
    errors=[
        "F.squeeze(f(2, 1), 0) -> ValueError",
        "F.squeeze(f(2, 1), 3) -> InvalidType",
        "F.squeeze(f(2, 1), 'a') -> TypeError",
        "F.squeeze(f(1, 1), (0, 0)) -> ValueError",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(1024, 1, 1024)),
)

function(
    "separate",
    cases=[
        case(
            lambda o, x, a=axis: o.separate(x, a),
            lambda x, a=axis: list(np.moveaxis(x, a, 0)),
            (2, 3, 4),
        )
        for axis in (0, -1)
    ],
    fuzz=drawn(
        of_axis,
        lambda x, axis: [np.take(x, i, axis) for i in range(x.shape[axis])],
        **ALL,
        of="F ops",
    ),
    signature="(x, axis=0)",
    edges=["F.separate(s(N, 3))", "F.separate(s(N, 3), axis=1)", "F.separate(s())"],
    errors=[
        "F.separate(f(2, 3), axis=2) -> InvalidType",
        "F.separate(f(())) -> InvalidType",
    ],
    nothing=[],
    onnx="exported",
    speed=speed.row(speed.normal(8, 512, 256), 0),
)


def joined(g: Draw):
    shape = list(g.shape(1))
    axis = g.axis(len(shape))
    xs = []
    for _ in range(g.integer(1, 4)):
        shape[axis] = g.extent()
        xs.append(g.x(*shape))
    return call(xs, axis=axis)


function(
    "concat",
    cases=[
        case(
            lambda o, a, b: o.concat([a, b], 1),
            lambda a, b: np.concatenate([a, b], 1),
            (2, 3),
            (2, 1),
            dtypes=FLOATS_AND_INTS,
        ),
        case(
            lambda o, a, b: o.concat([a, b], 0),
            lambda a, b: np.concatenate([a, b]),
            (2, 3),
            (1, 3),
        ),
        case(
            lambda o, a, b: o.concat([a, b], -3),
            lambda a, b: np.concatenate([a, b]),
            (2, 3, 4),
            (0, 3, 4),
        ),
    ],
    fuzz=drawn(joined, np.concatenate, weight=2, **ALL),
    signature="(xs, axis=1)",
    edges=[
        "F.concat([s(N, 3), s(N, 2)])",
        "F.concat([s(N, 3), s(2, 3)], axis=0)",
        "F.concat([s(), s()], axis=0)",
    ],
    errors=[
        "F.concat([f(2, 3), f(3, 3)]) -> InvalidType",
        "F.concat([f(2, 3), d(2, 3)]) -> InvalidType",
        "F.concat([f(2, 3), f(2, 3)], axis=2) -> InvalidType",
        "F.concat([f(2, 3), f(2)]) -> InvalidType",
        "F.concat([f(2, 3)], axis='a') -> TypeError",
        "F.concat([]) -> InvalidType",
        "F.concat([i(2, 3), i(2, 3)]) -> int32 (2, 6)",
    ],
    onnx="exported",
    speed=[
        speed.row([speed.normal(8, 32, 32, 64)] * 4, 1),
        speed.row([speed.normal(8, 12, 64, 64)] * 3, 1, use="of twelve channels"),
        speed.row(
            [speed.last(speed.normal(8, 12, 64, 64))] * 3,
            1,
            use="of twelve channels, channels last",
        ),
    ],
)


def alike(g: Draw, low=0):
    shape = g.shape(low)
    return [g.x(*shape) for _ in range(g.integer(1, 4))]


function(
    "stack",
    cases=[
        case(
            lambda o, a, b: o.stack([a, b], 1),
            lambda a, b: np.stack([a, b], 1),
            (2, 3),
            (2, 3),
        ),
        case(
            lambda o, a, b: o.stack([a, b]),
            lambda a, b: np.stack([a, b]),
            (2, 3),
            (2, 3),
        ),
    ],
    node="concat",
    fuzz=drawn(
        lambda g: (lambda xs: call(xs, axis=g.axis(xs[0].value.ndim + 1)))(alike(g)),
        np.stack,
        weight=2,
        **ALL,
    ),
    signature="(xs, axis=0)",
    edges=[
        "F.stack([s(N, 3), s(N, 3)])",
        "F.stack([s(N, 3), s(N, 3)], axis=2)",
        "F.stack([s(), s()])",
    ],
    errors=[
        "F.stack([f(2), f(3)]) -> InvalidType",
        "F.stack([f(2), d(2)]) -> InvalidType",
        "F.stack([f(2), f(2)], axis=3) -> InvalidType",
        "F.stack([]) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row([speed.normal(512, 512)] * 4),
)

function(
    "hstack",
    fuzz=drawn(lambda g: call(alike(g)), np.hstack, **ALL),
    signature="(xs)",
    edges=["F.hstack([s(N, 3), s(N, 2)])", "F.hstack([s(), s()])"],
    errors=[
        "F.hstack([f(2, 3), f(3, 3)]) -> InvalidType",
        "F.hstack([f(2), d(2)]) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row([speed.normal(512, 512)] * 4),
)

function(
    "vstack",
    fuzz=drawn(lambda g: call(alike(g)), np.vstack, **ALL),
    signature="(xs)",
    edges=["F.vstack([s(N, 3), s(2, 3)])", "F.vstack([s(), s()])"],
    errors=[
        "F.vstack([f(2, 3), f(2, 4)]) -> InvalidType",
        "F.vstack([f(2, 3), f(2)]) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row([speed.normal(512, 512)] * 4),
)

function(
    "dstack",
    fuzz=drawn(lambda g: call(alike(g)), np.dstack, **ALL),
    signature="(xs)",
    edges=["F.dstack([s(N, 3), s(N, 3)])", "F.dstack([s(), s()])"],
    errors="F.dstack([f(2, 3), f(2, 4)]) -> InvalidType",
    onnx="exported",
    speed=speed.row([speed.normal(512, 512)] * 4),
)


def split(g: Draw):
    x = g.x(*g.shape(1))
    axis = g.axis(x.value.ndim)
    n = x.value.shape[axis]
    sections = g.pick(*(d for d in range(1, n + 1) if n % d == 0)) if n else 1
    cuts = sorted(g.integer(0, n) for _ in range(g.integer(1, 3)))
    return call(x, g.pick(sections, cuts, np.array(cuts)), axis)


function(
    "split_axis",
    cases=[
        case(
            lambda o, x: o.split_axis(x, [1, 1, 3], 1),
            lambda x: np.split(x, [1, 1, 3], 1),
            (2, 5),
        ),
        case(lambda o, x: o.split_axis(x, [2], 0), lambda x: np.split(x, [2]), (5, 2)),
    ],
    fuzz=[
        drawn(split, np.split, **ALL),
        drawn(
            lambda g: (
                lambda a: call(
                    a[0][0],
                    [0] if isinstance(a[0][1], int) else list(map(int, a[0][1])),
                    a[0][2],
                )
            )(split(g)),
            np.split,
            **ALL,
            of="ops",
        ),
    ],
    signature="(x, indices_or_sections, axis, force_tuple=True)",
    edges=[
        "F.split_axis(s(N, 4), 2, 1)",
        "F.split_axis(s(N, 4), [1], 0)",
        "F.split_axis(s(), 1, 0)",
    ],
    errors=[
        "F.split_axis(f(2, 4), 3, 1) -> InvalidType",
        "F.split_axis(f(2, 4), 2, 2) -> InvalidType",
        "F.split_axis(f(2, 4), 0, 1) -> ZeroDivisionError | ValueError",
        "F.split_axis(f(2, 4), [1, 9], 1) -> InvalidType",
        "F.split_axis(f(2, 4), 'a', 1) -> TypeError",
        "F.split_axis(f(2, 4), 2.5, 1) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.images, 4, 1),
)


def by_time(*xs):
    return [np.stack([x[t] for x in xs if t < len(x)]) for t in range(len(xs[0]))]


def transposed_sequences(g: Draw):
    lengths = sorted((g.extent() for _ in range(g.integer(1, 4))), reverse=True)
    rest = g.shape(0, 2)
    return call([g.x(n, *rest) for n in lengths])


def transpose_sequence(xs):
    return [np.stack([x[t] for x in xs if t < len(x)]) for t in range(len(xs[0]))]


function(
    "transpose_sequence",
    cases=[
        *[
            case(
                lambda o, *xs: o.transpose_sequence(list(xs)),
                by_time,
                *[(n, 2) for n in lengths],
                dtypes=FLOATS_AND_INTS,
            )
            for lengths in ((4, 4, 2, 1), (3, 0), (2, 2))
        ],
        case(lambda o, *xs: o.transpose_sequence(list(xs)), by_time, (3,), (1,)),
    ],
    fuzz=drawn(transposed_sequences, transpose_sequence, **ALL, of="F ops"),
    signature="(xs)",
    edges=[
        "F.transpose_sequence([s(3, N), s(2, N)])",
        "F.transpose_sequence([s(3, 2), s(N, 2)])",
        "F.transpose_sequence([s(), s()])",
    ],
    errors=[
        "F.transpose_sequence([f(2, 3), f(3, 3)]) -> InvalidType",
        "F.transpose_sequence([f(2, 3), d(1, 3)]) -> float32 (2, 3); float32 (1, 3)",
    ],
    others={"F.transpose_sequence([s(), s()])": "InvalidType"},
    onnx="exported",
    speed=speed.row([speed.normal(n, 64) for n in range(192, 64, -1)]),
)


def sequences(g: Draw):
    rest = g.shape(0, 2)
    xs = [g.x(g.extent(), *rest) for _ in range(g.integer(1, 4))]
    longest = max(len(x.value) for x in xs)
    return call(xs, length=g.pick(None, longest, longest + 2), padding=g.pick(0, -1.5))


def pad_sequence(xs, length, padding):
    length = max(map(len, xs)) if length is None else length
    rest = [(0, 0)] * (xs[0].ndim - 1)
    return np.stack(
        [
            np.pad(
                x,
                [(0, length - len(x)), *rest],
                constant_values=np.asarray(padding).astype(x.dtype),
            )
            for x in xs
        ]
    )


function(
    "pad_sequence",
    fuzz=drawn(sequences, pad_sequence, dtypes=FLOATS),
    signature="(xs, length=None, padding=0)",
    edges="F.pad_sequence([s(N, 3), s(2, 3)])",
    errors=[
        "F.pad_sequence([f(2), f(3)], length=2) -> InvalidType",
        "F.pad_sequence([f(2), d(3)]) -> InvalidType",
        "F.pad_sequence([f(2, 2), f(3, 3)]) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row([speed.normal(n, 64) for n in range(64, 192)]),
)


def padding(g: Draw, modes):
    x = g.x(*g.shape(1, 3))
    widths = [(g.integer(0, 3), g.integer(0, 3)) for _ in range(x.value.ndim)]
    widths = g.pick(widths, 1, (2, 1)) if x.value.size else widths
    return call(x, widths, g.pick(*modes))


def core_pad(g: Draw):
    x = g.x(*g.shape())
    widths = [[g.integer(0, 3) for _ in range(x.value.ndim)] for _ in range(2)]
    return call(x, *widths, g.pick(0.0, 1.5))


function(
    "pad",
    cases=[
        case(
            lambda o, x: o.pad(x, (1, 0), (2, 3), 1.5),
            lambda x: np.pad(x, [(1, 2), (0, 3)], constant_values=1.5),
            (2, 3),
        ),
        case(
            lambda o, x: o.pad(x, (0, 1), (0, 0)),
            lambda x: np.pad(x, [(0, 0), (1, 0)]),
            (2, 3),
        ),
    ],
    fuzz=[
        drawn(lambda g: padding(g, ["constant"]), np.pad, **ALL),
        drawn(
            lambda g: padding(g, ["edge", "reflect", "symmetric", "wrap"]),
            np.pad,
            **ALL,
        ),
        drawn(
            core_pad,
            lambda x, b, a, v: (
                np.pad(x, list(zip(b, a)), constant_values=v) if x.ndim else x
            ),
            of="ops",
        ),
    ],
    signature="(x, pad_width, mode, **keywords)",
    edges=[
        "F.pad(s(N, 3), ((1, 0), (0, 2)), 'constant', constant_values=3.)",
        "F.pad(s(), (), 'constant')",
    ],
    errors=[
        "F.pad(f(2), -1, 'constant') -> ValueError",
        "F.pad(f(2), 1, 'foo') -> ValueError",
        "F.pad(f(2), ((1, 1), (1, 1)), 'constant') -> ValueError",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.images, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant"),
        speed.row(
            speed.images, ((0, 0), (0, 0), (1, 1), (1, 1)), "reflect", use="reflect"
        ),
    ],
)


def repeated(x, repeats, axis=None):
    if np.max(repeats, initial=0) > 2**24:
        raise ValueError("NumPy would take minutes")
    return np.repeat(x, repeats, axis)


def repeat_each(g: Draw):
    x = g.x(*g.shape(1))
    axis = g.axis(x.value.ndim)
    return call(
        x, tuple(g.integer(0, 3) for _ in range(x.value.shape[axis])), axis=axis
    )


function(
    "repeat",
    fuzz=[
        drawn(
            lambda g: (
                lambda x: call(
                    x, g.integer(0, 3), axis=g.pick(None, g.axis(x.value.ndim))
                )
            )(g.x(*g.shape(1))),
            repeated,
            **ALL,
        ),
        drawn(
            repeat_each,
            lambda x, r, axis: np.repeat(x, np.array(r, int), axis),
            refuses=(ValueError,),
            **ALL,
        ),
    ],
    signature="(x, repeats, axis=None)",
    edges=[
        "F.repeat(s(N, 3), 2)",
        "F.repeat(s(N, 3), (1, 2, 0), axis=1)",
        "F.repeat(s(), 2)",
    ],
    errors=[
        "F.repeat(f(2), -1) -> ValueError",
        "F.repeat(f(2, 3), 2, axis=2) -> AxisError | InvalidType",
        "F.repeat(f(2), 'a') -> TypeError",
        "F.repeat(f(2, 3), (1, 2), axis=1) -> ValueError",
        "F.repeat(f(2), 2, axis='a') -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(512, 512), 4, 1),
)

function(
    "tile",
    fuzz=drawn(
        lambda g: call(
            g.x(*g.shape(0, 3)),
            g.pick(2, 0, tuple(g.integer(0, 3) for _ in range(g.integer(1, 3)))),
        ),
        np.tile,
        **ALL,
    ),
    signature="(x, reps)",
    edges=["F.tile(s(N, 3), (2, 1))", "F.tile(s(2, 3), (N, 1))", "F.tile(s(), 2)"],
    errors=[
        "F.tile(f(2), -1) -> ValueError",
        "F.tile(f(2), 'a') -> TypeError",
        "F.tile(f(2), (2, 2)) -> float32 (2, 4)",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(512, 512), (2, 2)),
)


def key(g: Draw, n):
    """A key of one axis: an integer, a slice or an array."""
    kind = g.integer(0, 4)
    if kind == 0 and n:
        return g.integer(-n, n - 1)
    if kind == 1 and n:
        return g.index(n, *g.shape(1, 1), low=-n, dtypes="bhilq")
    step = g.pick(None, 1, 2, -1, -3)
    return slice(
        g.pick(None, g.integer(-n - 1, n + 1)),
        g.pick(None, g.integer(-n - 1, n + 1)),
        step,
    )


def picked(g: Draw):
    x = g.x(*g.shape(1))
    keys, arrays = [], 0
    for n in x.value.shape[: g.integer(0, x.value.ndim)]:
        k = key(g, n)
        if hasattr(k, "role"):
            arrays += 1
            k = k if arrays == 1 else slice(None)
        keys.append(k)
    if g.chance(0.2):
        keys.insert(g.integer(0, len(keys)), None)
    if g.chance(0.2):
        keys.append(Ellipsis)
    return x, tuple(keys)


function(
    "get_item",
    fuzz=[
        drawn(lambda g: call(*picked(g)), lambda x, keys: x[keys], weight=3, **ALL),
        drawn(
            lambda g: (
                lambda x: call(x, g.mask(*x.value.shape[: g.integer(1, x.value.ndim)]))
            )(g.x(*g.shape(1))),
            lambda x, m: x[m],
            **ALL,
        ),
    ],
    signature="(x, slices)",
    edges=[
        "F.get_item(s(N, 3), (slice(None, None, -1), [0, 2, 2]))",
        "F.get_item(s(N, 3), (slice(None), None, slice(1, 3)))",
        "F.get_item(s(3, N), 1)",
        "F.get_item(s(), ())",
        "F.get_item(s(), Ellipsis)",
        "F.get_item(s(), None)",
    ],
    errors="F.get_item(f(2), 5) -> IndexError",
    onnx="exported",
    speed=[
        speed.row(speed.matrix, (slice(None), slice(None, None, 2))),
        speed.row(
            speed.normal(8192, 128), speed.indices(8192, 8192), use="by an array"
        ),
        speed.row(speed.matrix, speed.bools(1024), use="by booleans"),
    ],
)


def scatter_add(g: Draw):
    a, keys = picked(g)
    b = a.value[tuple(k.value if hasattr(k, "role") else k for k in keys)]
    return call(a, keys, g.x(*b.shape))


def added(a, keys, b):
    y = a.copy()
    np.add.at(y, keys, b)
    return y


function(
    "scatter_add",
    fuzz=drawn(scatter_add, added),
    signature="(a, slices, b)",
    edges=[
        "F.scatter_add(s(4, 3), slice(0, N), s(N, 3))",
        "F.scatter_add(s(N, 3), slice(0, N), s(N, 3))",
    ],
    errors=[
        "F.scatter_add(f(4), slice(0, 2), f(3)) -> ValueError",
        "F.scatter_add(f(4), slice(0, 2), d(2)) -> float32 (4,)",
        "F.scatter_add({}, (), f(3)) -> TypeError",
        "F.scatter_add(f(3), (), [1.0, 2.0, 3.0]) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(8192, 128), speed.indices(8192, 8192), speed.normal(8192, 128)
    ),
)


def core_slice(g: Draw):
    x = g.x(*g.shape())
    keys, ranges = [], []
    for n in x.value.shape:
        cut = range(*slice(g.integer(0, n), g.integer(0, n), g.pick(1, 2)).indices(n))
        cut = cut[::-1] if g.chance(0.3) else cut
        keys.append(np.arange(n)[list(cut)])
        ranges.append((cut.start if len(cut) else 0, len(cut), cut.step))
    return call(x, ranges)


def sliced(x, ranges):
    for axis, (start, n, step) in enumerate(ranges):
        x = x.take(start + step * np.arange(n), axis)
    return x


function(
    "slice",
    cases=case(
        lambda o, x: o.slice(x, [(3, 2, -2), (1, 3, 1)]),
        lambda x: x[3::-2, 1:4],
        (4, 5),
    ),
    node="take",
    fuzz=drawn(core_slice, sliced, **ALL, of="ops"),
)


def strided(g: Draw):
    x = g.x(*g.shape(1))
    if x.value.size == 0:
        return call(x, (0,), (1,))
    rows, columns = g.integer(1, 3), g.integer(1, 3)
    step = g.integer(0, max((x.value.size - 1) // (rows + columns), 0))
    return call(x, (rows, columns), (step, g.integer(0, step)), g.pick(None, 0))


def as_strided(x, shape, strides, offset=None):
    places = np.zeros(shape, int) + (offset or 0)
    for axis, (n, step) in enumerate(zip(shape, strides)):
        places += (np.arange(n) * step).reshape(-1, *[1] * (len(shape) - axis - 1))
    return x.ravel()[places]


def core_strided(g: Draw):
    (x, shape, strides, *_), _ = strided(g)
    return call(x, shape, strides, 0)


function(
    "as_strided",
    cases=[
        # Each element once, several times, backwards and not at all.
        *[
            case(
                lambda o, x, s=shape, t=strides, f=first: o.as_strided(x, s, t, f),
                lambda x, s=shape, t=strides, f=first: x.ravel()[
                    f
                    + sum(
                        (np.arange(n) * k).reshape(-1, *(1,) * (len(s) - a - 1))
                        for a, (n, k) in enumerate(zip(s, t))
                    )
                    if 0 not in s
                    else np.zeros(s, int)
                ],
                (4, 5),
            )
            for shape, strides, first in (
                ((3, 2), (2, 1), 1),
                ((5, 4), (3, 1), 0),
                ((2, 3, 3), (-4, 0, 2), 9),
                ((0, 2), (9, 9), 99),
                ((), (), 5),
            )
        ]
    ],
    fuzz=[drawn(strided, as_strided, **ALL), drawn(core_strided, as_strided, of="ops")],
    signature="(x, shape, strides, storage_offset=None)",
    edges="F.as_strided(s(2 * N, 3), (N, 3), (6, 1))",
    errors="F.as_strided(f(4), (3,), (2,)) -> ValueError",
    onnx="exported",
    speed=speed.row(speed.matrix, (1024, 512), (1024, 2)),
)


def diagonal(g: Draw):
    x = g.x(*g.shape(2))
    a, b = g.rng.permutation(x.value.ndim)[:2].tolist()
    return call(
        x, offset=g.integer(-3, 3), axis1=a, axis2=b - x.value.ndim * g.integer(0, 1)
    )


# NumPy wraps 2**31
def diagonal_of(x, offset=0, axis1=0, axis2=1):
    return np.diagonal(x, np.clip(offset, -(2**20), 2**20), axis1, axis2)


function(
    "diagonal",
    cases=[
        case(
            lambda o, x, a=axes, k=offset: o.diagonal(x, k, *a),
            lambda x, a=axes, k=offset: np.diagonal(x, k, *a),
            (3, 5, 4),
        )
        for axes in ((0, 1), (2, 0), (-1, 1))
        for offset in (0, 1, -2, 9)
    ],
    fuzz=[drawn(diagonal, diagonal_of, **ALL), drawn(diagonal, diagonal_of, of="ops")],
    signature="(x, offset=0, axis1=0, axis2=1)",
    edges=["F.diagonal(s(N, 3, 3), axis1=1, axis2=2)", "F.diagonal(s(N, 3))"],
    errors=[
        "F.diagonal(f(3)) -> InvalidType",
        "F.diagonal(f(2, 3), axis1=0, axis2=0) -> ValueError",
        "F.diagonal(f(2, 3), axis1=0, axis2=5) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(16, 256, 256), 0, 1, 2),
)


def permuted(g: Draw):
    x = g.x(*g.shape(1))
    axis = g.axis(x.value.ndim)
    n = x.value.shape[axis]
    index = g.index(n, n, dtypes="bhil")
    index.value = (
        g.rng.permutation(n).astype(index.value.dtype) if n < 128 else np.arange(n)
    )
    return call(x, index, axis=axis, inv=g.chance(0.4))


function(
    "permutate",
    fuzz=drawn(
        permuted,
        lambda x, i, axis, inv: np.take(x, np.argsort(i) if inv else i, axis),
        **ALL,
    ),
    signature="(x, indices, axis=0, inv=False)",
    edges=[
        "F.permutate(s(N, 3), numpy.arange(N)[::-1])",
        "F.permutate(s(N, 3), numpy.array([2, 0, 1]), axis=1)",
    ],
    errors=[
        "F.permutate(f(3), numpy.array([0, 1], 'i')) -> float32 (2,)",
        "F.permutate(f(3), numpy.array([0, 1, 3], 'i')) -> IndexError",
        "F.permutate(f(3), numpy.array([0, 1, 1], 'i')) -> float32 (3,)",
        "F.permutate(f(3), f(3)) -> ValueError",
        "F.permutate(f(3), numpy.array([0, 1, 2], 'i'), axis=1) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(8192, 128),
        speed.constant(
            speed.Input(lambda r, s: r.permutation(*s).astype("i"), (8192,))
        ),
    ),
)


def select(g: Draw):
    n, c = g.extent(), g.extent(1)
    return call(g.x(n, c), g.index(c, n))


function(
    "select_item",
    cases=case(
        lambda o, x: o.select_item(x, np.array([2, 0, 2], "i")),
        lambda x: x[np.arange(3), [2, 0, 2]],
        (3, 4),
    ),
    operands=case(lambda o, x, t: o.select_item(x, positive(t)), None, (5, 3), (5,)),
    fuzz=drawn(select, lambda x, t: x[np.arange(len(x)), t.astype(int)]),
    signature="(x, t)",
    edges="F.select_item(s(N, 3), i(3, N))",
    errors=[
        "F.select_item(f(2, 3), i(3)) -> InvalidType",
        "F.select_item(f(2, 3), f(2)) -> InvalidType",
        "F.select_item(f(2), i(2)) -> InvalidType",
        "F.select_item(f(2, 3), i(2) + 5) -> IndexError",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(100_000, 10), speed.indices(10, 100_000)),
)

IDS = np.array([[0, 3, 3], [2, -1, 0]])


def embed(g: Draw):
    n = g.extent(1)
    W = g.x(n, g.extent())
    ignore = g.pick(None, None, -1, 0)
    return call(
        g.index(n, *g.shape(0, 3), low=-1 if ignore == -1 else 0),
        W,
        ignore_label=ignore,
    )


def check_range(ids, n):
    if ids.size and not (0 <= ids.min() and ids.max() < n):
        raise IndexError("no such row")


def embed_id(ids, W, ignore_label):
    ids = ids.astype(int)
    if ignore_label is None:
        check_range(ids, len(W))
        return W[ids]
    keep = ids != ignore_label
    check_range(ids[keep], len(W))
    return np.where(keep[..., None], W[np.where(keep, ids, 0)], 0)


function(
    "embed_id",
    cases=[
        case(lambda o, w: o.embed_id(np.abs(IDS), w), lambda w: w[np.abs(IDS)], (4, 5)),
        case(
            lambda o, w: o.embed_id(IDS, w, -1),
            lambda w: np.where((IDS == -1)[..., None], 0, w[IDS]),
            (4, 5),
        ),
    ],
    operands=case(lambda o, x, w: o.embed_id(positive(x), w), None, (5,), (2, 4)),
    fuzz=drawn(embed, embed_id, weight=2),
    signature="(x, W, ignore_label=None)",
    edges=[
        "F.embed_id(i(4, N), s(4, 3))",
        "F.embed_id(i(4, N, 2), s(4, 3), ignore_label=1)",
    ],
    errors=[
        "F.embed_id(i(2), f(3)) -> InvalidType",
        "F.embed_id(f(2), f(3, 4)) -> InvalidType",
        "F.embed_id(i(2), i(3, 4)) -> InvalidType",
        "F.embed_id(i(2, 2), f(4, 4)) -> float32 (2, 2, 4)",
        "F.embed_id(l(2), f(4, 4)) -> float32 (2, 4)",
        "F.embed_id(i(20), f(4, 4)) -> float32 (20, 4)",
        "F.embed_id(-1 - i(2), f(4, 4)) -> float32 (2, 4) | IndexError",
    ],
    onnx="exported",
    speed=speed.row(speed.indices(10_000, 8192), speed.normal(10_000, 128)),
)


def blocks(g: Draw, deep):
    r = g.integer(1, 3)
    n, c, h, w = g.extent(), g.integer(1, 3), g.extent(), g.extent()
    shape = (n, c * r * r, h, w) if deep else (n, c, h * r, w * r)
    return call(g.x(*shape), r)


def depth2space(x, r):
    n, c, h, w = x.shape
    x = x.reshape(n, r, r, c // r**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // r**2, h * r, w * r)


function(
    "depth2space",
    fuzz=drawn(lambda g: blocks(g, True), depth2space),
    signature="(X, r)",
    edges="F.depth2space(s(N, 4, 2, 2), 2)",
    errors=[
        "F.depth2space(f(2, 3, 4, 4), 2) -> ValueError",
        "F.depth2space(f(2, 4), 2) -> InvalidType",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.images, 2),
        speed.row(speed.last(speed.images), 2, use="channels last"),
    ],
)


def space2depth(x, r):
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * r * r, h // r, w // r)


function(
    "space2depth",
    fuzz=drawn(lambda g: blocks(g, False), space2depth),
    signature="(X, r)",
    edges="F.space2depth(s(N, 2, 4, 4), 2)",
    errors="F.space2depth(f(2, 3, 5, 4), 2) -> ValueError",
    onnx="exported",
    speed=[
        speed.row(speed.images, 2),
        speed.row(speed.last(speed.images), 2, use="channels last"),
    ],
)

function(
    "resize_images",
    fuzz=drawn(
        lambda g: call(
            g.x(g.extent(), g.extent(1), g.extent(1), g.extent(1)),
            (g.extent(1), g.extent(1)),
            mode=g.pick("bilinear", "nearest"),
            align_corners=g.chance(0.5),
        )
    ),
    signature="(x, output_shape, *, mode='bilinear', align_corners=True)",
    edges="F.resize_images(s(N, 3, 4, 4), (6, 3))",
    errors=[
        "F.resize_images(f(2, 3, 4), (2, 2)) -> InvalidType",
        "F.resize_images(f(2, 3, 4, 4), (2,)) -> IndexError | ValueError",
        "F.resize_images(f(2, 3, 4, 4), (2, 2), mode='foo') -> AssertionError | ValueError",
        "F.resize_images(i(2, 3, 4, 4), (2, 2)) -> InvalidType",
    ],
    nothing=[(0, 3, 6, 3)],
    half=False,
    onnx="exported",
    speed=speed.row(speed.normal(8, 32, 32, 32), (64, 64)),
)

function(
    "spatial_transformer_grid",
    fuzz=drawn(
        lambda g: call(g.x(g.extent(), 2, 3), (g.extent(1), g.extent(1))), within=2
    ),
    signature="(theta, output_shape, **kwargs)",
    edges="F.spatial_transformer_grid(s(N, 2, 3), (3, 4))",
    errors="F.spatial_transformer_grid(f(2, 3, 3), (2, 2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.normal(64, 2, 3), (64, 64)),
)


def sampler(g: Draw):
    n = g.extent()
    return call(
        g.x(n, g.extent(1), g.extent(2), g.extent(2)),
        g.x(n, 2, g.extent(1), g.extent(1), low=-1.3, high=1.3),
    )


grid = speed.uniform(-1.0, 1.0, 8, 2, 64, 64)

function(
    "spatial_transformer_sampler",
    fuzz=drawn(sampler, within=4, smooth=False, dtypes="fd"),
    signature="(x, grid, **kwargs)",
    edges="F.spatial_transformer_sampler(s(N, 3, 4, 4), u(N, 2, 3, 3))",
    errors=[
        "F.spatial_transformer_sampler(f(2, 3, 4, 4), f(2, 3, 2, 2)) -> InvalidType",
        "F.spatial_transformer_sampler(f(2, 3, 4, 4), d(2, 2, 2, 2)) -> InvalidType",
    ],
    nothing=[(0, 3, 3, 3)],
    onnx="exported",
    speed=speed.row(speed.images, grid),
)


def resampled(x, rows, columns):
    return np.array(
        [
            [
                [[interpolated(plane, r, c) for c in columns] for r in rows]
                for plane in image
            ]
            for image in x
        ]
    )


def between(g: Draw, n: int, size: int):
    """``n`` positions between the pixels of an axis."""
    return g.x(n, low=0, high=size - 1, role="constant")


def draw_core_resampled(g: Draw):
    h, w = g.integer(1, 6), g.integer(1, 6)
    return call(
        g.x(g.extent(), g.extent(), h, w),
        between(g, g.extent(), h),
        between(g, g.extent(), w),
    )


function(
    "resample_2d",
    cases=[
        case(
            lambda o, x: o.resample_2d(
                x, np.array([0, 0.25, 2.5, 3, 3]), np.array([4, 1.5, 0.0])
            ),
            lambda x: resampled(x, [0, 0.25, 2.5, 3, 3], [4, 1.5, 0]),
            (2, 3, 4, 5),
        ),
        case(
            lambda o, x: o.resample_2d(x, np.linspace(0, 3, 9), np.linspace(0, 1, 7)),
            lambda x: resampled(x, np.linspace(0, 3, 9), np.linspace(0, 1, 7)),
            (1, 2, 4, 2),
        ),
        case(
            lambda o, x: o.resample_2d(x, np.array([1, 5.0]), np.zeros(0)),
            lambda x: np.zeros((2, 1, 2, 0)),
            (2, 1, 6, 3),
        ),
    ],
    takes_arrays=True,
    # Four products and three sums for each element.
    flops=[7 * 2 * 3 * 5 * 3, 7 * 2 * 9 * 7, 0],
    fuzz=drawn(draw_core_resampled, dtypes="fd", within=2, of="ops"),
)


def sampled(x, rows, columns):
    y = np.zeros((*x.shape[:2], rows[0].size))
    for n, c, p in np.ndindex(*y.shape):
        y[n, c, p] = interpolated(x[n, c], rows[n].flat[p], columns[n].flat[p])
    return y.reshape(*x.shape[:2], *rows.shape[1:])


def draw_core_sampled(g: Draw):
    n, points = g.extent(), g.shape(0, 2)
    h, w = g.integer(1, 6), g.integer(1, 6)
    at = [g.x(n, *points, low=-1.5, high=size + 0.5) for size in (h, w)]
    return call(g.x(n, g.extent(), h, w), *at)


function(
    "sample_2d",
    cases=[
        case(
            lambda o, x, r, c: o.sample_2d(x, r, c),
            sampled,
            (2, 3, 3, 4),
            (2, 5),
            (2, 5),
            low=-1.9,
            high=3.9,
        ),
        case(
            lambda o, x, r, c: o.sample_2d(x, r, c),
            sampled,
            (1, 2, 3, 2),
            (1, 2, 3),
            (1, 2, 3),
            low=0.1,
            high=0.9,
        ),
    ],
    flops=[7 * 2 * 3 * 5, 7 * 2 * 2 * 3],
    fuzz=drawn(draw_core_sampled, dtypes="fd", smooth=False, within=4, of="ops"),
)


def taken(g: Draw):
    x = g.x(*(max(n, 1) for n in g.shape(1)))
    axis = g.integer(-x.value.ndim, x.value.ndim - 1)
    n = x.value.shape[axis]
    return x, g.index(n, *g.shape(0, 2), low=-n), axis


function(
    "take",
    cases=[
        case(
            lambda o, x, a=axis, i=ids: o.take(x, np.asarray(i), a),
            lambda x, a=axis, i=ids: np.take(x, i, a),
            (4, 5, 3),
            dtypes=FLOATS_AND_INTS,
        )
        for axis, ids in (
            (0, IDS),
            (1, [4, -5, 0]),
            (-1, 2),
            (1, np.zeros((2, 0), "i")),
        )
    ],
    takes_arrays=True,
    fuzz=drawn(
        lambda g: call(*taken(g)),
        lambda x, index, axis: np.take(x, index.astype(int), axis),
        of="ops",
    ),
)


def core_added_at(x, index, y, axis):
    z = x.copy()
    np.add.at(
        np.moveaxis(z, axis, 0),
        index.astype(int),
        np.moveaxis(
            y,
            tuple(range(axis % x.ndim, axis % x.ndim + index.ndim)),
            tuple(range(index.ndim)),
        ),
    )
    return z


def index_add(g: Draw):
    x, index, axis = taken(g)
    return call(
        x, index, g.x(*np.take(x.value, index.value.astype(int), axis).shape), axis
    )


function(
    "index_add",
    cases=[
        case(
            lambda o, x, y: o.index_add(x, IDS, y, 1),
            lambda x, y: added_at(x, (slice(None), IDS), y),
            (2, 4, 3),
            (2, 2, 3, 3),
        ),
        case(
            lambda o, x, y: o.index_add(x, IDS[0], y),
            lambda x, y: added_at(x, IDS[0], y),
            (4, 3),
            (3, 3),
        ),
    ],
    takes_arrays=True,
    flops=[0, 0],
    fuzz=drawn(index_add, core_added_at, within=4, of="ops"),
)


def pad_by_copy(g: Draw):
    x = g.x(*(max(n, 1) for n in g.shape(1)))
    before, after = ([g.integer(0, 4) for _ in x.value.shape] for _ in range(2))
    return call(x, before, after, g.pick("edge", "reflect", "symmetric", "wrap"))


function(
    "pad_by_copy",
    cases=[
        case(
            lambda o, x, b=before, a=after, m=mode: o.pad_by_copy(x, b, a, m),
            lambda x, b=before, a=after, m=mode: np.pad(x, list(zip(b, a)), m),
            (4, 1, 3),
            dtypes=FLOATS_AND_INTS,
        )
        for mode in ("edge", "reflect", "symmetric", "wrap")
        for before, after in (((1, 0, 2), (2, 0, 1)), ((9, 0, 1), (7, 2, 8)))
    ],
    node="pad",
    fuzz=drawn(
        pad_by_copy,
        lambda x, before, after, mode: np.pad(x, list(zip(before, after)), mode),
        within=2,
        of="ops",
    ),
)
