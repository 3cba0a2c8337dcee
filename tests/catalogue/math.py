"""Reductions, products, linear algebra and Fourier transforms."""

from __future__ import annotations

import numpy as np
import scipy.special as sp

import renga.functions as F
from renga.utils import CooMatrix
from tests.fuzz.draw import FLOATS, INTS, Built, Draw
from tests.fuzz.table import call

from . import speed
from .row import case, drawn, function, reduction
from .shared import added_at


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


function(
    "sum",
    cases=[
        *reduction(np.sum),
        case(lambda o, x: o.sum(x, (0,)), lambda x: x.sum(0), (0, 3)),
        case(lambda o, x: o.sum(x, (1,)), lambda x: x.sum(1), (3, 1000)),
        case(lambda o, x: o.sum(x), np.sum, (300, 400)),
    ],
    fuzz=[
        drawn(summed, np.sum, special=True),
        drawn(lambda g: call(g.x(*g.shape(0, 6))), np.sum, of="ops"),
    ],
    signature="(x, axis=None, keepdims=False)",
    edges=[
        "F.sum(s(N, 3))",
        "F.sum(s(N, 3), axis=0)",
        "F.sum(s(N, 3), axis=1, keepdims=True)",
        "F.sum(s())",
    ],
    errors=[
        "F.sum(i(2, 3)) -> InvalidType",
        "F.sum(l(2, 3), axis=1) -> InvalidType",
        "F.sum(f(2, 3), axis=2) -> InvalidType",
        "F.sum(f(2, 3), axis=-3) -> InvalidType",
        "F.sum(f(2, 3), axis=(0, 0)) -> ValueError",
        "F.sum(f(2, 3), axis=(0, 1.5)) -> TypeError",
        "F.sum(f(2, 3), axis=1.5) -> TypeError",
        "F.sum(f(2, 3), axis=(0, 1), keepdims=True) -> float32 (1, 1)",
        "F.sum(f(2, 3), axis='0') -> TypeError",
        "F.sum(f(2, 3), axis=[0]) -> TypeError",
        "F.sum(h(2, 3)) -> float16 ()",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.uniform(0.5, 1.5, *speed.MATRIX)),
        speed.row(speed.images, (0, 2, 3), use="of channels"),
        speed.row(
            speed.last(speed.images), (0, 2, 3), use="of channels, channels last"
        ),
        speed.row(speed.uniform(0.5, 1.5, *speed.ROWS_OF_TEN), 1, use="of rows of ten"),
        speed.row(speed.matrix, 0, use="of columns"),
    ],
)

function(
    "prod",
    cases=[
        *reduction(np.prod),
        case(
            lambda o, x: o.prod(x, (1,)),
            lambda x: x.prod(1),
            (4, 20),
            low=0.8,
            high=1.2,
        ),
        case(
            lambda o, x: o.prod(x, (0, 2)),
            lambda x: x.prod((0, 2)),
            (4, 2, 5),
            low=0.8,
            high=1.2,
        ),
    ],
    fuzz=drawn(lambda g: over_axes(g, low=-1.2, high=1.2), np.prod),
    signature="(x, axis=None, keepdims=False)",
    edges=["F.prod(s(N, 3))", "F.prod(s(N, 3), axis=1)", "F.prod(s())"],
    errors=[
        "F.prod(i(2, 3)) -> InvalidType",
        "F.prod(f(2, 3), axis=2) -> InvalidType",
        "F.prod(f(2, 3), axis=(0, 0)) -> ValueError",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.uniform(0.5, 1.5, *speed.MATRIX)),
        speed.row(speed.uniform(0.5, 1.5, *speed.ROWS_OF_TEN), 1, use="of rows of ten"),
    ],
)

function(
    "max",
    cases=[
        *reduction(np.max),
        case(lambda o, x: o.max(x, (1,)), lambda x: x.max(1), (70, 9)),
    ],
    fuzz=drawn(over_axes, np.max, smooth=False, special=True),
    signature="(x, axis=None, keepdims=False)",
    edges=["F.max(s(N, 3))", "F.max(s(N, 3), axis=1)", "F.max(s())"],
    errors=[
        "F.max(i(2, 3)) -> InvalidType",
        "F.max(f(2, 3), axis=2) -> InvalidType",
        "F.max(f(2, 3), axis=(0, 0)) -> ValueError",
        "F.max(f(2, 3), axis=1.5) -> TypeError",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.uniform(0.5, 1.5, *speed.MATRIX)),
        speed.row(speed.images, (0, 2, 3), use="of channels"),
        speed.row(
            speed.last(speed.images), (0, 2, 3), use="of channels, channels last"
        ),
        speed.row(speed.uniform(0.5, 1.5, *speed.ROWS_OF_TEN), 1, use="of rows of ten"),
        speed.row(speed.matrix, 0, use="of columns"),
    ],
)

