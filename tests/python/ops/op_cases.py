"""One case per operation of the core: how to call it and its NumPy reference.

``CASES[name]`` is a list; the coverage test demands an entry for every operation
that the core lists. References get float64 arrays and are written with NumPy and
SciPy alone.
"""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import scipy.special
from numpy.lib.stride_tricks import sliding_window_view

from renga.variable import as_variable


@dataclasses.dataclass
class Case:
    """An operation applied to random arrays.

    Attributes:
        call: Takes (ops, *arrays) and returns a Variable or a list of them.
        reference: Takes the same arrays in float64 and returns arrays.
        shapes: The shapes of the random arrays.
        low, high: The range of their elements.
        orders: How many times the operation can be differentiated (0, 1, 2).
        dtypes: The dtypes of the arrays, as characters.
        tolerance: Relative error accepted in float32.
    """

    call: Callable
    reference: Callable
    shapes: tuple
    low: float = -2.0
    high: float = 2.0
    orders: int = 2
    dtypes: str = "efd"
    tolerance: float = 2e-5


CASES: dict[str, list[Case]] = {}
FLOATS_AND_INTS = "efdbhilB"


def case(name, call, reference, *shapes, **options):
    CASES.setdefault(name, []).append(Case(call, reference, shapes, **options))


def unary(name, reference, **options):
    for shape in ((3, 4), (), (0, 3), (2, 3, 5, 7)):
        case(name, lambda o, x: getattr(o, name)(x), reference, shape, **options)


def binary(name, reference, **options):
    for shapes in (
        ((3, 4), (3, 4)),
        ((2, 3, 4), (3, 1)),
        ((), (2, 3)),
        ((0, 2), (1, 2)),
    ):
        case(
            name, lambda o, a, b: getattr(o, name)(a, b), reference, *shapes, **options
        )


binary("add", np.add, dtypes=FLOATS_AND_INTS)
binary("subtract", np.subtract, dtypes=FLOATS_AND_INTS)
binary("multiply", np.multiply, dtypes=FLOATS_AND_INTS)
binary("divide", np.divide, low=0.5)
binary("floor_divide", np.floor_divide, low=0.5, high=3, orders=0)
binary("power", np.power, low=0.5)
binary("maximum", np.maximum)
binary("minimum", np.minimum)
binary("arctan2", np.arctan2, low=0.5)
binary("fmod", np.fmod, low=0.5, high=3)

binary("squared_difference", lambda a, b: (a - b) ** 2)
for shapes in (((3, 4),) * 3, ((2, 3, 4), (3, 1), (4,)), ((0, 2),) * 3):
    case(
        "linear_interpolate",
        lambda o, p, x, y: o.linear_interpolate(p, x, y),
        lambda p, x, y: p * x + (1 - p) * y,
        *shapes,
    )
ANGLES = np.arange(15).reshape(5, 3) * 0.37


def rotated(x):
    points = (x[..., :3] + 1j * x[..., 3:]) * np.exp(1j * ANGLES)
    return np.concatenate([points.real, points.imag], -1)


for shape in ((2, 3, 5, 6), (2, 1, 3, 5, 6), (0, 2, 5, 6)):
    case(
        "rotate_pairs",
        lambda o, x: o.rotate_pairs(x, np.cos(ANGLES), np.sin(ANGLES)),
        rotated,
        shape,
    )

unary("negative", np.negative, dtypes="efdbhil")
unary("absolute", np.abs)
unary("square", np.square)
unary("reciprocal", lambda x: 1 / x, low=0.5)
unary("sqrt", np.sqrt, low=0.5)
unary("rsqrt", lambda x: 1 / np.sqrt(x), low=0.5)
unary("exp", np.exp)
unary("expm1", np.expm1)
unary("log", np.log, low=0.5)
unary("log1p", np.log1p, low=-0.5)
unary("log2", np.log2, low=0.5)
unary("log10", np.log10, low=0.5)
unary("sin", np.sin)
unary("cos", np.cos)
unary("tan", np.tan, low=-1, high=1)
unary("arcsin", np.arcsin, low=-0.8, high=0.8)
unary("arccos", np.arccos, low=-0.8, high=0.8)
unary("arctan", np.arctan)
unary("arctanh", np.arctanh, low=-0.8, high=0.8)
unary("sinh", np.sinh)
unary("cosh", np.cosh)
unary("erf", scipy.special.erf)
unary("erfc", scipy.special.erfc)
unary("ndtr", scipy.special.ndtr)
unary("erfinv", scipy.special.erfinv, low=-0.8, high=0.8)
unary("erfcinv", scipy.special.erfcinv, low=0.2, high=1.8)
unary("ndtri", scipy.special.ndtri, low=0.1, high=0.9)
unary("erfcx", scipy.special.erfcx)
unary("log_ndtr", scipy.special.log_ndtr)
unary("lgamma", scipy.special.gammaln, low=1.5, high=4)
unary("digamma", scipy.special.digamma, low=1.8, high=4)
for shapes in (((3, 4),), ((2, 3, 5),), ((0, 2),)):
    case(
        "polygamma",
        lambda o, x: o.polygamma(np.array(2), x),
        lambda x: scipy.special.polygamma(2, x),
        *shapes,
        low=1.5,
        high=3,
    )
    case(
        "zeta",
        lambda o, q: o.zeta(np.array(2.5), q, 1),
        lambda q: scipy.special.zeta(3.5, q),
        *shapes,
        low=1.5,
        high=3,
    )
unary("sign", np.sign, orders=0, dtypes="efdbhil")
unary("floor", np.floor, orders=0)
unary("ceil", np.ceil, orders=0)
unary("fix", np.fix, orders=0, dtypes="efdbhil")
unary("sigmoid", scipy.special.expit)
unary("tanh", np.tanh)
unary("relu", lambda x: np.maximum(x, 0))

case(
    "leaky_relu",
    lambda o, x: o.leaky_relu(x, 0.3),
    lambda x: np.where(x < 0, 0.3 * x, x),
    (4, 5),
)
case(
    "leaky_relu",
    lambda o, x: o.leaky_relu(x, -0.3),
    lambda x: np.where(x < 0, -0.3 * x, x),
    (9,),
)
case(
    "leaky_relu",
    lambda o, x: o.leaky_relu(x),
    lambda x: np.where(x < 0, 0.2 * x, x),
    (0, 2),
)
for shapes in (((3, 4), (4,)), ((2, 3, 5), (3, 1)), ((4, 5), ()), ((0, 2), (2,))):
    case(
        "prelu",
        lambda o, x, w: o.prelu(x, w),
        lambda x, w: np.where(x < 0, w * x, x),
        *shapes,
    )
