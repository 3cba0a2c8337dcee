"""Element by element: arithmetic, activations, special functions, and random numbers."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import scipy.special as sp

import renga.functions as F
from tests.fuzz.draw import FLOATS, INTS, Draw
from tests.fuzz.table import call

from . import speed
from .counted_number import Number, elementwise
from .row import (
    FLOATS_AND_INTS,
    binary,
    case,
    drawn,
    drawn_binary,
    drawn_unary,
    function,
    positive,
    unary,
)
from .shared import SEED, philox

# Only element-wise functions know this: any value, compared with the same rounding.
ANY = {"special": True}

function(
    "absolute",
    cases=unary(np.abs),
    fuzz=drawn_unary(np.abs, **ANY),
    signature="(x)",
    edges=["F.absolute(s(N, 3))", "F.absolute(s())"],
    errors="F.absolute(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "arccos",
    cases=unary(np.arccos, low=-0.8, high=0.8),
    fuzz=drawn_unary(np.arccos, -0.95, 0.95, **ANY),
    signature="(x)",
    edges=["F.arccos(u(N, 3))", "F.arccos(u())"],
    errors="F.arccos(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(-0.95, 0.95, *speed.MATRIX)),
)

function(
    "arcsin",
    cases=unary(np.arcsin, low=-0.8, high=0.8),
    fuzz=drawn_unary(np.arcsin, -0.95, 0.95, **ANY),
    signature="(x)",
    edges=["F.arcsin(u(N, 3))", "F.arcsin(u())"],
    errors="F.arcsin(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(-0.95, 0.95, *speed.MATRIX)),
)

function(
    "arctan",
    cases=unary(np.arctan),
    fuzz=drawn_unary(np.arctan, **ANY),
    signature="(x)",
    edges=["F.arctan(s(N, 3))", "F.arctan(s())"],
    errors="F.arctan(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(-0.95, 0.95, *speed.MATRIX)),
)

function(
    "arctanh",
    cases=unary(np.arctanh, low=-0.8, high=0.8),
    flops=elementwise("arctanh", math.atanh),
    fuzz=drawn_unary(np.arctanh, -0.9, 0.9, **ANY),
    signature="(x)",
    edges=["F.arctanh(u(N, 3))", "F.arctanh(u())"],
    errors="F.arctanh(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(-0.95, 0.95, *speed.MATRIX)),
)

function(
    "ceil",
    cases=unary(np.ceil, orders=0),
    fuzz=drawn_unary(np.ceil, smooth=False, **ANY),
    signature="(x)",
    edges=["F.ceil(s(N, 3))", "F.ceil(s())"],
    errors="F.ceil(i(2)) -> int32 (2,)",
    onnx="exported",
    speed=speed.row(speed.constant(speed.matrix)),
)

function(
    "cos",
    cases=unary(np.cos),
    fuzz=drawn_unary(np.cos),
    signature="(x)",
    edges=["F.cos(s(N, 3))", "F.cos(s())"],
    errors="F.cos(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "cosh",
    cases=unary(np.cosh),
    fuzz=drawn_unary(np.cosh, **ANY),
    signature="(x)",
    edges=["F.cosh(s(N, 3))", "F.cosh(s())"],
    errors="F.cosh(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "digamma",
    cases=unary(sp.digamma, low=1.8, high=4),
    flops=elementwise("digamma", sp.digamma),
    fuzz=drawn_unary(sp.digamma, 0.5, 4),
    signature="(x)",
    edges=["F.digamma(u(N, 3))", "F.digamma(u())"],
    errors="F.digamma(i(2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "erf",
    cases=unary(sp.erf),
    flops=elementwise("erf", sp.erf),
    fuzz=drawn_unary(sp.erf, **ANY),
    signature="(x)",
    edges=["F.erf(s(N, 3))", "F.erf(s())"],
    errors="F.erf(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "erfc",
    cases=unary(sp.erfc),
    flops=elementwise("erfc", sp.erfc),
    fuzz=drawn_unary(sp.erfc, **ANY),
    signature="(x)",
    edges=["F.erfc(s(N, 3))", "F.erfc(s())"],
    errors="F.erfc(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "erfcinv",
    cases=unary(sp.erfcinv, low=0.2, high=1.8),
    flops=elementwise("erfcinv", sp.erfcinv),
    fuzz=drawn_unary(sp.erfcinv, 0.1, 1.9),
    signature="(x)",
    edges=["F.erfcinv(u(N, 3))", "F.erfcinv(u())"],
    errors="F.erfcinv(i(2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.uniform(0.05, 1.95, *speed.MATRIX)),
)

function(
    "erfcx",
    cases=unary(sp.erfcx),
    flops=elementwise("erfcx", sp.erfcx),
    fuzz=drawn_unary(sp.erfcx),
    signature="(x)",
    edges=["F.erfcx(s(N, 3))", "F.erfcx(s())"],
    errors="F.erfcx(i(2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.matrix),
)

function(
    "erfinv",
    cases=unary(sp.erfinv, low=-0.8, high=0.8),
    flops=elementwise("erfinv", sp.erfinv),
    fuzz=drawn_unary(sp.erfinv, -0.9, 0.9),
    signature="(x)",
    edges=["F.erfinv(u(N, 3))", "F.erfinv(u())"],
    errors="F.erfinv(i(2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.uniform(-0.95, 0.95, *speed.MATRIX)),
)

function(
    "exp",
    cases=unary(np.exp),
    fuzz=drawn_unary(np.exp, **ANY),
    signature="(x)",
    edges=["F.exp(s(N, 3))", "F.exp(s())"],
    errors="F.exp(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "expm1",
    cases=unary(np.expm1),
    fuzz=drawn_unary(np.expm1, **ANY),
    signature="(x)",
    edges=["F.expm1(s(N, 3))", "F.expm1(s())"],
    errors="F.expm1(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "fix",
    cases=unary(np.fix, orders=0, dtypes="efdbhil"),
    flops=elementwise("fix", math.trunc),
    fuzz=drawn_unary(np.fix, smooth=False, **ANY),
    signature="(x)",
    edges=["F.fix(s(N, 3))", "F.fix(s())"],
    errors="F.fix(i(2)) -> int32 (2,)",
    onnx="exported",
    speed=speed.row(speed.constant(speed.matrix)),
)

function(
    "floor",
    cases=unary(np.floor, orders=0),
    fuzz=drawn_unary(np.floor, smooth=False, **ANY),
    signature="(x)",
    edges=["F.floor(s(N, 3))", "F.floor(s())"],
    errors="F.floor(i(2)) -> int32 (2,)",
    onnx="exported",
    speed=speed.row(speed.constant(speed.matrix)),
)

function(
    "gelu",
    cases=[
        case(
            lambda o, x: o.gelu(x),
            lambda x: 0.5 * x * (1 + sp.erf(0.5**0.5 * x)),
            (9, 5),
            low=-4,
            high=4,
        ),
        case(
            lambda o, x: o.gelu(x, "tanh"),
            lambda x: (
                0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
            ),
            (4, 5),
            low=-4,
            high=4,
        ),
    ],
    fuzz=drawn_unary(lambda x: x * sp.ndtr(x)),
    speed=[
        speed.row(speed.images),
        speed.row(speed.last(speed.images), use="channels last"),
        speed.row(speed.images, "tanh", use="tanh"),
    ],
)

function(
    "hard_swish",
    cases=case(
        lambda o, x: o.hard_swish(x),
        lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6,
        (9, 5),
        low=-5,
        high=5,
    ),
    flops=lambda x: x * np.minimum(np.maximum(x + 3, Number(0)), Number(6)) / 6,
    fuzz=drawn_unary(lambda x: x * np.clip(x + 3, 0, 6) / 6, -5, 5),
    speed=speed.row(speed.images),
)

function(
    "hard_sigmoid",
    cases=case(
        lambda o, x: o.hard_sigmoid(x),
        lambda x: np.minimum(np.maximum(0.2 * x + 0.5, 0), 1),
        (9, 5),
        low=-5,
        high=5,
    ),
    flops=lambda x: np.minimum(np.maximum(x * 0.2 + 0.5, Number(0)), Number(1)),
    fuzz=drawn_unary(lambda x: np.clip(x * 0.2 + 0.5, 0, 1), -4, 4, **ANY, of="F ops"),
    signature="(x)",
    edges=["F.hard_sigmoid(s(N, 3))", "F.hard_sigmoid(s())"],
    errors="F.hard_sigmoid(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "lgamma",
    cases=unary(sp.gammaln, low=1.5, high=4),
    flops=elementwise("lgamma", math.lgamma),
    fuzz=drawn_unary(sp.gammaln, 0.3, 4),
    signature="(x)",
    edges=["F.lgamma(u(N, 3))", "F.lgamma(u())"],
    errors="F.lgamma(i(2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "log",
    cases=unary(np.log, low=0.5),
    fuzz=drawn_unary(np.log, 0.1, 4, **ANY),
    signature="(x)",
    edges=["F.log(u(N, 3))", "F.log(u())"],
    errors="F.log(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "log10",
    cases=unary(np.log10, low=0.5),
    fuzz=drawn_unary(np.log10, 0.1, 4, **ANY),
    signature="(x)",
    edges=["F.log10(u(N, 3))", "F.log10(u())"],
    errors="F.log10(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "log1p",
    cases=unary(np.log1p, low=-0.5),
    fuzz=drawn_unary(np.log1p, -0.8, 4, **ANY),
    signature="(x)",
    edges=["F.log1p(u(N, 3))", "F.log1p(u())"],
    errors="F.log1p(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "log2",
    cases=unary(np.log2, low=0.5),
    fuzz=drawn_unary(np.log2, 0.1, 4, **ANY),
    signature="(x)",
    edges=["F.log2(u(N, 3))", "F.log2(u())"],
    errors="F.log2(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "log_ndtr",
    cases=unary(sp.log_ndtr),
    flops=elementwise("log_ndtr", sp.log_ndtr),
    fuzz=drawn_unary(sp.log_ndtr, -5, 5),
    signature="(x)",
    edges=["F.log_ndtr(s(N, 3))", "F.log_ndtr(s())"],
    errors="F.log_ndtr(i(2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.matrix),
)

function(
    "mish",
    cases=case(
        lambda o, x: o.mish(x),
        lambda x: x * np.tanh(np.log1p(np.exp(x))),
        (9, 5),
        low=-4,
        high=4,
    ),
    fuzz=drawn_unary(lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    speed=speed.row(speed.images),
)

function(
    "ndtr",
    cases=unary(sp.ndtr),
    flops=elementwise("ndtr", sp.ndtr),
    fuzz=drawn_unary(sp.ndtr, **ANY),
    signature="(x)",
    edges=["F.ndtr(s(N, 3))", "F.ndtr(s())"],
    errors="F.ndtr(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "ndtri",
    cases=unary(sp.ndtri, low=0.1, high=0.9),
    flops=elementwise("ndtri", sp.ndtri),
    fuzz=drawn_unary(sp.ndtri, 0.05, 0.95),
    signature="(x)",
    edges=["F.ndtri(u(N, 3))", "F.ndtri(u())"],
    errors="F.ndtri(i(2)) -> InvalidType",
    onnx="no counterpart",
    speed=speed.row(speed.uniform(0.02, 0.98, *speed.MATRIX)),
)

function(
    "relu",
    cases=unary(lambda x: np.maximum(x, 0)),
    fuzz=drawn_unary(lambda x: np.maximum(x, 0), **ANY),
    signature="(x)",
    edges=["F.relu(s(N, 3))", "F.relu(s())"],
    errors=[
        "F.relu(i(2, 3)) -> InvalidType",
        "F.relu(3) -> TypeError | InvalidType",
        "F.relu(None) -> AttributeError | TypeError",
        "F.relu(f(2), 1) -> TypeError",
        "F.relu() -> TypeError",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.images),
        speed.row(speed.last(speed.images), use="channels last"),
    ],
)

function(
    "relu6",
    fuzz=drawn_unary(lambda x: np.clip(x, 0, 6), -2, 8, **ANY),
    signature="(x)",
    edges=["F.relu6(s(N, 3))", "F.relu6(s())"],
    errors="F.relu6(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "rsqrt",
    cases=unary(lambda x: 1 / np.sqrt(x), low=0.5),
    fuzz=drawn_unary(lambda x: 1 / np.sqrt(x), 0.2, 4),
    signature="(x)",
    edges=["F.rsqrt(u(N, 3))", "F.rsqrt(u())"],
    errors="F.rsqrt(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "sigmoid",
    cases=unary(sp.expit),
    flops=lambda x: 1 / (1 + np.exp(-x)),
    fuzz=drawn_unary(sp.expit, **ANY),
    signature="(x)",
    edges=["F.sigmoid(s(N, 3))", "F.sigmoid(s())"],
    errors="F.sigmoid(i(2)) -> InvalidType",
    onnx="exported",
    speed=[
        speed.row(speed.images),
        speed.row(speed.last(speed.images), use="channels last"),
    ],
)

function(
    "silu",
    cases=case(
        lambda o, x: o.silu(x), lambda x: x / (1 + np.exp(-x)), (9, 5), low=-4, high=4
    ),
    fuzz=drawn_unary(lambda x: x * sp.expit(x)),
    speed=speed.row(speed.images),
)

function(
    "sign",
    cases=unary(np.sign, orders=0, dtypes="efdbhil"),
    flops=elementwise("sign", np.sign),
    fuzz=drawn_unary(np.sign, smooth=False, **ANY),
    signature="(x)",
    edges=["F.sign(s(N, 3))", "F.sign(s())"],
    errors="F.sign(i(2)) -> int32 (2,)",
    onnx="exported",
    speed=speed.row(speed.constant(speed.matrix)),
)

function(
    "sin",
    cases=unary(np.sin),
    fuzz=drawn_unary(np.sin),
    signature="(x)",
    edges=["F.sin(s(N, 3))", "F.sin(s())"],
    errors="F.sin(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "sinh",
    cases=unary(np.sinh),
    fuzz=drawn_unary(np.sinh, **ANY),
    signature="(x)",
    edges=["F.sinh(s(N, 3))", "F.sinh(s())"],
    errors="F.sinh(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "sqrt",
    cases=unary(np.sqrt, low=0.5),
    fuzz=drawn_unary(np.sqrt, 0.1, 4, **ANY),
    signature="(x)",
    edges=["F.sqrt(u(N, 3))", "F.sqrt(u())"],
    errors="F.sqrt(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.uniform(0.2, 4.0, *speed.MATRIX)),
)

function(
    "square",
    cases=unary(np.square),
    fuzz=drawn_unary(np.square, **ANY),
    signature="(x)",
    edges=["F.square(s(N, 3))", "F.square(s())"],
    errors="F.square(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "tan",
    cases=unary(np.tan, low=-1, high=1),
    fuzz=drawn_unary(np.tan, -1, 1),
    signature="(x)",
    edges=["F.tan(s(N, 3))", "F.tan(s())"],
    errors="F.tan(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "tanh",
    cases=unary(np.tanh),
    fuzz=drawn_unary(np.tanh, **ANY),
    signature="(x)",
    edges=["F.tanh(s(N, 3))", "F.tanh(s())"],
    errors="F.tanh(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "negative",
    cases=unary(np.negative, dtypes="efdbhil"),
    fuzz=drawn_unary(np.negative, dtypes=FLOATS + "bhil", **ANY, of="ops"),
)

function(
    "reciprocal",
    cases=unary(lambda x: 1 / x, low=0.5),
    node="divide",
    fuzz=drawn_unary(np.reciprocal, 0.3, 3, **ANY, of="ops"),
)

ALL = FLOATS + INTS

function(
    "identity",
    cases=unary(lambda x: x, dtypes=FLOATS_AND_INTS),
    fuzz=[
        drawn_unary(lambda x: x, dtypes=ALL, **ANY, of="ops F"),
        drawn(
            lambda g: call(g.x(*g.shape()), g.x(*g.shape())), lambda *xs: xs, dtypes=ALL
        ),
    ],
    signature="(*inputs)",
    edges=["F.identity(s(N, 3))", "F.identity(s())"],
    errors="F.identity() -> nothing",
    onnx="exported",
    speed=speed.row(speed.matrix),
)

function(
    "copy",
    fuzz=drawn(
        lambda g: call(g.x(*g.shape()), -1), lambda x, dst: x, dtypes=ALL, **ANY
    ),
    signature="(x, dst)",
    edges=["F.copy(s(N, 3), -1)", "F.copy(s(), -1)"],
    onnx="exported",
    speed=speed.row(speed.matrix, -1),
)


def tanh(x):
    import renga.functions

    return renga.functions.tanh(x)


TANH = tanh

function(
    "forget",
    fuzz=drawn(lambda g: call(TANH, g.x(*g.shape())), lambda f, x: np.tanh(x)),
    signature="(func, *xs)",
    edges="F.forget(F.tanh, s(N, 3))",
    errors=[
        "F.forget(3, f(2)) -> TypeError",
        "F.forget(lambda x: 3, f(2)) -> RuntimeError",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, call=functools.partial(F.forget, F.tanh)),
)

ADDENDS = [speed.normal(512, 512) for _ in range(4)]

function(
    "add",
    cases=[
        *binary(np.add, dtypes=FLOATS_AND_INTS),
        case(
            lambda o, a, b: o.add(a, b),
            np.add,
            (4, 90, 3, 5),
            (90, 1, 1),
            dtypes=FLOATS_AND_INTS,
        ),
    ],
    fuzz=[
        drawn_binary(np.add, dtypes=ALL, **ANY),
        # sums that cancel
        drawn(
            lambda g: call(*(g.x(*s) for s in [g.shape()] * g.integer(2, 4))),
            lambda *xs: sum(xs),
            within=10,
        ),
        drawn_binary(np.add, dtypes=ALL, **ANY, of="ops"),
    ],
    signature="(*xs)",
    edges=["F.add(s(N, 3), s(N, 3), s(N, 3))", "F.add(s(), s(2, 3))"],
    errors=[
        "F.add(f(2, 3)) -> float32 (2, 3)",
        "F.add(f(2, 3), f(2, 4)) -> InvalidType",
        "F.add(f(2, 3), d(2, 3)) -> float32 (2, 3)",
        "F.add(f(2, 3), i(2, 3)) -> float32 (2, 3)",
        "F.add(i(2, 3), i(2, 3)) -> int32 (2, 3)",
        "F.add(f(2, 3), f(3)) -> float32 (2, 3)",
        "F.add(f(2), f(2), f(3)) -> ValueError | InvalidType",
        "F.add(f(2), d(2), h(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.matrix, speed.matrix),
        speed.row(ADDENDS, call=lambda xs: F.add(*xs), use="of four"),
    ],
)

function(
    "subtract",
    cases=binary(np.subtract, dtypes=FLOATS_AND_INTS),
    fuzz=drawn_binary(np.subtract, dtypes=ALL, **ANY, of="ops"),
)

function(
    "multiply",
    cases=[
        *binary(np.multiply, dtypes=FLOATS_AND_INTS),
        # Short runs of broadcast operands.
        case(
            lambda o, a, b: o.multiply(a, b),
            np.multiply,
            (300, 7),
            (300, 1),
            dtypes=FLOATS_AND_INTS,
        ),
    ],
    fuzz=drawn_binary(np.multiply, dtypes=ALL, **ANY, of="ops"),
)

function(
    "divide",
    cases=binary(np.divide, low=0.5),
    fuzz=drawn_binary(np.divide, 0.5, 3, dtypes=ALL, within=2, **ANY, of="ops"),
)

function(
    "floor_divide",
    cases=binary(np.floor_divide, low=0.5, high=3, orders=0),
    flops=lambda a, b: np.floor(a / b),
    fuzz=drawn_binary(
        np.floor_divide, 0.5, 3, dtypes="d" + INTS, smooth=False, **ANY, of="ops"
    ),
)

function(
    "power",
    cases=binary(np.power, low=0.5),
    fuzz=drawn_binary(np.power, 0.3, 2, within=4, of="ops"),
)

function(
    "maximum",
    cases=binary(np.maximum),
    fuzz=drawn_binary(np.maximum, **ANY),
    signature="(x1, x2)",
    edges=["F.maximum(s(N, 3), s(N, 3))", "F.maximum(s(), s())"],
    errors=[
        "F.maximum(f(2), d(2)) -> InvalidType",
        "F.maximum(f(2), f(3)) -> InvalidType",
        "F.maximum(i(2), i(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)

function(
    "minimum",
    cases=binary(np.minimum),
    fuzz=drawn_binary(np.minimum, **ANY),
    signature="(x1, x2)",
    edges=["F.minimum(s(N, 3), s(N, 3))", "F.minimum(s(), s())"],
    errors=[
        "F.minimum(f(2), i(2)) -> InvalidType",
        "F.minimum(f(2, 3), f(3)) -> float32 (2, 3)",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)

function(
    "arctan2",
    cases=binary(np.arctan2, low=0.5),
    fuzz=drawn_binary(np.arctan2, **ANY),
    signature="(x1, x2)",
    edges=["F.arctan2(s(N, 3), s(N, 3))", "F.arctan2(s(), s())"],
    errors=[
        "F.arctan2(f(2), d(2)) -> float64 (2,)",
        "F.arctan2(f(2), f(3)) -> ValueError | InvalidType",
        "F.arctan2(i(2), i(2)) -> InvalidType",
        "F.arctan2(h(2), f(2)) -> float32 (2,)",
    ],
    onnx="no counterpart",
    speed=speed.row(speed.matrix, speed.matrix),
)


def same(n=2, **options):
    """Operands of one shape."""

    def draw(g: Draw):
        shape = g.shape()
        return call(*(g.x(*shape, **options) for _ in range(n)))

    return draw


function(
    "squared_difference",
    cases=binary(lambda a, b: (a - b) ** 2),
    fuzz=[
        drawn_binary(lambda a, b: (a - b) ** 2, of="ops"),
        drawn(same(2), lambda a, b: (a - b) ** 2, **ANY),
    ],
    signature="(x1, x2)",
    edges=["F.squared_difference(s(N, 3), s(N, 3))", "F.squared_difference(s(), s())"],
    errors=[
        "F.squared_difference(f(2), f(3)) -> InvalidType",
        "F.squared_difference(f(2), d(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)


def channels(g: Draw):
    """x (N, C, …) and one number for each of the first axes after the batch's."""
    shape = g.shape(2)
    n = g.integer(1, len(shape) - 1)
    return call(g.x(*shape), g.x(*shape[1 : 1 + n]))