function(
    "min",
    cases=[
        *reduction(np.min),
        case(lambda o, x: o.min(x, (0,)), lambda x: x.min(0), (90, 3)),
    ],
    fuzz=drawn(over_axes, np.min, smooth=False, special=True),
    signature="(x, axis=None, keepdims=False)",
    edges=["F.min(s(N, 3))", "F.min(s(N, 3), axis=1)", "F.min(s())"],
    errors="F.min(f(2, 3), axis=2) -> InvalidType",
    onnx="exported",
    speed=[
        speed.row(speed.uniform(0.5, 1.5, *speed.MATRIX)),
        speed.row(speed.uniform(0.5, 1.5, *speed.ROWS_OF_TEN), 1, use="of rows of ten"),
    ],
)


def weighted(g: Draw):
    x = g.x(*g.shape(1, least=1))
    axis = g.axis(x.value.ndim)
    w = g.positive(*(x.value.shape if g.chance(0.5) else [x.value.shape[axis]]))
    return call(x, axis=axis, weights=w, keepdims=g.chance(0.5))


def average(x, axis, weights, keepdims):
    return np.average(x, axis, weights, keepdims=keepdims)


function(
    "mean",
    fuzz=[
        drawn(
            lambda g: call(*over_axes(g)[0], axis=None), lambda x, axis: x.mean(axis)
        ),
        drawn(over_axes, np.mean),
        drawn(weighted, average, within=8),
    ],
    signature="(x, axis=None, weights=None, keepdims=False)",
    edges=["F.mean(s(N, 3))", "F.mean(s(N, 3), axis=1)", "F.mean(s())"],
    errors="F.mean(i(2, 3)) -> InvalidType",
    nothing={
        "F.mean(s(N, 3))": [()],
    },
    onnx="exported",
    speed=[
        speed.row(speed.uniform(0.5, 1.5, *speed.MATRIX)),
        speed.row(speed.matrix, 0, use="of columns"),
    ],
)

function(
    "average",
    fuzz=[
        drawn(
            lambda g: call(*over_axes(g)[0], axis=None), lambda x, axis: x.mean(axis)
        ),
        drawn(over_axes, np.mean),
        drawn(weighted, average, within=8),
    ],
    signature="(x, axis=None, weights=None, keepdims=False)",
    edges=[
        "F.average(s(N, 3))",
        "F.average(s(N, 3), axis=1)",
        "F.average(s(N, 3), axis=0, weights=u(N))",
        "F.average(s())",
    ],
    errors=[
        "F.average(f(2, 3), axis=2) -> InvalidType",
        "F.average(f(2, 3), weights=f(2, 3)) -> float32 ()",
        "F.average(f(2, 3), axis=1, weights=f(2)) -> InvalidType",
        "F.average(f(2, 3), axis=1, weights=f(3)) -> float32 (2,)",
        "F.average(f(2, 3), axis=(0, 0)) -> ValueError",
    ],
    nothing={
        "F.average(s(N, 3))": [()],
    },
    onnx="exported",
    speed=speed.row(speed.uniform(0.5, 1.5, *speed.MATRIX)),
)

function(
    "logsumexp",
    cases=[
        case(lambda o, x: o.logsumexp(x, (1,)), lambda x: sp.logsumexp(x, 1), (3, 4)),
        case(lambda o, x: o.logsumexp(x), lambda x: sp.logsumexp(x), (3, 4)),
        case(
            lambda o, x: o.logsumexp(x, (0, 2)),
            lambda x: sp.logsumexp(x, (0, 2)),
            (3, 4, 5),
        ),
        case(lambda o, x: o.logsumexp(x, (1,)), lambda x: sp.logsumexp(x, 1), (700, 9)),
        case(
            lambda o, x: o.logsumexp(x, (1,)), lambda x: sp.logsumexp(x, 1), (2, 9, 400)
        ),
    ],
    fuzz=drawn(
        lambda g: over_axes(g, keepdims=False),
        lambda x, axis: np.logaddexp.reduce(
            x, tuple(range(x.ndim)) if axis is None else axis
        ),
        special=True,
    ),
    signature="(x, axis=None)",
    edges=["F.logsumexp(s(N, 3))", "F.logsumexp(s(N, 3), axis=1)", "F.logsumexp(s())"],
    errors=[
        "F.logsumexp(i(2, 3)) -> InvalidType",
        "F.logsumexp(f(2, 3), axis=2) -> InvalidType",
        "F.logsumexp(f(2, 3), axis=(0, 0)) -> ValueError",
        "F.logsumexp(f(2, 3), axis='a') -> TypeError",
    ],
    nothing=[()],
    onnx="exported",
    speed=[
        speed.row(speed.uniform(0.5, 1.5, *speed.MATRIX)),
        speed.row(speed.images, (0, 2, 3), use="of channels"),
        speed.row(speed.uniform(0.5, 1.5, *speed.ROWS_OF_TEN), 1, use="of rows of ten"),
    ],
)