case(
    "elu",
    lambda o, x: o.elu(x, 0.7),
    lambda x: np.where(x < 0, 0.7 * np.expm1(x), x),
    (4, 5),
)
case(
    "selu",
    lambda o, x: o.selu(x, 0.7, 1.3),
    lambda x: 1.3 * np.where(x < 0, 0.7 * np.expm1(x), x),
    (4, 5),
)
case(
    "softplus",
    lambda o, x: o.softplus(x, 2.0),
    lambda x: np.log1p(np.exp(2 * x)) / 2,
    (4, 5),
)
case(
    "clipped_relu",
    lambda o, x: o.clipped_relu(x, 1.1),
    lambda x: np.minimum(np.maximum(x, 0), 1.1),
    (4, 5),
)
case(
    "hard_sigmoid",
    lambda o, x: o.hard_sigmoid(x),
    lambda x: np.minimum(np.maximum(0.2 * x + 0.5, 0), 1),
    (9, 5),
    low=-5,
    high=5,
)
case(
    "hard_swish",
    lambda o, x: o.hard_swish(x),
    lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6,
    (9, 5),
    low=-5,
    high=5,
)
case(
    "gelu",
    lambda o, x: o.gelu(x),
    lambda x: 0.5 * x * (1 + scipy.special.erf(0.5**0.5 * x)),
    (9, 5),
    low=-4,
    high=4,
)
case(
    "gelu",
    lambda o, x: o.gelu(x, "tanh"),
    lambda x: 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    (4, 5),
    low=-4,
    high=4,
)
case(
    "silu",
    lambda o, x: o.silu(x),
    lambda x: x / (1 + np.exp(-x)),
    (9, 5),
    low=-4,
    high=4,
)
case(
    "mish",
    lambda o, x: o.mish(x),
    lambda x: x * np.tanh(np.log1p(np.exp(x))),
    (9, 5),
    low=-4,
    high=4,
)
case(
    "clip", lambda o, x: o.clip(x, -0.5, 0.75), lambda x: np.clip(x, -0.5, 0.75), (6, 5)
)

MASK = np.array([[True, False, True, False], [False] * 4, [True] * 4])
case(
    "where",
    lambda o, x, y: o.where(MASK, x, y),
    lambda x, y: np.where(MASK, x, y),
    (3, 4),
    (3, 4),
    dtypes=FLOATS_AND_INTS,
)
case(
    "where",
    lambda o, x, y: o.where(MASK, x, y),
    lambda x, y: np.where(MASK, x, y),
    (4,),
    (3, 1),
)


def reduction(name, reference, **options):
    def one(shape, axis, keepdims):
        case(
            name,
            lambda o, x: getattr(o, name)(x, axis, keepdims),
            lambda x: reference(x, axis=axis, keepdims=keepdims),
            shape,
            **options,
        )

    one((3, 4), None, False)
    one((3, 4), (0,), True)
    one((2, 3, 4, 5), (1, 3), False)
    one((2, 3, 4, 5), (-4, -2), True)
    one((7,), (0,), False)
    one((), None, False)


reduction("sum", np.sum)
reduction("sum_of_squares", lambda x, **options: np.sum(x * x, **options))
reduction("prod", np.prod)
reduction("max", np.max)
reduction("min", np.min)
case("sum", lambda o, x: o.sum(x, (0,)), lambda x: x.sum(0), (0, 3))
case("sum", lambda o, x: o.sum(x, (1,)), lambda x: x.sum(1), (3, 1000))
case("sum", lambda o, x: o.sum(x), np.sum, (300, 400))
case("max", lambda o, x: o.max(x, (1,)), lambda x: x.max(1), (70, 9))
case("min", lambda o, x: o.min(x, (0,)), lambda x: x.min(0), (90, 3))
for shape, axis in (
    ((3, 4, 2), 1),
    ((70, 30), -1),
    ((30, 70), 0),
    ((20, 3), 0),
    ((5, 1), 1),
    ((0, 3), 0),
    ((3, 0), 1),
):
    case(
        "cumsum",
        lambda o, x, a=axis: o.cumsum(x, a),
        lambda x, a=axis: np.cumsum(x, a),
        shape,
    )
    case(
        "cumprod",
        lambda o, x, a=axis: o.cumprod(x, a),
        lambda x, a=axis: np.cumprod(x, a),
        shape,
        low=-1.2,
        high=1.2,
    )
case("cumsum", lambda o, x: o.cumsum(x), np.cumsum, (3, 4))
case("cumprod", lambda o, x: o.cumprod(x), np.cumprod, (3, 4))
case("cumsum", lambda o, x: o.cumsum(x, 1), lambda x: np.cumsum(x, 1), (300, 300))
case(
    "prod",
    lambda o, x: o.prod(x, (1,)),
    lambda x: x.prod(1),
    (4, 20),
    low=0.8,
    high=1.2,
)
case(
    "prod",
    lambda o, x: o.prod(x, (0, 2)),
    lambda x: x.prod((0, 2)),
    (4, 2, 5),
    low=0.8,
    high=1.2,
)
case(
    "logsumexp",
    lambda o, x: o.logsumexp(x, (1,)),
    lambda x: scipy.special.logsumexp(x, 1),
    (3, 4),
)
case(
    "logsumexp",
    lambda o, x: o.logsumexp(x),
    lambda x: scipy.special.logsumexp(x),
    (3, 4),
)
case(
    "sum_to",
    lambda o, x: o.sum_to(x, (3, 1)),
    lambda x: x.sum((0, 2)).reshape(3, 1),
    (2, 3, 4),
)
for name in ("argmax", "argmin"):
    case(
        name,
        lambda o, x, f=name: getattr(o, f)(x, 1),
        lambda x, f=name: getattr(np, f)(x, 1),
        (3, 4, 2),
        orders=0,
    )
    case(
        name,
        lambda o, x, f=name: getattr(o, f)(x),
        lambda x, f=name: getattr(np, f)(x),
        (3, 4),
        orders=0,
    )