def along(w, x):
    return w.reshape(w.shape + (1,) * (x.ndim - 1 - w.ndim))


function(
    "prelu",
    cases=[
        case(
            lambda o, x, w: o.prelu(x, w),
            lambda x, w: np.where(x < 0, w * x, x),
            *shapes,
        )
        for shapes in (
            ((3, 4), (4,)),
            ((2, 3, 5), (3, 1)),
            ((4, 5), ()),
            ((0, 2), (2,)),
        )
    ],
    fuzz=[
        drawn_binary(lambda x, slope: np.where(x < 0, slope * x, x), of="ops"),
        drawn(
            channels, lambda x, w: np.where(x >= 0, x, along(w, x) * x), special=True
        ),
    ],
    signature="(x, W)",
    edges=["F.prelu(s(N, 3), s(3))", "F.prelu(s(), s())"],
    errors=[
        "F.prelu(f(2, 3), f(4)) -> InvalidType",
        "F.prelu(f(2, 3), d(3)) -> InvalidType",
        "F.prelu(f(2), f(2, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images, speed.uniform(0.1, 0.4, 32)),
)

function(
    "fmod",
    cases=binary(np.fmod, low=0.5, high=3),
    flops=elementwise("fmod", math.fmod),
    fuzz=drawn_binary(np.fmod, 0.5, 3, smooth=False, of="F ops"),
    signature="(x, divisor)",
    edges=["F.fmod(s(N, 3), u(N, 3))", "F.fmod(s(), u())"],
    errors=[
        "F.fmod(f(2), d(2)) -> InvalidType",
        "F.fmod(i(2), i(2)) -> InvalidType",
        "F.fmod(f(2), f(3)) -> ValueError | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.uniform(0.3, 2.0, *speed.MATRIX)),
)

function(
    "linear_interpolate",
    cases=[
        case(
            lambda o, p, x, y: o.linear_interpolate(p, x, y),
            lambda p, x, y: p * x + (1 - p) * y,
            *shapes,
        )
        for shapes in (((3, 4),) * 3, ((2, 3, 4), (3, 1), (4,)), ((0, 2),) * 3)
    ],
    fuzz=[
        drawn(same(3), lambda p, x, y: p * x + (1 - p) * y, of="ops"),
        drawn(same(3), lambda p, x, y: p * x + (1 - p) * y),
    ],
    signature="(p, x, y)",
    edges=[
        "F.linear_interpolate(u(N, 3), s(N, 3), s(N, 3))",
        "F.linear_interpolate(u(), s(), s())",
    ],
    errors=[
        "F.linear_interpolate(f(2), f(2), f(3)) -> InvalidType",
        "F.linear_interpolate(f(2), d(2), f(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.uniform(0.0, 1.0, *speed.MATRIX), speed.matrix, speed.matrix),
)

function(
    "selu",
    cases=case(
        lambda o, x: o.selu(x, 0.7, 1.3),
        lambda x: 1.3 * np.where(x < 0, 0.7 * np.expm1(x), x),
        (4, 5),
    ),
    fuzz=[
        drawn(
            lambda g: call(g.x(*g.shape()), 1.7, 1.1),
            lambda x, alpha, scale: scale * np.where(x < 0, alpha * np.expm1(x), x),
            of="ops",
        ),
        drawn(
            lambda g: call(g.x(*g.shape()), alpha=1.2, scale=1.1),
            lambda x, alpha, scale: scale * np.where(x >= 0, x, alpha * np.expm1(x)),
            special=True,
        ),
    ],
    signature="(x, alpha=1.6732632423543772, scale=1.0507009873554805)",
    edges=["F.selu(s(N, 3))", "F.selu(s())"],
    errors="F.selu(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "squared_error",
    fuzz=drawn(same(2), lambda a, b: (a - b) ** 2, **ANY),
    signature="(x0, x1)",
    edges=["F.squared_error(s(N, 3), s(N, 3))", "F.squared_error(s(), s())"],
    errors=[
        "F.squared_error(f(2), d(2)) -> InvalidType",
        "F.squared_error(f(2), f(2, 1)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)

function(
    "absolute_error",
    fuzz=drawn(same(2), lambda a, b: abs(a - b), **ANY),
    signature="(x0, x1)",
    edges=["F.absolute_error(s(N, 3), s(N, 3))", "F.absolute_error(s(), s())"],
    errors=[
        "F.absolute_error(f(2), d(2)) -> InvalidType",
        "F.absolute_error(i(2), i(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)


def polygamma(n, x):
    if np.max(n, initial=0) > 60:
        raise ValueError("SciPy overflows")
    return sp.polygamma(n, x)


function(
    "polygamma",
    cases=[
        case(
            lambda o, x: o.polygamma(np.array(2), x),
            lambda x: sp.polygamma(2, x),
            *shapes,
            low=1.5,
            high=3,
        )
        for shapes in (((3, 4),), ((2, 3, 5),), ((0, 2),))
    ],
    operands=case(
        lambda o, n, x: o.polygamma(1 + positive(n), x),
        None,
        (3, 4),
        (3, 4),
        low=0.5,
        high=3,
    ),
    flops=elementwise("polygamma", lambda x: sp.polygamma(2, x)),
    fuzz=drawn(
        lambda g: (lambda s: call(g.index(4, *s), g.x(*s, low=0.5, high=3)))(g.shape()),
        polygamma,
        within=5,
        of="F ops",
    ),
    signature="(n, x)",
    edges="F.polygamma(i(3, N, 3), u(N, 3))",
    errors=[
        "F.polygamma(f(2), f(2)) -> InvalidType",
        "F.polygamma(i(2), i(2)) -> InvalidType",
    ],
    onnx="no counterpart",
    speed=speed.row(np.array(1), speed.uniform(0.2, 4.0, 256, 256)),
)

function(
    "zeta",
    cases=[
        case(
            lambda o, q: o.zeta(np.array(2.5), q, 1),
            lambda q: sp.zeta(3.5, q),
            *shapes,
            low=1.5,
            high=3,
        )
        for shapes in (((3, 4),), ((2, 3, 5),), ((0, 2),))
    ],
    operands=case(
        lambda o, s, q: o.zeta(2 + positive(s), q, 0),
        None,
        (3, 4),
        (3, 4),
        low=0.5,
        high=3,
    ),
    flops=elementwise("zeta", lambda q: sp.zeta(3.5, q)),
    fuzz=[
        drawn(
            lambda g: (
                lambda s: call(g.x(*s, low=1.5, high=4), g.x(*s, low=0.5, high=3))
            )(g.shape()),
            sp.zeta,
            within=5,
            smooth=False,
        ),
        drawn(
            lambda g: (
                lambda s: call(
                    g.x(*s, low=1.5, high=4, role="constant"),
                    g.x(*s, low=0.5, high=3),
                    1,
                )
            )(g.shape()),
            lambda s, q, more: sp.zeta(s + more, q),
            within=5,
            of="ops",
        ),
    ],
    signature="(x, q)",
    edges="F.zeta(2 + numpy.arange(3 * N).reshape(N, 3).astype(DTYPE), u(N, 3))",
    errors="F.zeta(f(2), f(2)) -> float32 (2,)",
    onnx="no counterpart",
    speed=speed.row(
        speed.uniform(1.5, 4.0, 256, 256),
        speed.constant(speed.uniform(0.5, 2.0, 256, 256)),
    ),
)

function(
    "clip",
    cases=case(
        lambda o, x: o.clip(x, -0.5, 0.75), lambda x: np.clip(x, -0.5, 0.75), (6, 5)
    ),
    flops=lambda x: np.minimum(np.maximum(x, Number(-0.5)), Number(0.75)),
    fuzz=[
        drawn(
            lambda g: call(g.x(*g.shape()), -g.uniform(0, 1), g.uniform(0, 1)),
            np.clip,
            **ANY,
        ),
        drawn(
            lambda g: call(g.x(*g.shape()), -g.uniform(0, 1), g.uniform(0, 1)),
            np.clip,
            **ANY,
            of="ops",
        ),
    ],
    signature="(x, x_min, x_max)",
    edges=["F.clip(s(N, 3), -1., 1.)", "F.clip(s(), -1., 1.)"],
    errors=[
        "F.clip(f(2), 1, 0) -> ValueError",
        "F.clip(f(2), 1, 1) -> ValueError",
        "F.clip(i(2), 0, 1) -> InvalidType",
        "F.clip(f(2), None, None) -> ValueError",
    ],
    onnx="exported",
    speed=speed.row(speed.images, -0.5, 0.7),
)

function(
    "clipped_relu",
    cases=case(
        lambda o, x: o.clipped_relu(x, 1.1),
        lambda x: np.minimum(np.maximum(x, 0), 1.1),
        (4, 5),
    ),
    flops=lambda x: np.minimum(np.maximum(x, Number(0)), Number(1.1)),
    fuzz=drawn(
        lambda g: call(g.x(*g.shape()), z=g.integer(1, 48) / 16),
        lambda x, z: np.clip(x, 0, z),
        **ANY,
        of="F ops",
    ),
    signature="(x, z=20.0)",
    edges=["F.clipped_relu(s(N, 3), 1.)", "F.clipped_relu(s(), 1.)"],
    errors="F.clipped_relu(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "leaky_relu",
    cases=[
        case(
            lambda o, x: o.leaky_relu(x, 0.3),
            lambda x: np.where(x < 0, 0.3 * x, x),
            (4, 5),
        ),
        case(
            lambda o, x: o.leaky_relu(x, -0.3),
            lambda x: np.where(x < 0, -0.3 * x, x),
            (9,),
        ),
        case(
            lambda o, x: o.leaky_relu(x), lambda x: np.where(x < 0, 0.2 * x, x), (0, 2)
        ),
    ],
    fuzz=drawn(
        lambda g: call(g.x(*g.shape()), slope=g.uniform(-1, 1)),
        lambda x, slope: np.where(x >= 0, x, slope * x),
        special=True,
    ),
    signature="(x, slope=0.2)",
    edges=["F.leaky_relu(s(N, 3))", "F.leaky_relu(s())"],
    errors="F.leaky_relu(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "elu",
    cases=case(
        lambda o, x: o.elu(x, 0.7),
        lambda x: np.where(x < 0, 0.7 * np.expm1(x), x),
        (4, 5),
    ),
    fuzz=drawn(
        lambda g: call(g.x(*g.shape()), alpha=g.uniform(0.1, 2)),
        lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x)),
        special=True,
    ),
    signature="(x, alpha=1.0)",
    edges=["F.elu(s(N, 3))", "F.elu(s())"],
    errors="F.elu(i(2)) -> InvalidType",
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "softplus",
    cases=case(
        lambda o, x: o.softplus(x, 2.0), lambda x: np.log1p(np.exp(2 * x)) / 2, (4, 5)
    ),
    fuzz=drawn(
        lambda g: call(g.x(*g.shape()), beta=g.uniform(0.5, 3)),
        lambda x, beta: np.logaddexp(0, beta * x) / beta,
        special=True,
    ),
    signature="(x, beta=1.0)",
    edges=["F.softplus(s(N, 3))", "F.softplus(s())"],
    errors=[
        "F.softplus(i(2)) -> InvalidType",
        "F.softplus(f(2), 0.) -> ZeroDivisionError | float32 (2,)",
    ],
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "crelu",
    fuzz=drawn(
        lambda g: (lambda x: call(x, axis=g.axis(x.value.ndim)))(g.x(*g.shape(1))),
        lambda x, axis: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis),
        **ANY,
    ),
    signature="(x, axis=1)",
    edges=["F.crelu(s(N, 3))", "F.crelu(s())"],
    errors=[
        "F.crelu(f(2, 3), axis=5) -> InvalidType",
        "F.crelu(f(2, 3), axis=1.5) -> TypeError",
        "F.crelu(i(2, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images),
)

function(
    "swish",
    fuzz=drawn(channels, lambda x, w: x * sp.expit(along(w, x) * x)),
    signature="(x, beta)",
    edges=["F.swish(s(N, 3), s(3))", "F.swish(s(), s())"],
    errors=[
        "F.swish(f(2, 3), f(4)) -> InvalidType",
        "F.swish(f(2, 3), d(3)) -> InvalidType",
        "F.swish(i(2, 3), f(3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images, speed.normal(32)),
)


def from_axis(g: Draw):
    """x, and y whose axes are those of x from ``axis`` on."""
    shape = g.shape(1)
    axis = g.integer(0, len(shape) - 1)
    n = g.integer(axis + 1, len(shape))
    return call(g.x(*shape), g.x(*shape[axis:n]), axis=axis)


def spread(y, x, axis):
    return y.reshape(y.shape + (1,) * (x.ndim - axis - y.ndim))


function(
    "scale",
    fuzz=drawn(from_axis, lambda x, y, axis: x * spread(y, x, axis)),
    signature="(x, y, axis=1)",
    edges="F.scale(s(N, 3), s(3))",
    errors=[
        "F.scale(f(2, 3), f(2), axis=1) -> InvalidType",
        "F.scale(f(2, 3), d(3)) -> float64 (2, 3) | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images, speed.normal(32)),
)

function(
    "bias",
    fuzz=drawn(from_axis, lambda x, y, axis: x + spread(y, x, axis)),
    signature="(x, y, axis=1)",
    edges="F.bias(s(N, 3), s(3))",
    errors=[
        "F.bias(f(2, 3), f(2), axis=1) -> InvalidType",
        "F.bias(f(2, 3), f(3), axis=2) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images, speed.normal(32)),
)


def divisible(g: Draw):
    shape = list(g.shape(2))
    axis, pool = g.integer(0, len(shape) - 1), g.integer(1, 3)
    shape[axis] = pool * g.integer(1, 3)
    return call(g.x(*shape), pool, axis=axis)


def maxout(x, pool, axis):
    axis = operator.index(axis) % x.ndim
    shape = (*x.shape[:axis], x.shape[axis] // pool, pool, *x.shape[axis + 1 :])
    return x.reshape(shape).max(axis + 1)


function(
    "maxout",
    fuzz=drawn(divisible, maxout, smooth=False),
    signature="(x, pool_size, axis=1)",
    edges="F.maxout(s(N, 6), 3)",
    errors=[
        "F.maxout(f(2, 5), 2) -> InvalidType",
        "F.maxout(f(2, 4), 0) -> ValueError",
        "F.maxout(f(2, 4), 2, axis=4) -> IndexError | InvalidType",
        "F.maxout(i(2, 4), 2) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images, 4),
)


def rrelu_given(g: Draw):
    shape = g.shape()
    return call(g.x(*shape), r=g.u(*shape, role="constant"))


function(
    "rrelu",
    fuzz=[
        drawn(lambda g: call(g.x(*g.shape()), 0.1, 0.4)),
        drawn(rrelu_given, lambda x, r: np.where(x >= 0, x, r * x)),
    ],
    signature="(x, l=0.125, u=0.3333333333333333, **kwargs)",
    edges=[
        "F.rrelu(s(N, 3), r=numpy.full((N, 3), .25, DTYPE))",
        "F.rrelu(s(), r=numpy.full((), .25, DTYPE))",
    ],
    errors=[
        "F.rrelu(f(2), l=.5, u=.1) -> ValueError",
        "F.rrelu(f(2), r=f(3)) -> InvalidType",
        "F.rrelu(i(2)) -> InvalidType",
        "F.rrelu(f(2), foo=1) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.images),
)

MASK = np.array([[True, False, True, False], [False] * 4, [True] * 4])


def where(g: Draw):
    shape = g.shape()
    parts = [g.broadcastable(shape) for _ in range(3)]
    return call(g.mask(*parts[0]), g.x(*parts[1]), g.x(*parts[2]))


function(
    "where",
    cases=[
        case(
            lambda o, x, y: o.where(MASK, x, y),
            lambda x, y: np.where(MASK, x, y),
            (3, 4),
            (3, 4),
            dtypes=FLOATS_AND_INTS,
        ),
        case(
            lambda o, x, y: o.where(MASK, x, y),
            lambda x, y: np.where(MASK, x, y),
            (4,),
            (3, 1),
        ),
    ],
    operands=case(lambda o, c, x, y: o.where(c > 0, x, y), None, (3, 4), (3, 4), (4,)),
    fuzz=drawn(where, np.where, dtypes=ALL, **ANY),
    signature="(condition, x, y)",
    edges=[
        "F.where(i(2, N, 3).astype('?'), s(N, 3), s(N, 3))",
        "F.where(i(2).astype('?'), s(), s())",
    ],
    errors=[
        "F.where(f(2), f(2), f(2)) -> InvalidType",
        "F.where(f(2) > 0, f(2), d(2)) -> InvalidType",
        "F.where(f(2) > 0, f(3), f(2)) -> InvalidType",
        "F.where(i(2), f(2), f(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.bools(*speed.MATRIX), speed.matrix, speed.matrix),
)


def dropout(x):
    # The mask follows memory order. Non-contiguous inputs of the test have another one,
    # so the reference only takes row-major inputs.
    keep = philox(SEED, x.size).reshape(x.shape) >= 0.3 * 2**32
    return np.where(keep, x / 0.7, 0)


def dropout_mask(g: Draw):
    shape = g.shape()
    return call(g.x(*shape), mask=g.x(*shape, role="constant"))


function(
    "dropout",
    cases=case(lambda o, x: o.dropout(x, 0.3, SEED), dropout, (237,)),
    fuzz=[
        # Which elements are dropped depends on where they lie in memory.
        drawn(
            lambda g: call(g.x(*g.shape()), ratio=g.uniform(0, 0.9)),
            smooth=False,
            layouts=False,
        ),
        drawn(dropout_mask, lambda x, mask: x * mask),
        drawn(
            lambda g: call(g.x(*g.shape()), g.uniform(0, 0.9), g.integer(0, 2**40)),
            smooth=False,
            layouts=False,
            of="ops",
        ),
    ],
    signature="(x, ratio=0.5, **kwargs)",
    edges="F.dropout(s(N, 3), mask=2 * i(2, N, 3).astype(DTYPE))",
    errors=[
        "F.dropout(f(2), 1.5) -> ValueError",
        "F.dropout(f(2), -1) -> ValueError",
        "F.dropout(i(2), .5) -> InvalidType",
        "F.dropout(f(2), .5, mask=f(3)) -> ValueError | InvalidType",
        "F.dropout(f(2), .5, train=False) -> ValueError",
        "F.dropout(f(2), .5, foo=False) -> TypeError",
    ],
    onnx="exported",
    speed=speed.row(speed.images),
)


def uniform(shape):
    size = int(np.prod(shape))
    words = philox(SEED, (size + 63) // 64 * 64).reshape(-1)[:size].reshape(shape)
    return (words.astype("u4") // 512 + 0.5) / 2**23


function(
    "uniform",
    cases=case(
        lambda o, x: o.uniform(x, -1.5, 2.0, SEED),
        lambda x: x + (3.5 * uniform(x.shape) - 1.5),
        (5, 31),
    ),
    node="add",
    fuzz=drawn(lambda g: call(g.x(*g.shape()), -0.5, 0.5, g.integer(0, 99)), of="ops"),
)

function(
    "gumbel",
    cases=case(
        lambda o, x: o.gumbel(x, SEED),
        lambda x: x - np.log(-np.log(uniform(x.shape))),
        (5, 31),
    ),
    node="add",
    fuzz=drawn(lambda g: call(g.x(*g.shape()), g.integer(0, 99)), of="ops"),
)


def normal(shape):
    size = int(np.prod(shape))
    u = philox(SEED, (size + 63) // 64 * 64).reshape(-1, 2, 32)
    radius = np.sqrt(-2 * np.log((u[:, 0] + 0.5) / 2**32))
    angle = 2 * np.pi * u[:, 1] / 2**32
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return pairs.ravel()[:size].reshape(shape)


function(
    "gaussian",
    cases=case(
        lambda o, m, v: o.gaussian(m, v, SEED),
        lambda m, v: m + np.exp(v / 2) * normal(m.shape),
        (5, 31),
        (5, 31),
    ),
    node="add",
    fuzz=[
        drawn(same(2), within=4),
        drawn(
            lambda g: (lambda s: call(g.x(*s), g.x(*s), g.integer(0, 2**40)))(
                g.shape()
            ),
            of="ops",
        ),
    ],
    signature="(mean, ln_var, **kwargs)",
    edges=[
        "F.gaussian(s(N, 3), s(N, 3), eps=numpy.ones((N, 3), DTYPE))",
        "F.gaussian(s(), s(), eps=numpy.ones((), DTYPE))",
    ],
    errors=[
        "F.gaussian(f(2), f(3)) -> InvalidType",
        "F.gaussian(f(2), d(2)) -> InvalidType",
        "F.gaussian(i(2), i(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)

function(
    "zoneout",
    fuzz=drawn(
        lambda g: (lambda s: call(g.x(*s), g.x(*s), ratio=g.uniform(0, 0.9)))(g.shape())
    ),
    signature="(h, x, ratio=0.5, **kwargs)",
    edges=["F.zoneout(s(N, 3), s(N, 3))", "F.zoneout(s(), s())"],
    errors=[
        "F.zoneout(f(2), f(3)) -> ValueError | InvalidType",
        "F.zoneout(f(2), d(2)) -> float64 (2,)",
    ],
    draws=True,
    others={"F.zoneout(s(), s())": [()]},
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)

function(
    "gumbel_softmax",
    fuzz=drawn(
        lambda g: (lambda x: call(x, tau=g.uniform(0.5, 2), axis=g.axis(x.value.ndim)))(
            g.x(*g.shape(1, least=1))
        )
    ),
    signature="(log_pi, tau=0.1, axis=1)",
    edges="F.gumbel_softmax(s(N, 3))",
    errors="F.gumbel_softmax(f(2, 3), axis=4) -> RuntimeError | InvalidType",
    draws=True,
    onnx="exported",
    speed=speed.row(speed.matrix),
)