def over_axis(g: Draw):
    """x of at least one axis, and one axis of it or None."""
    x = g.x(*g.shape(1))
    return call(x, axis=g.pick(None, g.axis(x.value.ndim)))


function(
    "argmax",
    cases=[
        case(
            lambda o, x, f="argmax": getattr(o, f)(x, 1),
            lambda x, f="argmax": getattr(np, f)(x, 1),
            (3, 4, 2),
            orders=0,
        ),
        case(
            lambda o, x, f="argmax": getattr(o, f)(x),
            lambda x, f="argmax": getattr(np, f)(x),
            (3, 4),
            orders=0,
        ),
    ],
    fuzz=drawn(over_axis, np.argmax, smooth=False, special=True),
    signature="(x, axis=None)",
    edges=[
        "F.argmax(s(N, 3), axis=1)",
        "F.argmax(s(N, 3), axis=0)",
        "F.argmax(s(N, 3))",
        "F.argmax(s())",
    ],
    errors=[
        "F.argmax(i(2, 3)) -> InvalidType",
        "F.argmax(f(2, 3), axis=2) -> InvalidType",
        "F.argmax(f(2, 3), axis=(0, 1)) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.constant(speed.matrix), 1),
)

function(
    "argmin",
    cases=[
        case(
            lambda o, x, f="argmin": getattr(o, f)(x, 1),
            lambda x, f="argmin": getattr(np, f)(x, 1),
            (3, 4, 2),
            orders=0,
        ),
        case(
            lambda o, x, f="argmin": getattr(o, f)(x),
            lambda x, f="argmin": getattr(np, f)(x),
            (3, 4),
            orders=0,
        ),
    ],
    fuzz=drawn(over_axis, np.argmin, smooth=False, special=True),
    signature="(x, axis=None)",
    edges=["F.argmin(s(N, 3), axis=1)", "F.argmin(s(N, 3))", "F.argmin(s())"],
    errors="F.argmin(f(2, 3), axis=1.5) -> TypeError",
    onnx="exported",
    speed=speed.row(speed.constant(speed.matrix), 1),
)

function(
    "cumsum",
    cases=[
        *[
            case(
                lambda o, x, a=axis: o.cumsum(x, a),
                lambda x, a=axis: np.cumsum(x, a),
                shape,
            )
            for shape, axis in (
                ((3, 4, 2), 1),
                ((70, 30), -1),
                ((30, 70), 0),
                ((20, 3), 0),
                ((5, 1), 1),
                ((0, 3), 0),
                ((3, 0), 1),
            )
        ],
        case(lambda o, x: o.cumsum(x), np.cumsum, (3, 4)),
        case(lambda o, x: o.cumsum(x, 1), lambda x: np.cumsum(x, 1), (300, 300)),
    ],
    fuzz=drawn(over_axis, np.cumsum),
    signature="(x, axis=None)",
    edges=["F.cumsum(s(N, 3))", "F.cumsum(s(N, 3), axis=0)", "F.cumsum(s())"],
    errors=[
        "F.cumsum(f(2, 3), axis=2) -> InvalidType",
        "F.cumsum(f(2, 3), axis=1.5) -> TypeError",
        "F.cumsum(i(2, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.uniform(0.9, 1.1, *speed.MATRIX), 1),
        speed.row(speed.matrix, 0, use="of columns"),
    ],
)

function(
    "cumprod",
    cases=[
        *[
            case(
                lambda o, x, a=axis: o.cumprod(x, a),
                lambda x, a=axis: np.cumprod(x, a),
                shape,
                low=-1.2,
                high=1.2,
            )
            for shape, axis in (
                ((3, 4, 2), 1),
                ((70, 30), -1),
                ((30, 70), 0),
                ((20, 3), 0),
                ((5, 1), 1),
                ((0, 3), 0),
                ((3, 0), 1),
            )
        ],
        case(lambda o, x: o.cumprod(x), np.cumprod, (3, 4)),
    ],
    fuzz=drawn(over_axis, np.cumprod),
    signature="(x, axis=None)",
    edges=["F.cumprod(s(N, 3))", "F.cumprod(s(N, 3), axis=0)", "F.cumprod(s())"],
    errors=[
        "F.cumprod(f(2, 3), axis=2) -> InvalidType",
        "F.cumprod(i(2, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.uniform(0.9, 1.1, *speed.MATRIX), 1),
)


def sum_to(g: Draw):
    x = g.x(*g.shape())
    return call(x, g.broadcastable(x.value.shape))


def to_shape(x, shape):
    x = x.sum(tuple(range(x.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)
    return x.sum(axes, keepdims=True)


function(
    "sum_to",
    cases=case(
        lambda o, x: o.sum_to(x, (3, 1)),
        lambda x: x.sum((0, 2)).reshape(3, 1),
        (2, 3, 4),
    ),
    node="reshape",
    fuzz=drawn(sum_to, to_shape),
    signature="(x, shape)",
    edges=[
        "F.sum_to(s(N, 3), (1, 3))",
        "F.sum_to(s(N, 3), (N, 1))",
        "F.sum_to(s(2, 3), ())",
    ],
    errors=[
        "F.sum_to(f(2, 3), (2, 2)) -> float32 (2, 3) | InvalidType",
        "F.sum_to(f(2, 3), (3,)) -> float32 (3,)",
        "F.sum_to(f(0, 1), (0, 3)) -> float32 (0, 1) | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images, (1, 32, 1, 1)),
)


def softmax_input(g: Draw):
    x = g.x(*g.shape(2))
    return call(x, axis=g.axis(x.value.ndim))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


function(
    "softmax",
    cases=[
        case(lambda o, x: o.softmax(x), lambda x: sp.softmax(x, 1), (3, 4, 2)),
        case(lambda o, x: o.softmax(x, -1), lambda x: sp.softmax(x, -1), (2, 3, 50)),
        case(lambda o, x: o.softmax(x, 0), lambda x: sp.softmax(x, 0), (5, 3)),
        # These are columns: 64 positions and more, along an axis that is not last, or
        # of short rows.
        *[
            case(
                lambda o, x, f="softmax", a=axis: getattr(o, f)(x, a),
                lambda x, f="softmax", a=axis: getattr(sp, f)(x, a),
                shape,
            )
            for shape, axis in (
                ((3, 9, 900), 1),
                ((1000, 21), 1),
                ((40, 2, 35), 0),
                ((3, 64), 0),
            )
        ],
    ],
    fuzz=drawn(softmax_input, softmax, special=True),
    signature="(x, axis=1)",
    edges=["F.softmax(s(N, 3))", "F.softmax(s(3, N), axis=1)", "F.softmax(s())"],
    errors=[
        "F.softmax(i(2, 3)) -> RuntimeError | InvalidType",
        "F.softmax(f(2, 3), axis=2) -> RuntimeError | InvalidType",
        "F.softmax(f(2, 3), axis=-3) -> RuntimeError | InvalidType",
        "F.softmax(f(())) -> RuntimeError | InvalidType",
        "F.softmax(f(2, 3), axis='1') -> TypeError",
    ],
    nothing={
        "F.softmax(s(3, N), axis=1)": [(3, 0)],
    },
    others={"F.softmax(s())": "InvalidType"},
    onnx="exported",
    speed=[
        speed.row(speed.matrix),
        speed.row(speed.normal(4, 21, 96, 96), use="of pixels"),
        speed.row(speed.tall, use="of rows of ten"),
        speed.row(speed.matrix, 0, use="of columns"),
    ],
)


def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


function(
    "log_softmax",
    cases=[
        # These are columns: 64 positions and more, along an axis that is not last, or
        # of short rows.
        *[
            case(
                lambda o, x, f="log_softmax", a=axis: getattr(o, f)(x, a),
                lambda x, f="log_softmax", a=axis: getattr(sp, f)(x, a),
                shape,
            )
            for shape, axis in (
                ((3, 9, 900), 1),
                ((1000, 21), 1),
                ((40, 2, 35), 0),
                ((3, 64), 0),
            )
        ],
        case(lambda o, x: o.log_softmax(x, 0), lambda x: sp.log_softmax(x, 0), (3, 4)),
    ],
    fuzz=drawn(softmax_input, log_softmax, special=True),
    signature="(x, axis=1)",
    edges=["F.log_softmax(s(N, 3))", "F.log_softmax(s())"],
    errors=[
        "F.log_softmax(i(2, 3)) -> RuntimeError | InvalidType",
        "F.log_softmax(f(2, 3), axis=2) -> RuntimeError | InvalidType",
        "F.log_softmax(f(3)) -> RuntimeError | InvalidType",
    ],
    others={"F.log_softmax(s())": "InvalidType"},
    onnx="exported",
    speed=[
        speed.row(speed.matrix),
        speed.row(speed.normal(4, 21, 96, 96), use="of pixels"),
        speed.row(speed.tall, use="of rows of ten"),
    ],
)


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


function(
    "matmul",
    cases=[
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (3, 4), (4, 5), dtypes="efdil"),
        case(
            lambda o, a, b: o.matmul(a, b, True, False),
            lambda a, b: a.T @ b,
            (4, 3),
            (4, 5),
        ),
        case(
            lambda o, a, b: o.matmul(a, b, False, True),
            lambda a, b: a @ b.T,
            (3, 4),
            (5, 4),
        ),
        case(
            lambda o, a, b: o.matmul(a, b, True, True),
            lambda a, b: a.T @ b.T,
            (4, 3),
            (5, 4),
        ),
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (2, 1, 3, 4), (5, 4, 2)),
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (4,), (4,)),
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (4,), (2, 4, 3)),
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (3, 4), (4,)),
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (40, 50), (50, 60)),
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (0, 4), (4, 5)),
        case(lambda o, a, b: o.matmul(a, b), np.matmul, (3, 0), (0, 5)),
    ],
    fuzz=[
        drawn(product_operands, matmul, weight=3),
        drawn(product_operands, matmul, dtypes="bhil"),
        drawn(
            lambda g: (lambda n: call(g.x(n), g.pick(g.x(n), g.x(n, 3), g.x(2, n, 3))))(
                g.extent()
            ),
            matmul,
        ),
    ],
    signature="(a, b, transa=False, transb=False)",
    edges=[
        "F.matmul(s(N, 3), s(3, 4))",
        "F.matmul(s(3, N), s(N, 4))",
        "F.matmul(s(N, 3, 2), s(N, 3, 2), transb=True)",
        "F.matmul(s(), s())",
    ],
    errors=[
        "F.matmul(f(2, 3), f(2, 3)) -> InvalidType",
        "F.matmul(f(2, 3), d(3, 2)) -> float64 (2, 2)",
        "F.matmul(f(2, 3), i(3, 2)) -> InvalidType",
        "F.matmul(i(2, 3), i(3, 2)) -> InvalidType | int32 (2, 2)",
        "F.matmul(f(()), f(())) -> InvalidType",
        "F.matmul(f(3), f(4)) -> InvalidType",
        "F.matmul(f(2, 2, 3), f(3, 3, 4)) -> InvalidType",
        "F.matmul(f(2, 3), f(2, 3), transa=True) -> float32 (3, 3)",
        "F.matmul(h(2, 3), f(3, 2)) -> float32 (2, 2)",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.normal(512, 512), speed.normal(512, 512), flops=2 * 512**3),
        speed.row(
            speed.normal(1024, 16, 16),
            speed.normal(1024, 16, 16),
            use="of small ones",
            flops=2 * 1024 * 16**3,
        ),
        speed.row(
            speed.normal(1024, 6, 128), speed.normal(1024, 128, 1), use="with vectors"
        ),
    ],
)