case(
    "matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (3, 4), (4, 5), dtypes="efdil"
)
case(
    "matmul",
    lambda o, a, b: o.matmul(a, b, True, False),
    lambda a, b: a.T @ b,
    (4, 3),
    (4, 5),
)
case(
    "matmul",
    lambda o, a, b: o.matmul(a, b, False, True),
    lambda a, b: a @ b.T,
    (3, 4),
    (5, 4),
)
case(
    "matmul",
    lambda o, a, b: o.matmul(a, b, True, True),
    lambda a, b: a.T @ b.T,
    (4, 3),
    (5, 4),
)
case("matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (2, 1, 3, 4), (5, 4, 2))
case("matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (4,), (4,))
case("matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (4,), (2, 4, 3))
case("matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (3, 4), (4,))
case("matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (40, 50), (50, 60))
case("matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (0, 4), (4, 5))
case("matmul", lambda o, a, b: o.matmul(a, b), np.matmul, (3, 0), (0, 5))
case(
    "linear",
    lambda o, x, w, b: o.linear(x, w, b),
    lambda x, w, b: x @ w.T + b,
    (3, 4),
    (5, 4),
    (5,),
)
case("linear", lambda o, x, w: o.linear(x, w), lambda x, w: x @ w.T, (30, 40), (50, 40))

case(
    "reshape", lambda o, x: o.reshape(x, (6, -1)), lambda x: x.reshape(6, -1), (3, 4, 2)
)
case("transpose", lambda o, x: o.transpose(x), np.transpose, (2, 3, 4))
case(
    "transpose",
    lambda o, x: o.transpose(x, (1, -1, 0)),
    lambda x: x.transpose(1, 2, 0),
    (2, 3, 4),
)
case(
    "swapaxes",
    lambda o, x: o.swapaxes(x, 0, -1),
    lambda x: x.swapaxes(0, -1),
    (2, 3, 4),
)
case(
    "swapaxes", lambda o, x: o.swapaxes(x, 1, 2), lambda x: x.swapaxes(1, 2), (2, 3, 4)
)
case(
    "broadcast_to",
    lambda o, x: o.broadcast_to(x, (2, 3, 4)),
    lambda x: np.broadcast_to(x, (2, 3, 4)),
    (3, 1),
)
case("expand_dims", lambda o, x: o.expand_dims(x, -1), lambda x: x[..., None], (2, 3))
case("expand_dims", lambda o, x: o.expand_dims(x, 1), lambda x: x[:, None], (2, 3))
case("expand_dims", lambda o, x: o.expand_dims(x, 0), lambda x: x[None], (2, 3))
case("squeeze", lambda o, x: o.squeeze(x), np.squeeze, (1, 3, 1))
case("squeeze", lambda o, x: o.squeeze(x, (0,)), lambda x: x[0], (1, 3, 1))
case("flatten", lambda o, x: o.flatten(x), np.ravel, (2, 3, 4))
case(
    "concat",
    lambda o, a, b: o.concat([a, b], 1),
    lambda a, b: np.concatenate([a, b], 1),
    (2, 3),
    (2, 1),
    dtypes=FLOATS_AND_INTS,
)
case(
    "concat",
    lambda o, a, b: o.concat([a, b], 0),
    lambda a, b: np.concatenate([a, b]),
    (2, 3),
    (1, 3),
)
case(
    "concat",
    lambda o, a, b: o.concat([a, b], -3),
    lambda a, b: np.concatenate([a, b]),
    (2, 3, 4),
    (0, 3, 4),
)
case(
    "stack",
    lambda o, a, b: o.stack([a, b], 1),
    lambda a, b: np.stack([a, b], 1),
    (2, 3),
    (2, 3),
)
case(
    "stack",
    lambda o, a, b: o.stack([a, b]),
    lambda a, b: np.stack([a, b]),
    (2, 3),
    (2, 3),
)
case(
    "split_axis",
    lambda o, x: o.split_axis(x, [1, 1, 3], 1),
    lambda x: np.split(x, [1, 1, 3], 1),
    (2, 5),
)
case(
    "split_axis",
    lambda o, x: o.split_axis(x, [2], 0),
    lambda x: np.split(x, [2]),
    (5, 2),
)
for axis in (0, -1):
    case(
        "separate",
        lambda o, x, a=axis: o.separate(x, a),
        lambda x, a=axis: list(np.moveaxis(x, a, 0)),
        (2, 3, 4),
    )
case(
    "pad",
    lambda o, x: o.pad(x, (1, 0), (2, 3), 1.5),
    lambda x: np.pad(x, [(1, 2), (0, 3)], constant_values=1.5),
    (2, 3),
)
case(
    "pad",
    lambda o, x: o.pad(x, (0, 1), (0, 0)),
    lambda x: np.pad(x, [(0, 0), (1, 0)]),
    (2, 3),
)
for mode in ("edge", "reflect", "symmetric", "wrap"):
    for before, after in (((1, 0, 2), (2, 0, 1)), ((9, 0, 1), (7, 2, 8))):
        case(
            "pad_by_copy",
            lambda o, x, b=before, a=after, m=mode: o.pad_by_copy(x, b, a, m),
            lambda x, b=before, a=after, m=mode: np.pad(x, list(zip(b, a)), m),
            (4, 1, 3),
            dtypes=FLOATS_AND_INTS,
        )
case("cast", lambda o, x: o.cast(x, "d"), lambda x: x, (2, 3))
case(
    "slice",
    lambda o, x: o.slice(x, [(3, 2, -2), (1, 3, 1)]),
    lambda x: x[3::-2, 1:4],
    (4, 5),
)

for axes in ((0, 1), (2, 0), (-1, 1)):
    for offset in (0, 1, -2, 9):
        case(
            "diagonal",
            lambda o, x, a=axes, k=offset: o.diagonal(x, k, *a),
            lambda x, a=axes, k=offset: np.diagonal(x, k, *a),
            (3, 5, 4),
        )
# Each element once, several times, backwards and not at all.
for shape, strides, first in (
    ((3, 2), (2, 1), 1),
    ((5, 4), (3, 1), 0),
    ((2, 3, 3), (-4, 0, 2), 9),
    ((0, 2), (9, 9), 99),
    ((), (), 5),
):
    case(
        "as_strided",
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

IDS = np.array([[0, 3, 3], [2, -1, 0]])
case(
    "embed_id",
    lambda o, w: o.embed_id(np.abs(IDS), w),
    lambda w: w[np.abs(IDS)],
    (4, 5),
)
case(
    "embed_id",
    lambda o, w: o.embed_id(IDS, w, -1),
    lambda w: np.where((IDS == -1)[..., None], 0, w[IDS]),
    (4, 5),
)
for axis, ids in ((0, IDS), (1, [4, -5, 0]), (-1, 2), (1, np.zeros((2, 0), "i"))):
    case(
        "take",
        lambda o, x, a=axis, i=ids: o.take(x, np.asarray(i), a),
        lambda x, a=axis, i=ids: np.take(x, i, a),
        (4, 5, 3),
        dtypes=FLOATS_AND_INTS,
    )


def added_at(x, keys, y):
    z = x.copy()
    np.add.at(z, keys, y)
    return z


case(
    "index_add",
    lambda o, x, y: o.index_add(x, IDS, y, 1),
    lambda x, y: added_at(x, (slice(None), IDS), y),
    (2, 4, 3),
    (2, 2, 3, 3),
)
case(
    "index_add",
    lambda o, x, y: o.index_add(x, IDS[0], y),
    lambda x, y: added_at(x, IDS[0], y),
    (4, 3),
    (3, 3),
)
SOURCES, TARGETS = np.array([0, 4, 2, -1, 4]), np.array([1, 1, 0, 2, 3])
case(
    "sparse_product",
    lambda o, v, x: o.sparse_product(v, SOURCES, TARGETS, x, 4),
    lambda v, x: added_at(
        np.zeros((4, 3)),
        TARGETS,
        np.where(SOURCES[:, None] < 0, 0, v[:, None] * x[SOURCES]),
    ),
    (5,),
    (5, 3),
)
case(
    "select_item",
    lambda o, x: o.select_item(x, np.array([2, 0, 2], "i")),
    lambda x: x[np.arange(3), [2, 0, 2]],
    (3, 4),
)

case(
    "softmax",
    lambda o, x: o.softmax(x),
    lambda x: scipy.special.softmax(x, 1),
    (3, 4, 2),
)
case(
    "softmax",
    lambda o, x: o.softmax(x, -1),
    lambda x: scipy.special.softmax(x, -1),
    (2, 3, 50),
)
case(
    "softmax",
    lambda o, x: o.softmax(x, 0),
    lambda x: scipy.special.softmax(x, 0),
    (5, 3),
)
# As columns: 64 positions and more, along an axis that is not last, or of short rows.
for name in ("softmax", "log_softmax"):
    for shape, axis in (
        ((3, 9, 900), 1),
        ((1000, 21), 1),
        ((40, 2, 35), 0),
        ((3, 64), 0),
    ):
        case(
            name,
            lambda o, x, f=name, a=axis: getattr(o, f)(x, a),
            lambda x, f=name, a=axis: getattr(scipy.special, f)(x, a),
            shape,
        )
case(
    "log_softmax",
    lambda o, x: o.log_softmax(x, 0),
    lambda x: scipy.special.log_softmax(x, 0),
    (3, 4),
)


def attention(q, k, v, mask=None, scale=None, dropped=1):
    scores = q @ k.swapaxes(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = (
            np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        )
    return scipy.special.softmax(scores, 3) * dropped @ v


QUERIES, KEYS, VALUES = (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)
SOME_KEYS = np.array([[True, True, False, True, False, True, True]])
case(
    "scaled_dot_product_attention",
    lambda o, q, k, v: o.scaled_dot_product_attention(q, k, v),
    attention,
    QUERIES,
    KEYS,
    VALUES,
)
case(
    "scaled_dot_product_attention",
    lambda o, q, k, v: o.scaled_dot_product_attention(
        q, k, v, is_causal=True, scale=0.7
    ),
    lambda q, k, v: attention(q, k, v, np.tri(5, 7) > 0, 0.7),
    QUERIES,
    KEYS,
    VALUES,
)
case(
    "scaled_dot_product_attention",
    lambda o, q, k, v: o.scaled_dot_product_attention(q, k, v, SOME_KEYS),
    lambda q, k, v: attention(q, k, v, SOME_KEYS),
    QUERIES,
    KEYS,
    VALUES,
)
case(
    "scaled_dot_product_attention",
    lambda o, q, k, v, m: o.scaled_dot_product_attention(q, k, v, m),
    attention,
    QUERIES,
    KEYS,
    VALUES,
    (3, 1, 7),
)
case(
    "scaled_dot_product_attention",
    lambda o, q, k, v: o.scaled_dot_product_attention(
        q, k, v, None, 0.3, False, None, SEED
    ),
    lambda q, k, v: attention(
        q, k, v, dropped=keep_keys(0.3, 30, 7).reshape(2, 3, 5, 7)
    ),
    QUERIES,
    KEYS,
    VALUES,
)
case(
    "scaled_dot_product_attention",
    lambda o, q, k, v: o.scaled_dot_product_attention(q, k, v),
    attention,
    (1, 2, 70, 36),
    (1, 2, 300, 36),
    (1, 2, 300, 40),
    orders=1,
    low=-1,
    high=1,
)

LABELS = np.array([[1, 3], [-1, 0], [2, 2]])
WEIGHT = np.array([0.5, 1.0, 2.0, 0.0])


def nll(x, labels, weight):
    log_p = scipy.special.log_softmax(x, 1)
    picked = np.take_along_axis(log_p, np.maximum(labels, 0)[:, None], 1)[:, 0]
    return np.where(labels < 0, 0, -weight[np.maximum(labels, 0)] * picked)


case(
    "softmax_nll",
    lambda o, x: o.softmax_nll(x, LABELS),
    lambda x: nll(x, LABELS, np.ones(4)),
    (3, 4, 2),
)
case(
    "softmax_nll",
    lambda o, x: o.softmax_nll(x, LABELS, WEIGHT.astype(x.dtype)),
    lambda x: nll(x, LABELS, WEIGHT),
    (3, 4, 2),
)
BINARY_LABELS = np.arange(12).reshape(3, 4) % 3 - 1
case(
    "sigmoid_nll",
    lambda o, x: o.sigmoid_nll(x, BINARY_LABELS),
    lambda x: np.where(
        BINARY_LABELS < 0, 0, np.logaddexp(0, np.where(BINARY_LABELS > 0, -x, x))
    ),
    (3, 4),
)
case(
    "huber",
    lambda o, x, t: o.huber(x, t, 0.7),
    lambda x, t: np.where(
        abs(x - t) < 0.7, (x - t) ** 2 / 2, 0.7 * (abs(x - t) - 0.35)
    ),
    (4, 5),
    (4, 5),
)
case(
    "bernoulli_nll",
    lambda o, x, t: o.bernoulli_nll(x, t),
    lambda x, t: np.log1p(np.exp(x)) - x * t,
    (4, 5),
    (4, 5),
)
# Short runs of broadcast operands.
case(
    "multiply",
    lambda o, a, b: o.multiply(a, b),
    np.multiply,
    (300, 7),
    (300, 1),
    dtypes=FLOATS_AND_INTS,
)
case(
    "add",
    lambda o, a, b: o.add(a, b),
    np.add,
    (4, 90, 3, 5),
    (90, 1, 1),
    dtypes=FLOATS_AND_INTS,
)
case(
    "logsumexp",
    lambda o, x: o.logsumexp(x, (0, 2)),
    lambda x: scipy.special.logsumexp(x, (0, 2)),
    (3, 4, 5),
)
case(
    "logsumexp",
    lambda o, x: o.logsumexp(x, (1,)),
    lambda x: scipy.special.logsumexp(x, 1),
    (700, 9),
)
case(
    "logsumexp",
    lambda o, x: o.logsumexp(x, (1,)),
    lambda x: scipy.special.logsumexp(x, 1),
    (2, 9, 400),
)
COLUMN_LABELS = np.arange(2 * 900).reshape(2, 900) % 8 - 1
case(
    "softmax_nll",
    lambda o, x: o.softmax_nll(x, COLUMN_LABELS),
    lambda x: nll(x, COLUMN_LABELS, np.ones(7)),
    (2, 7, 900),
)
case(
    "softmax_nll",
    lambda o, x: o.softmax_nll(x, COLUMN_LABELS[0]),
    lambda x: nll(x, COLUMN_LABELS[0], np.ones(7)),
    (900, 7),
)
case(
    "softmax_cross_entropy",
    lambda o, x: o.softmax_cross_entropy(x, LABELS),
    lambda x: nll(x, LABELS, np.ones(4)).sum() / 5,
    (3, 4, 2),
)
case(
    "softmax_cross_entropy",
    lambda o, x: o.softmax_cross_entropy(x, LABELS),
    lambda x: nll(x, LABELS, np.ones(40)).sum() / 5,
    (3, 40, 2),
)
case(
    "softmax_cross_entropy",
    lambda o, x: o.softmax_cross_entropy(x, LABELS, False),
    lambda x: nll(x, LABELS, np.ones(4)).sum() / 3,
    (3, 4, 2),
)


def philox(seed, n):
    """n numbers of Philox 4x32-10, written after the paper's description.

    Number j of each block of 64 is word j // 16 of the block's counter j % 16.
    """
    count = np.arange((n + 63) // 64 * 16, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c = [
        count & low,
        count >> np.uint64(32),
        np.zeros_like(count),
        np.zeros_like(count),
    ]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        k0, k1 = np.uint64(keys[0]), np.uint64(keys[1])
        c = [
            (p1 >> np.uint64(32)) ^ c[1] ^ k0,
            p1 & low,
            (p0 >> np.uint64(32)) ^ c[3] ^ k1,
            p0 & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    blocks = np.stack(c).reshape(4, -1, 16).transpose(1, 0, 2)
    return blocks.ravel()[:n].astype(np.float64)


SEED = 123456789012345


def dropout(x):
    # The mask follows memory order. Non-contiguous inputs of the test have another one,
    # so the reference only takes row-major inputs.
    keep = philox(SEED, x.size).reshape(x.shape) >= 0.3 * 2**32
    return np.where(keep, x / 0.7, 0)


def keep_keys(ratio, queries, keys):
    """The factors of a dropout that draws 64 numbers at a time for each query."""
    blocks = -(-keys // 64)
    numbers = philox(SEED, queries * blocks * 64).reshape(queries, blocks * 64)
    return (numbers[:, :keys] >= ratio * 2**32) / (1 - ratio)


def normal(shape):
    size = int(np.prod(shape))
    u = philox(SEED, (size + 63) // 64 * 64).reshape(-1, 2, 32)
    radius = np.sqrt(-2 * np.log((u[:, 0] + 0.5) / 2**32))
    angle = 2 * np.pi * u[:, 1] / 2**32
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return pairs.ravel()[:size].reshape(shape)


def uniform(shape):
    size = int(np.prod(shape))
    words = philox(SEED, (size + 63) // 64 * 64).reshape(-1)[:size].reshape(shape)
    return (words.astype("u4") // 512 + 0.5) / 2**23


case(
    "uniform",
    lambda o, x: o.uniform(x, -1.5, 2.0, SEED),
    lambda x: x + (3.5 * uniform(x.shape) - 1.5),
    (5, 31),
)
case(
    "gumbel",
    lambda o, x: o.gumbel(x, SEED),
    lambda x: x - np.log(-np.log(uniform(x.shape))),
    (5, 31),
)
case("dropout", lambda o, x: o.dropout(x, 0.3, SEED), dropout, (237,))
case(
    "gaussian",
    lambda o, m, v: o.gaussian(m, v, SEED),
    lambda m, v: m + np.exp(v / 2) * normal(m.shape),
    (5, 31),
    (5, 31),
)


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


WINDOWS = [
    ((1, 1), (1, 1), (1, 1), 1),
    ((2, 1), (0, 2), (1, 1), 1),
    ((1, 2), (2, 1), (2, 1), 2),
]
for window in WINDOWS:
    groups = window[3]
    case(
        "convolution_2d",
        lambda o, x, w, v=window: o.convolution_2d(x, w, None, v),
        lambda x, w, v=window: convolution(x, w, *v),
        (2, 4, 6, 7),
        (6, 4 // groups, 3, 2),
    )
    case(
        "deconvolution_2d",
        lambda o, x, w, v=window: o.deconvolution_2d(x, w, None, v),
        lambda x, w, v=window: transposed_convolution(x, w, *v),
        (2, 4, 5, 4),
        (4, 6 // groups, 3, 3),
    )
case(
    "convolution_2d",
    lambda o, x, w, b: o.convolution_2d(x, w, b, WINDOWS[0]),
    lambda x, w, b: convolution(x, w, *WINDOWS[0]) + b[:, None, None],
    (2, 3, 5, 5),
    (4, 3, 3, 3),
    (4,),
)


def block_convolution(x, w, stride, pad, dilate, groups, extents):
    """The first outputs, up to extents, of an image with zeros after it."""
    after = [(0, n * s + r) for n, s, r in zip(extents, stride, reaches(w, dilate))]
    x = np.pad(x, [(0, 0), (0, 0), *after])
    padded = np.pad(x, [(0, 0), (0, 0), *((p, 0) for p in pad)])
    y = convolution(padded, w, stride, (0, 0), dilate, groups)
    return y[:, :, : extents[0], : extents[1]]


def transposed_linear(x, linear, shape):
    """The transpose of a linear map of arrays of a shape, applied to x."""
    basis = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    return np.array([(linear(e) * x).sum() for e in basis]).reshape(shape)


BLOCKS = [  # window, extents of the larger block, of the smaller block
    (((1, 1), (1, 0), (1, 1), 1), (3, 4), (2, 3)),
    (((2, 1), (0, 2), (1, 2), 2), (4, 2), (3, 2)),
]
for window, large, small in BLOCKS:
    x_shape, w_shape, y_shape = (
        (2, 4, *large),
        (2, 4 // window[3], 3, 2),
        (2, 2, *small),
    )
    options = dict(orders=0, dtypes="fd", tolerance=1e-4)
    case(
        "block_convolution",
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
    case(
        "block_convolution_input_grad",
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
    case(
        "block_convolution_weight_grad",
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

WINDOWS_ND = [  # window, extents of the image, of the kernel
    (((2,), (1,), (1,), 2), (7,), (3,)),
    (((1, 2, 1), (1, 0, 2), (1, 1, 2), 1), (3, 4, 3), (2, 3, 2)),
    (((2, 1, 1), (1, 1, 0), (1, 1, 1), 2), (4, 3, 2), (3, 2, 1)),
    (((1, 2, 1, 1), (0, 1, 0, 0), (1, 1, 1, 1), 1), (2, 3, 2, 2), (2, 2, 1, 2)),
]
for window, size, kernel in WINDOWS_ND:
    groups = window[3]
    case(
        "convolution_nd",
        lambda o, x, w, b, v=window: o.convolution_nd(x, w, b, v),
        lambda x, w, b, v=window: (
            convolution(x, w, *v) + b.reshape(-1, *(1,) * (x.ndim - 2))
        ),
        (2, 4, *size),
        (6, 4 // groups, *kernel),
        (6,),
    )
    case(
        "deconvolution_nd",
        lambda o, x, w, b, v=window: o.deconvolution_nd(x, w, b, v),
        lambda x, w, b, v=window: (
            transposed_convolution(x, w, *v) + b.reshape(-1, *(1,) * (x.ndim - 2))
        ),
        (2, 4, *size),
        (4, 6 // groups, *kernel),
        (6,),
    )


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


def unpooled(x, ksize, stride, pad):
    """Each pixel added to all of its window in the smallest image."""
    (kh, kw), (sh, sw), (ph, pw), (h, w) = ksize, stride, pad, x.shape[2:]
    y = np.zeros((*x.shape[:2], sh * (h - 1) + kh, sw * (w - 1) + kw), x.dtype)
    for i, j in np.ndindex(h, w):
        y[:, :, i * sh : i * sh + kh, j * sw : j * sw + kw] += x[:, :, i, j, None, None]
    return y[:, :, ph : y.shape[2] - ph, pw : y.shape[3] - pw]


def with_indices(y, indices):
    return [y, as_variable(indices)]


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


def interpolated(image, row, column):
    """Of the four pixels around a point, those outside being 0."""
    y, (h, w) = 0.0, image.shape
    for i in (int(np.floor(row)), int(np.floor(row)) + 1):
        for j in (int(np.floor(column)), int(np.floor(column)) + 1):
            if 0 <= i < h and 0 <= j < w:
                y = y + (1 - abs(row - i)) * (1 - abs(column - j)) * image[i, j]
    return y


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


def sampled(x, rows, columns):
    y = np.zeros((*x.shape[:2], rows[0].size))
    for n, c, p in np.ndindex(*y.shape):
        y[n, c, p] = interpolated(x[n, c], rows[n].flat[p], columns[n].flat[p])
    return y.reshape(*x.shape[:2], *rows.shape[1:])


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


case(
    "resample_2d",
    lambda o, x: o.resample_2d(
        x, np.array([0, 0.25, 2.5, 3, 3]), np.array([4, 1.5, 0.0])
    ),
    lambda x: resampled(x, [0, 0.25, 2.5, 3, 3], [4, 1.5, 0]),
    (2, 3, 4, 5),
)
case(
    "resample_2d",
    lambda o, x: o.resample_2d(x, np.linspace(0, 3, 9), np.linspace(0, 1, 7)),
    lambda x: resampled(x, np.linspace(0, 3, 9), np.linspace(0, 1, 7)),
    (1, 2, 4, 2),
)
case(
    "resample_2d",
    lambda o, x: o.resample_2d(x, np.array([1, 5.0]), np.zeros(0)),
    lambda x: np.zeros((2, 1, 2, 0)),
    (2, 1, 6, 3),
)
case(
    "sample_2d",
    lambda o, x, r, c: o.sample_2d(x, r, c),
    sampled,
    (2, 3, 3, 4),
    (2, 5),
    (2, 5),
    low=-1.9,
    high=3.9,
)
case(
    "sample_2d",
    lambda o, x, r, c: o.sample_2d(x, r, c),
    sampled,
    (1, 2, 3, 2),
    (1, 2, 3),
    (1, 2, 3),
    low=0.1,
    high=0.9,
)
case(
    "roi_average_2d",
    lambda o, x: o.roi_average_2d(x, REGIONS, REGION_IMAGES, (2, 2), [2, 3]),
    lambda x: pooled_regions(x, lambda points: sum(p or 0 for p in points) / 6),
    (2, 2, 5, 6),
)
case(
    "roi_max_2d",
    lambda o, x: o.roi_max_2d(x, REGIONS, REGION_IMAGES, (2, 2), [2, 3], 0.0),
    lambda x: pooled_regions(
        x, lambda points: max((p for p in points if p is not None), default=0)
    ),
    (2, 2, 5, 6),
)

POOLS = [((2, 2), (2, 2), (0, 0)), ((3, 2), (1, 2), (1, 0)), ((2, 3), (2, 1), (0, 1))]
for pool in POOLS:
    for cover_all in (False, True):
        case(
            "max_pooling_2d",
            lambda o, x, p=pool, c=cover_all: o.max_pooling_2d(x, p, c),
            lambda x, p=pool, c=cover_all: windows_of(x, *p, c, -np.inf).max(-1),
            (2, 3, 6, 7),
        )
    case(
        "average_pooling_2d",
        lambda o, x, p=pool: o.average_pooling_2d(x, p),
        lambda x, p=pool: windows_of(x, *p, False, 0).mean(-1),
        (2, 3, 6, 7),
    )
    case(
        "unpooling_2d",
        lambda o, x, p=pool: o.unpooling_2d(
            x, p, [s * (n - 1) + k - 2 * d for n, k, s, d in zip(x.shape[2:], *p)]
        ),
        lambda x, p=pool: unpooled(x, *p),
        (2, 3, 4, 5),
    )
    at = np.arange(120).reshape(2, 3, 4, 5) * 7 % (pool[0][0] * pool[0][1])
    for margin in (0, -1):  # with -1 some pixels are outside
        extents = [
            s * (n - 1) + k - 2 * d + (margin if s > 1 else 0)
            for n, k, s, d in zip((4, 5), *pool)
        ]
        case(
            "upsampling_2d",
            lambda o, x, p=pool, a=at, e=extents: o.upsampling_2d(x, a, p, e),
            lambda x, p=pool, a=at, e=extents: upsampled(x, a, *p, e),
            (2, 3, 4, 5),
        )
    case(
        "max_pooling_2d_with_indices",
        lambda o, x, p=pool: with_indices(*o.max_pooling_2d_with_indices(x, p, False)),
        lambda x, p=pool: [
            f(windows_of(x, *p, False, -np.inf), -1) for f in (np.max, np.argmax)
        ],
        (2, 3, 6, 7),
        orders=0,
    )


def normalized(x, gamma, beta, axis, mean=None, var=None):
    """Batch normalization by definition; gamma has the axes not in ``axis``."""

    def broadcast(p):
        return p.reshape([1 if i in axis else n for i, n in enumerate(x.shape)])

    mean = x.mean(axis, keepdims=True) if mean is None else broadcast(mean)
    var = ((x - mean) ** 2).mean(axis, keepdims=True) if var is None else broadcast(var)
    return (x - mean) / np.sqrt(var + 2e-5) * broadcast(gamma) + broadcast(beta)


NORMALIZED = [  # shape of x, reduced axes, axis argument
    ((7, 5), (0,), None),
    ((4, 3, 5, 6), (0, 2, 3), None),
    ((5, 3, 4), (0,), None),
    ((4, 3, 5), (1,), (-2,)),
    ((3, 4, 5, 2), (0, 1), (0, 1)),
    ((3, 4, 1, 5), (0, 2, 3), (0, 2, 3)),
]
for shape, axis, named in NORMALIZED:
    parameter = tuple(n for i, n in enumerate(shape) if i not in axis)
    options = dict(tolerance=1e-4, low=0.25)
    case(
        "batch_normalization",
        lambda o, x, g, b, a=named: o.batch_normalization(x, g, b, axis=a),
        lambda x, g, b, a=axis: normalized(x, g, b, a),
        shape,
        parameter,
        parameter,
        **options,
    )
    case(
        "fixed_batch_normalization",
        lambda o, x, g, b, m, v, a=named: o.fixed_batch_normalization(
            x, g, b, m, v, axis=a
        ),
        lambda x, g, b, m, v, a=axis: normalized(x, g, b, a, m, v),
        shape,
        *[parameter] * 4,
        **options,
    )
    # One rank, whose parameters are its own, shared by all ranks, or a shard.
    for shared, offset in [(False, None), (True, None), (True, 0)][
        : 2 + (len(parameter) == 1)
    ]:
        case(
            "multi_node_batch_normalization",
            lambda o, x, g, b, a=named, r=(shared, offset): (
                o.multi_node_batch_normalization(
                    x, g, b, (lambda local: local[None], *r), axis=a
                )
            ),
            lambda x, g, b, a=axis: normalized(x, g, b, a),
            shape,
            parameter,
            parameter,
            **options,
        )


def normalized_rows(x, gamma, beta=None, eps=1e-5):
    axes = tuple(range(-gamma.ndim, 0))
    centred = x if beta is None else x - x.mean(axes, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps) * gamma
    return y if beta is None else y + beta


for shape, parameter in (
    ((7, 50), (50,)),
    ((3, 4, 5), (5,)),
    ((2, 3, 4, 2), (4, 2)),
    ((0, 3), (3,)),
    ((40, 3), (3,)),
):
    case(
        "layer_normalization",
        lambda o, x, g, b: o.layer_normalization(x, g, b),
        normalized_rows,
        shape,
        parameter,
        parameter,
        tolerance=1e-4,
        low=0.25,
    )
    case(
        "rms_normalization",
        lambda o, x, g: o.rms_normalization(x, g, 0.1),
        lambda x, g: normalized_rows(x, g, None, 0.1),
        shape,
        parameter,
        tolerance=1e-4,
        low=0.25,
    )


def normalized_groups(x, gamma, beta, groups):
    rows = x.reshape(len(x), groups, -1) if x.size else x
    centred = rows - rows.mean(-1, keepdims=True)
    y = (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).reshape(
        x.shape
    )
    channels = (-1, *(1,) * (x.ndim - 2))
    return y * gamma.reshape(channels) + beta.reshape(channels)


for shape, groups in (
    ((2, 6, 5), 3),
    ((1, 6, 5), 3),
    ((3, 4, 3, 2), 1),
    ((2, 3, 4, 5), 3),
    ((4, 6), 2),
    ((0, 4, 3), 2),
):
    case(
        "group_normalization",
        lambda o, x, g, b, n=groups: o.group_normalization(x, n, g, b),
        lambda x, g, b, n=groups: normalized_groups(x, g, b, n),
        shape,
        shape[1:2],
        shape[1:2],
        tolerance=1e-4,
        low=0.25,
    )

for axis in ((1,), (0, 2), (2,)):
    case(
        "normalize",
        lambda o, x, a=axis: o.normalize(x, 0.1, a),
        lambda x, a=axis: x / (np.sqrt((x * x).sum(a, keepdims=True)) + 0.1),
        (3, 4, 5),
        tolerance=1e-4,
    )


def squared(x):
    return x @ np.swapaxes(x, -1, -2)


case("det", lambda o, x: o.det(x), np.linalg.det, (2, 3, 3), tolerance=1e-4)
for shape in ((2, 3, 9), (5, 15), (1, 3), (0, 3, 9)):
    for name in ("inv", "det", "cholesky"):
        case(
            name,
            lambda o, x, f=name: getattr(o, f)(o.matmul(x, x, False, True)),
            lambda x, f=name: getattr(np.linalg, f)(squared(x)),
            shape,
            low=-1,
            high=1,
            tolerance=1e-4,
        )


def parts(z):
    return [z.real, z.imag]


# 37 is too large a prime for a radix, 35 none for rows of vectors; 64 is one for them.
for shape in ((2, 3, 5), (37,), (3, 35), (2, 64), (0, 4), (2, 1)):
    case(
        "fft",
        lambda o, re, im: o.fft(re, im),
        lambda re, im: parts(np.fft.fft(re + 1j * im)),
        shape,
        shape,
    )
    case(
        "ifft",
        lambda o, re, im: o.ifft(re, im),
        lambda re, im: parts(np.fft.ifft(re + 1j * im)),
        shape,
        shape,
    )


# Steps of three samples of which the second ends early; the last has one label.
PATHS = np.array([[0, 1, 0, 1, 0], [0, 2, 0, 1, 0], [0, 2, 0, 0, 0]])
STEPS, POSITIONS = np.array([5, 4, 5]), np.array([5, 5, 3])


def aligned(scores):
    losses = []
    for n, (path, steps, used) in enumerate(zip(PATHS, STEPS, POSITIONS)):
        total = 0
        for at in itertools.product(range(used), repeat=steps):
            moves = np.diff(at)
            skips = [
                path[b] != 0 and path[b] != path[b - 2]
                for b, m in zip(at[1:], moves)
                if m == 2
            ]
            if (
                at[0] < 2
                and at[-1] >= used - 2
                and moves.min() >= 0
                and moves.max() <= 2
                and all(skips)
            ):
                total += np.exp(scores[np.arange(steps), n, path[list(at)]].sum())
        losses.append(-np.log(total))
    return np.array(losses)


case(
    "alignment_loss",
    lambda o, x: o.alignment_loss(x, PATHS, STEPS, POSITIONS, 0),
    aligned,
    (5, 3, 3),
    tolerance=1e-4,
)


def best_labels(cost, *xs):
    def best(n):
        steps = [x[n] for x in xs if len(x) > n]
        return max(
            itertools.product(range(len(cost)), repeat=len(steps)),
            key=lambda labels: (
                sum(x[k] for x, k in zip(steps, labels))
                + sum(cost[pair] for pair in itertools.pairwise(labels))
            ),
        )

    paths = [best(n) for n in range(len(xs[0]))]
    return [np.array([path[t] for path in paths[: len(x)]]) for t, x in enumerate(xs)]


case(
    "best_paths",
    lambda o, cost, *xs: o.best_paths(cost, list(xs)),
    best_labels,
    (4, 4),
    (3, 4),
    (3, 4),
    (1, 4),
    orders=0,
    dtypes="fd",
)


def lstm_cell(c, a, i, f, o):
    c = np.tanh(a) * scipy.special.expit(i) + c * scipy.special.expit(f)
    return c, np.tanh(c) * scipy.special.expit(o)


def alternating_lstm(c, x):
    new, h = lstm_cell(c[: len(x)], *(x[:, k::4] for k in range(4)))
    return [np.concatenate([new, c[len(x) :]]), h]


def lstm_step(projected, W, h, c):
    return lstm_cell(c, *np.split(projected + h @ W.T, 4, 1))[::-1]


def gru_step(projected, W, b, h):
    x, y = np.split(projected, 3, 1), np.split(h @ W.T + b, 3, 1)
    r, z = scipy.special.expit(x[0] + y[0]), scipy.special.expit(x[1] + y[1])
    a = np.tanh(x[2] + r * y[2])
    return ((1 - z) * a + z * h,)


def loop_over_steps(step, n_states, lengths, backwards):
    """A layer as a loop: ``step(projected, *weights, *states)`` returns the next states."""

    def layer(x, *operands):
        states, weights = [s.copy() for s in operands[:n_states]], operands[n_states:]
        parts, ys = np.split(x, np.cumsum(lengths)[:-1]), [None] * len(lengths)
        for t in range(len(lengths))[:: -1 if backwards else 1]:
            n = lengths[t]
            for s, new in zip(
                states, step(parts[t], *weights, *(s[:n] for s in states))
            ):
                s[:n] = new
            ys[t] = states[0][:n].copy()
        return [np.concatenate(ys), *states]

    return layer


for c, x in (
    ((3, 5), (3, 20)),
    ((3, 2), (1, 8)),
    ((2, 3, 37), (2, 12, 37)),
    ((2, 150), (2, 600)),
    ((0, 2), (0, 8)),
    ((2, 3), (0, 12)),
):
    case("lstm", lambda o, c, x: list(o.lstm(c, x)), alternating_lstm, c, x)
for c, x in (
    ((3, 2), (1, 8)),
    ((2, 3, 2), (2, 12, 2)),
    ((2, 75), (2, 300)),
    ((2, 3), (0, 12)),
):
    case(
        "lstm",
        lambda o, c, x, h: list(o.lstm(c, x, h)),
        lambda c, x, h: alternating_lstm(c, x + h),
        c,
        x,
        x,
    )
for lengths, units in (((3, 2, 2, 1), 3), ((2, 1), 21), ((2, 0), 3), ((0,), 3)):
    for back in (False, True):
        rows, n = sum(lengths), units
        case(
            "lstm_layer",
            lambda o, x, h, c, W, t=lengths, r=back: list(
                o.lstm_layer(x, h, c, W, t, r)
            ),
            lambda x, h, c, W, t=lengths, r=back: loop_over_steps(lstm_step, 2, t, r)(
                x, h, c, W
            ),
            (rows, 4 * n),
            (4, n),
            (4, n),
            (4 * n, n),
        )
        case(
            "gru_layer",
            lambda o, x, h, W, b, t=lengths, r=back: list(
                o.gru_layer(x, h, W, b, t, r)
            ),
            lambda x, h, W, b, t=lengths, r=back: loop_over_steps(gru_step, 1, t, r)(
                x, h, W, b
            ),
            (rows, 3 * n),
            (4, n),
            (3 * n, n),
            (3 * n,),
        )
        for name, f in (("tanh", np.tanh), ("relu", lambda x: x.clip(0))):
            case(
                "rnn_layer",
                lambda o, x, h, W, t=lengths, r=back, a=name: list(
                    o.rnn_layer(x, h, W, t, r, a)
                ),
                lambda x, h, W, t=lengths, r=back, f=f: loop_over_steps(
                    lambda s, W, h: (f(s + h @ W.T),), 1, t, r
                )(x, h, W),
                (rows, n),
                (4, n),
                (n, n),
            )


def by_time(*xs):
    return [np.stack([x[t] for x in xs if t < len(x)]) for t in range(len(xs[0]))]


for lengths in ((4, 4, 2, 1), (3, 0), (2, 2)):
    case(
        "transpose_sequence",
        lambda o, *xs: o.transpose_sequence(list(xs)),
        by_time,
        *[(n, 2) for n in lengths],
        dtypes=FLOATS_AND_INTS,
    )
case(
    "transpose_sequence",
    lambda o, *xs: o.transpose_sequence(list(xs)),
    by_time,
    (3,),
    (1,),
)