def batch_matmul(g: Draw):
    n, i, k, j = g.extent(), g.extent(), g.extent(), g.extent()
    ta, tb = g.chance(0.3), g.chance(0.3)
    a, b = ((k, i) if ta else (i, k)), ((j, k) if tb else (k, j))
    return call(g.x(n, *a), g.x(n, *b), transa=ta, transb=tb)


function(
    "batch_matmul",
    fuzz=drawn(batch_matmul, matmul),
    signature="(a, b, transa=False, transb=False)",
    edges="F.batch_matmul(s(N, 2, 3), s(N, 3, 4))",
    errors=[
        "F.batch_matmul(f(2, 3), f(2, 3, 4)) -> InvalidType",
        "F.batch_matmul(f(2, 3, 4), f(3, 4, 5)) -> ValueError | InvalidType",
        "F.batch_matmul(f(2, 3), f(3, 3)) -> InvalidType",
        "F.batch_matmul(f(2, 3, 4), d(2, 4, 5)) -> InvalidType",
    ],
    nothing=[(0, 2, 4)],
    half=False,
    onnx="exported",
    speed=speed.row(
        speed.normal(64, 64, 64), speed.normal(64, 64, 64), flops=2 * 64**4
    ),
)


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


def dense(a):
    if isinstance(a, np.ndarray):
        return a
    data, rows, columns = (
        np.asarray(getattr(p, "array", p)) for p in (a.data, a.row, a.col)
    )
    full = np.zeros((*data.shape[:-1], *a.shape))
    for place in np.ndindex(data.shape):
        full[(*place[:-1], rows[place], columns[place])] += data[place]
    return full


def sparse_matmul(a, b, transa, transb):
    return matmul(dense(a), dense(b), transa, transb)


function(
    "sparse_matmul",
    fuzz=drawn(sparse, sparse_matmul),
    signature="(a, b, transa=False, transb=False)",
    edges="F.sparse_matmul(coo(s(N).array, numpy.arange(N, dtype='i'), i(3, N), (N, 3)), s(3, 2))",
    errors="F.sparse_matmul(f(2, 2), f(2, 2)) -> ValueError",
    nothing=[(0, 2)],
    onnx="no counterpart",
    speed=speed.row(
        speed.constant(speed.normal(20_000)),
        speed.indices(512, 20_000),
        speed.indices(512, 20_000),
        speed.normal(512, 256),
        call=lambda data, i, j, x: F.sparse_matmul(
            CooMatrix(data, i, j, (512, 512)), x
        ),
    ),
)


def tensordot(g: Draw):
    shared = g.shape(0, 2)
    a, b = (*g.shape(0, 2), *shared), (*shared, *g.shape(0, 2))
    return call(g.x(*a), g.x(*b), axes=len(shared))


def tensordot_pairs(g: Draw):
    a = g.x(*g.shape(1, 3))
    axes = g.rng.permutation(a.value.ndim)[: g.integer(1, a.value.ndim)].tolist()
    b = g.x(*(a.value.shape[i] for i in axes), *g.shape(0, 1))
    return call(a, b, axes=(axes, list(range(len(axes)))))


function(
    "tensordot",
    fuzz=[drawn(tensordot, np.tensordot), drawn(tensordot_pairs, np.tensordot)],
    signature="(a, b, axes=2)",
    edges=[
        "F.tensordot(s(N, 3), s(3, 4), axes=1)",
        "F.tensordot(s(3, N), s(N, 4), axes=1)",
        "F.tensordot(s(), s(), axes=0)",
    ],
    errors=[
        "F.tensordot(f(2, 3), f(4, 3), axes=1) -> ValueError",
        "F.tensordot(f(2, 3), f(3, 4), axes=1) -> float32 (2, 4)",
        "F.tensordot(f(2, 3), d(3, 4), axes=1) -> float64 (2, 4)",
        "F.tensordot(f(2, 3), f(3, 4), axes=((0,), (0, 1))) -> ValueError",
        "F.tensordot(f(2, 3), f(3, 4), axes='a') -> ValueError",
        "F.tensordot(f(2, 3), f(2, 3), axes=((0, 1), (1, 0))) -> ValueError",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(256, 16, 32), speed.normal(16, 32, 256), flops=2 * 256 * 512 * 256
    ),
)

EINSUMS = "ij,jk->ik ij,kj->ik i,i-> i,j->ij ii->i ij->ji ijk->ik ij->j abc,cd->abd ijk,ilk->ijl i,i,i->i ij,jk,kl->il i...,i...->... ...ij,...jk->...ik"


def einsum(g: Draw):
    text = g.pick(*EINSUMS.split())
    extents = {letter: g.extent() for letter in "abcdijkl"}
    rest = g.shape(0, 2)
    shapes = []
    for part in text.split("->")[0].split(","):
        before, dots, after = part.partition("...")
        shapes.append(
            [
                *(extents[c] for c in before),
                *(rest if dots else ()),
                *(extents[c] for c in after),
            ]
        )
    return call(text, *(g.x(*s) for s in shapes))


function(
    "einsum",
    fuzz=drawn(einsum, np.einsum, within=2),
    signature="(*operands)",
    edges=[
        "F.einsum('ij,kj->ik', s(N, 3), s(4, 3))",
        "F.einsum('ij,ik->jk', s(N, 3), s(N, 4))",
        "F.einsum('ij->i', s(N, 3))",
        "F.einsum('->', s())",
    ],
    errors=[
        "F.einsum('ij,jk->ik', f(2, 3), f(3, 4)) -> float32 (2, 4)",
        "F.einsum('ij,jk->ik', f(2, 3), d(3, 4)) -> float64 (2, 4)",
        "F.einsum('ij,jk->ik', f(2, 3), f(2, 4)) -> InvalidType",
        "F.einsum('ij,jk->iz', f(2, 3), f(3, 4)) -> ValueError",
        "F.einsum('ij->ik', f(2, 3)) -> ValueError",
        "F.einsum('ij', f(2, 3, 4)) -> ValueError",
        "F.einsum('i,i', i(2), i(2)) -> InvalidType | int32 ()",
        "F.einsum(f(2)) -> TypeError | ValueError",
    ],
    onnx="exported",
    speed=speed.row(
        "bij,bjk->bik",
        speed.normal(64, 64, 64),
        speed.normal(64, 64, 64),
        flops=2 * 64**4,
    ),
)


def squared(x):
    return x @ np.swapaxes(x, -1, -2)


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


function(
    "det",
    cases=[
        case(lambda o, x: o.det(x), np.linalg.det, (2, 3, 3), tolerance=1e-4),
        *[
            case(
                lambda o, x, f="det": getattr(o, f)(o.matmul(x, x, False, True)),
                lambda x, f="det": getattr(np.linalg, f)(squared(x)),
                shape,
                low=-1,
                high=1,
                tolerance=1e-4,
            )
            for shape in ((2, 3, 9), (5, 15), (1, 3), (0, 3, 9))
        ],
    ],
    flops=[0] * 5,
    fuzz=drawn(
        well_conditioned,
        np.linalg.det,
        dtypes="fd",
        within=4,
        refuses=(ValueError,),
        of="ops F",
    ),
    signature="(a)",
    edges="F.det(s(N, N))",
    errors=["F.det(f(2, 3)) -> InvalidType", "F.det(i(2, 2)) -> InvalidType"],
    onnx="exported",
    speed=speed.row(speed.matrices(128, 128), flops=128**3),
)

function(
    "batch_det",
    fuzz=drawn(
        lambda g: well_conditioned(g, True),
        np.linalg.det,
        dtypes="fd",
        within=4,
        refuses=(ValueError,),
    ),
    signature="(a)",
    edges="F.batch_det(s(N, 2, 2))",
    errors="F.batch_det(f(2, 2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrices(256, 16, 16), flops=256 * 16**3),
)

function(
    "inv",
    cases=[
        case(
            lambda o, x, f="inv": getattr(o, f)(o.matmul(x, x, False, True)),
            lambda x, f="inv": getattr(np.linalg, f)(squared(x)),
            shape,
            low=-1,
            high=1,
            tolerance=1e-4,
        )
        for shape in ((2, 3, 9), (5, 15), (1, 3), (0, 3, 9))
    ],
    flops=[0] * 4,
    fuzz=drawn(
        well_conditioned,
        np.linalg.inv,
        dtypes="fd",
        within=4,
        layouts=False,
        of="ops F",
    ),
    signature="(a)",
    edges="F.inv(s(N, N))",
    errors=[
        "F.inv(f(2, 3)) -> InvalidType",
        "F.inv(f(2, 2, 2)) -> InvalidType",
        "F.inv(f(2, 2) * 0) -> ValueError",
    ],
    onnx="no counterpart",
    speed=speed.row(speed.matrices(128, 128), flops=128**3),
)

function(
    "batch_inv",
    fuzz=drawn(
        lambda g: well_conditioned(g, True),
        np.linalg.inv,
        dtypes="fd",
        within=4,
        layouts=False,
    ),
    signature="(a)",
    edges="F.batch_inv(s(N, 2, 2))",
    errors="F.batch_inv(f(2, 2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.matrices(256, 16, 16), flops=256 * 16**3),
)

function(
    "cholesky",
    cases=[
        case(
            lambda o, x, f="cholesky": getattr(o, f)(o.matmul(x, x, False, True)),
            lambda x, f="cholesky": getattr(np.linalg, f)(squared(x)),
            shape,
            low=-1,
            high=1,
            tolerance=1e-4,
        )
        for shape in ((2, 3, 9), (5, 15), (1, 3), (0, 3, 9))
    ],
    # The operations of factorizations and of fast transforms are not of an element each.
    flops=[0] * 4,
    fuzz=drawn(
        lambda g: well_conditioned(g, positive=True),
        np.linalg.cholesky,
        dtypes="fd",
        within=4,
        smooth=False,
        of="ops F",
    ),
    signature="(a)",
    edges="F.cholesky(0 * s(N, N) + numpy.eye(N))",
    errors=[
        "F.cholesky(f(2, 3)) -> LinAlgError | InvalidType",
        "F.cholesky(i(2, 2)) -> InvalidType",
    ],
    half=False,
    onnx="no counterpart",
    speed=speed.row(speed.matrices(128, 128), flops=128**3),
)


def parts(z):
    return [z.real, z.imag]


def complex_pair(g: Draw):
    shape = g.shape(1, 3, least=1)
    return call((g.x(*shape), g.x(*shape)))


def parts_of(z):
    return z.real, z.imag


function(
    "fft",
    cases=[
        # 37 is too large a prime for a radix, 35 none for rows of vectors; 64 is one for them.
        *[
            case(
                lambda o, re, im: o.fft(re, im),
                lambda re, im: parts(np.fft.fft(re + 1j * im)),
                shape,
                shape,
            )
            for shape in ((2, 3, 5), (37,), (3, 35), (2, 64), (0, 4), (2, 1))
        ]
    ],
    flops=[0] * 6,
    fuzz=[
        drawn(complex_pair, lambda x: parts_of(np.fft.fft(x[0] + 1j * x[1])), within=4),
        drawn(
            lambda g: call(*complex_pair(g)[0][0]),
            lambda x, y: parts_of(np.fft.fft(x + 1j * y)),
            dtypes="fd",
            within=4,
            of="ops",
        ),
    ],
    signature="(x)",
    edges="F.fft((s(N, 4), s(N, 4)))",
    errors=[
        "F.fft(f(3)) -> ValueError",
        "F.fft((f(2), f(3))) -> InvalidType",
        "F.fft((i(2), i(2))) -> InvalidType",
    ],
    onnx="no counterpart",
    speed=speed.row(
        speed.normal(256, 1024),
        speed.normal(256, 1024),
        call=lambda *parts: F.fft(parts),
    ),
)

function(
    "ifft",
    cases=[
        # 37 is too large a prime for a radix, 35 none for rows of vectors; 64 is one for them.
        *[
            case(
                lambda o, re, im: o.ifft(re, im),
                lambda re, im: parts(np.fft.ifft(re + 1j * im)),
                shape,
                shape,
            )
            for shape in ((2, 3, 5), (37,), (3, 35), (2, 64), (0, 4), (2, 1))
        ]
    ],
    flops=[0] * 6,
    fuzz=[
        drawn(
            complex_pair, lambda x: parts_of(np.fft.ifft(x[0] + 1j * x[1])), within=4
        ),
        drawn(
            lambda g: call(*complex_pair(g)[0][0]),
            lambda x, y: parts_of(np.fft.ifft(x + 1j * y)),
            dtypes="fd",
            within=4,
            of="ops",
        ),
    ],
    signature="(x)",
    edges="F.ifft((s(N, 4), s(N, 4)))",
    onnx="no counterpart",
    speed=speed.row(
        speed.normal(256, 1024),
        speed.normal(256, 1024),
        call=lambda *parts: F.ifft(parts),
    ),
)

function(
    "batch_l2_norm_squared",
    fuzz=drawn(
        lambda g: call(g.x(*g.shape(2))),
        lambda x: (x**2).reshape(len(x), int(np.prod(x.shape[1:]))).sum(1),
        within=2,
    ),
    signature="(x)",
    edges="F.batch_l2_norm_squared(s(N, 3))",
    errors=[
        "F.batch_l2_norm_squared(f(2)) -> InvalidType",
        "F.batch_l2_norm_squared(i(2, 2)) -> InvalidType",
    ],
    nothing=[(0,)],
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "normalize",
    cases=[
        case(
            lambda o, x, a=axis: o.normalize(x, 0.1, a),
            lambda x, a=axis: x / (np.sqrt((x * x).sum(a, keepdims=True)) + 0.1),
            (3, 4, 5),
            tolerance=1e-4,
        )
        for axis in ((1,), (0, 2), (2,))
    ],
    fuzz=[
        drawn(
            lambda g: (lambda x: call(x, axis=g.pick(*range(x.value.ndim), (0, 1))))(
                g.positive(*g.shape(2))
            ),
            lambda x, axis: x / (np.sqrt((x**2).sum(axis, keepdims=True)) + 1e-5),
        ),
        drawn(
            lambda g: (lambda x: call(x, 1e-5, [g.pick(*range(x.value.ndim))]))(
                g.positive(*g.shape(2))
            ),
            lambda x, eps, axis: (
                x / (np.sqrt((x**2).sum(axis[0], keepdims=True)) + eps)
            ),
            of="ops",
        ),
    ],
    signature="(x, eps=1e-05, axis=1)",
    edges="F.normalize(s(N, 3))",
    errors=[
        "F.normalize(f(4, 3), axis=5) -> AxisError | InvalidType",
        "F.normalize(i(4, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "cast",
    cases=case(lambda o, x: o.cast(x, "d"), lambda x: x, (2, 3)),
    fuzz=[
        drawn(
            lambda g: call(g.x(*g.shape()), g.pick(*"efd")),
            lambda x, d: x.astype(d),
            dtypes=FLOATS + INTS,
            smooth=False,
            of="ops F",
        ),
        drawn(
            lambda g: call(g.x(*g.shape(), low=0, high=100), g.pick(*"bhilBq")),
            lambda x, d: x.astype(d),
            dtypes=FLOATS,
            smooth=False,
        ),
    ],
    signature="(x, typ)",
    edges=["F.cast(s(N, 3), 'd')", "F.cast(s(), 'd')"],
    errors=[
        "F.cast(f(2), 'foo') -> TypeError",
        "F.cast(f(2), 'i') -> int32 (2,)",
        "F.cast(i(2), 'f') -> float32 (2,)",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, "d"),
)

function(
    "sum_of_squares",
    cases=reduction(lambda x, **options: np.sum(x * x, **options)),
    fuzz=drawn(lambda g: call(g.x(*g.shape(0, 6))), lambda x: np.sum(x * x), of="ops"),
)

SOURCES, TARGETS = np.array([0, 4, 2, -1, 4]), np.array([1, 1, 0, 2, 3])


def draw_core_sparse(g: Draw):
    k, n, m = g.extent(), g.integer(1, 5), g.integer(1, 5)
    return call(
        g.x(k), g.index(n, k, low=-1), g.index(m, k, low=-1), g.x(n, g.extent()), m
    )


def sparse_product(data, sources, targets, x, m):
    y = np.zeros((m, x.shape[1]), x.dtype)
    for v, i, j in zip(data, sources.astype(int), targets.astype(int)):
        if i >= 0 and j >= 0:
            y[j] += v * x[i]
    return y


function(
    "sparse_product",
    cases=case(
        lambda o, v, x: o.sparse_product(v, SOURCES, TARGETS, x, 4),
        lambda v, x: added_at(
            np.zeros((4, 3)),
            TARGETS,
            np.where(SOURCES[:, None] < 0, 0, v[:, None] * x[SOURCES]),
        ),
        (5,),
        (5, 3),
    ),
    takes_arrays=True,
    flops=[0],
    fuzz=drawn(draw_core_sparse, sparse_product, within=4, of="ops"),
)
