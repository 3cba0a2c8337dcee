"""Element by element: arithmetic, activations, special functions."""

import operator

import numpy as np
import scipy.special as sp

from ..draw import FLOATS, INTS, Draw
from ..table import call, case

ALL = FLOATS + INTS
# What only element-wise functions know: any value, compared with the same rounding.
ANY = {"special": True}


def unary(names, oracle, low=-2.0, high=2.0, **options):
    case(names, lambda g: call(g.x(*g.shape(), low=low, high=high)), oracle, **options)


def binary(names, oracle, low=-2.0, high=2.0, **options):
    case(names, lambda g: call(*g.pair(low=low, high=high)), oracle, **options)


unary("absolute", np.abs, **ANY)
unary("arccos", np.arccos, -0.95, 0.95, **ANY)
unary("arcsin", np.arcsin, -0.95, 0.95, **ANY)
unary("arctan", np.arctan, **ANY)
unary("arctanh", np.arctanh, -0.9, 0.9, **ANY)
unary("ceil", np.ceil, smooth=False, **ANY)
unary("cos", np.cos)
unary("cosh", np.cosh, **ANY)
unary("digamma", sp.digamma, 0.5, 4)
unary("erf", sp.erf, **ANY)
unary("erfc", sp.erfc, **ANY)
unary("erfcinv", sp.erfcinv, 0.1, 1.9)
unary("erfcx", sp.erfcx)
unary("erfinv", sp.erfinv, -0.9, 0.9)
unary("exp", np.exp, **ANY)
unary("expm1", np.expm1, **ANY)
unary("fix", np.fix, smooth=False, **ANY)
unary("floor", np.floor, smooth=False, **ANY)
unary("gelu", lambda x: x * sp.ndtr(x))
unary("hard_swish", lambda x: x * np.clip(x + 3, 0, 6) / 6, -5, 5)
unary("hard_sigmoid ops.hard_sigmoid", lambda x: np.clip(x * 0.2 + 0.5, 0, 1), -4, 4, **ANY)
unary("lgamma", sp.gammaln, 0.3, 4)
unary("log", np.log, 0.1, 4, **ANY)
unary("log10", np.log10, 0.1, 4, **ANY)
unary("log1p", np.log1p, -0.8, 4, **ANY)
unary("log2", np.log2, 0.1, 4, **ANY)
unary("log_ndtr", sp.log_ndtr, -5, 5)
unary("mish", lambda x: x * np.tanh(np.log1p(np.exp(x))))
unary("ndtr", sp.ndtr, **ANY)
unary("ndtri", sp.ndtri, 0.05, 0.95)
unary("relu", lambda x: np.maximum(x, 0), **ANY)
unary("relu6", lambda x: np.clip(x, 0, 6), -2, 8, **ANY)
unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.2, 4)
unary("sigmoid", sp.expit, **ANY)
unary("silu", lambda x: x * sp.expit(x))
unary("sign", np.sign, smooth=False, **ANY)
unary("sin", np.sin)
unary("sinh", np.sinh, **ANY)
unary("sqrt", np.sqrt, 0.1, 4, **ANY)
unary("square", np.square, **ANY)
unary("tan", np.tan, -1, 1)
unary("tanh", np.tanh, **ANY)
unary("ops.negative", np.negative, dtypes=FLOATS + "bhil", **ANY)
unary("ops.reciprocal", np.reciprocal, 0.3, 3, **ANY)
case("identity", lambda g: call(g.x(*g.shape())), lambda x: x, dtypes=ALL, **ANY)
case("identity", lambda g: call(g.x(*g.shape()), g.x(*g.shape())), lambda *xs: xs, dtypes=ALL)
case("copy", lambda g: call(g.x(*g.shape()), -1), lambda x, dst: x, dtypes=ALL, **ANY)
case("forget", lambda g: call(TANH, g.x(*g.shape())), lambda f, x: np.tanh(x))

binary("add", np.add, dtypes=ALL, **ANY)
case("add", lambda g: call(*(g.x(*s) for s in [g.shape()] * g.integer(2, 4))), lambda *xs: sum(xs), within=10)  # sums that cancel
binary("ops.add", np.add, dtypes=ALL, **ANY)
binary("ops.subtract", np.subtract, dtypes=ALL, **ANY)
binary("ops.multiply", np.multiply, dtypes=ALL, **ANY)
binary("ops.divide", np.divide, 0.5, 3, dtypes=ALL, within=2, **ANY)
binary("ops.floor_divide", np.floor_divide, 0.5, 3, dtypes="d" + INTS, smooth=False, **ANY)
binary("ops.power", np.power, 0.3, 2, within=4)
binary("maximum", np.maximum, **ANY)
binary("minimum", np.minimum, **ANY)
binary("arctan2", np.arctan2, **ANY)
binary("ops.squared_difference", lambda a, b: (a - b) ** 2)
binary("ops.prelu", lambda x, slope: np.where(x < 0, slope * x, x))
binary("fmod ops.fmod", np.fmod, 0.5, 3, smooth=False)


def tanh(x):
    import renga.functions

    return renga.functions.tanh(x)


TANH = tanh


def same(n=2, **options):
    """Operands of one shape."""

    def draw(g: Draw):
        shape = g.shape()
        return call(*(g.x(*shape, **options) for _ in range(n)))

    return draw


case("ops.linear_interpolate", same(3), lambda p, x, y: p * x + (1 - p) * y)
case("ops.selu", lambda g: call(g.x(*g.shape()), 1.7, 1.1), lambda x, alpha, scale: scale * np.where(x < 0, alpha * np.expm1(x), x))
case("squared_difference squared_error", same(2), lambda a, b: (a - b) ** 2, **ANY)
case("absolute_error", same(2), lambda a, b: abs(a - b), **ANY)
case("linear_interpolate", same(3), lambda p, x, y: p * x + (1 - p) * y)
def polygamma(n, x):
    if np.max(n, initial=0) > 60:
        raise ValueError("SciPy overflows")
    return sp.polygamma(n, x)


case("polygamma ops.polygamma", lambda g: (lambda s: call(g.index(4, *s), g.x(*s, low=0.5, high=3)))(g.shape()), polygamma, within=5)
case("zeta", lambda g: (lambda s: call(g.x(*s, low=1.5, high=4), g.x(*s, low=0.5, high=3)))(g.shape()), sp.zeta, within=5, smooth=False)
case("ops.zeta", lambda g: (lambda s: call(g.x(*s, low=1.5, high=4, role="constant"), g.x(*s, low=0.5, high=3), 1))(g.shape()), lambda s, q, more: sp.zeta(s + more, q), within=5)
case("clip", lambda g: call(g.x(*g.shape()), -g.uniform(0, 1), g.uniform(0, 1)), np.clip, **ANY)
case("ops.clip", lambda g: call(g.x(*g.shape()), -g.uniform(0, 1), g.uniform(0, 1)), np.clip, **ANY)
case("clipped_relu ops.clipped_relu", lambda g: call(g.x(*g.shape()), z=g.integer(1, 48) / 16), lambda x, z: np.clip(x, 0, z), **ANY)
case("leaky_relu", lambda g: call(g.x(*g.shape()), slope=g.uniform(-1, 1)), lambda x, slope: np.where(x >= 0, x, slope * x), special=True)
case("elu", lambda g: call(g.x(*g.shape()), alpha=g.uniform(0.1, 2)), lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x)), special=True)
case("selu", lambda g: call(g.x(*g.shape()), alpha=1.2, scale=1.1), lambda x, alpha, scale: scale * np.where(x >= 0, x, alpha * np.expm1(x)), special=True)
case("softplus", lambda g: call(g.x(*g.shape()), beta=g.uniform(0.5, 3)), lambda x, beta: np.logaddexp(0, beta * x) / beta, special=True)
case("crelu", lambda g: (lambda x: call(x, axis=g.axis(x.value.ndim)))(g.x(*g.shape(1))), lambda x, axis: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis), **ANY)


def channels(g: Draw):
    """x (N, C, …) and one number for each of the first axes after the batch's."""
    shape = g.shape(2)
    n = g.integer(1, len(shape) - 1)
    return call(g.x(*shape), g.x(*shape[1 : 1 + n]))


def along(w, x):
    return w.reshape(w.shape + (1,) * (x.ndim - 1 - w.ndim))


case("prelu", channels, lambda x, w: np.where(x >= 0, x, along(w, x) * x), special=True)
case("swish", channels, lambda x, w: x * sp.expit(along(w, x) * x))


def from_axis(g: Draw):
    """x, and y whose axes are those of x from ``axis`` on."""
    shape = g.shape(1)
    axis = g.integer(0, len(shape) - 1)
    n = g.integer(axis + 1, len(shape))
    return call(g.x(*shape), g.x(*shape[axis:n]), axis=axis)


def spread(y, x, axis):
    return y.reshape(y.shape + (1,) * (x.ndim - axis - y.ndim))


case("scale", from_axis, lambda x, y, axis: x * spread(y, x, axis))
case("bias", from_axis, lambda x, y, axis: x + spread(y, x, axis))


def divisible(g: Draw):
    shape = list(g.shape(2))
    axis, pool = g.integer(0, len(shape) - 1), g.integer(1, 3)
    shape[axis] = pool * g.integer(1, 3)
    return call(g.x(*shape), pool, axis=axis)


def maxout(x, pool, axis):
    axis = operator.index(axis) % x.ndim
    shape = (*x.shape[:axis], x.shape[axis] // pool, pool, *x.shape[axis + 1 :])
    return x.reshape(shape).max(axis + 1)


case("maxout", divisible, maxout, smooth=False)
case("rrelu", lambda g: call(g.x(*g.shape()), 0.1, 0.4))


def rrelu_given(g: Draw):
    shape = g.shape()
    return call(g.x(*shape), r=g.u(*shape, role="constant"))


case("rrelu", rrelu_given, lambda x, r: np.where(x >= 0, x, r * x))


def where(g: Draw):
    shape = g.shape()
    parts = [g.broadcastable(shape) for _ in range(3)]
    return call(g.mask(*parts[0]), g.x(*parts[1]), g.x(*parts[2]))


case("where", where, np.where, dtypes=ALL, **ANY)
# Which elements are dropped depends on where they lie in memory.
case("dropout", lambda g: call(g.x(*g.shape()), ratio=g.uniform(0, 0.9)), smooth=False, layouts=False)


def dropout_mask(g: Draw):
    shape = g.shape()
    return call(g.x(*shape), mask=g.x(*shape, role="constant"))


case("ops.uniform", lambda g: call(g.x(*g.shape()), -0.5, 0.5, g.integer(0, 99)))
case("ops.gumbel", lambda g: call(g.x(*g.shape()), g.integer(0, 99)))
case("dropout", dropout_mask, lambda x, mask: x * mask)
case("gaussian", same(2), within=4)
case("zoneout", lambda g: (lambda s: call(g.x(*s), g.x(*s), ratio=g.uniform(0, 0.9)))(g.shape()))
case("gumbel_softmax", lambda g: (lambda x: call(x, tau=g.uniform(0.5, 2), axis=g.axis(x.value.ndim)))(g.x(*g.shape(1, least=1))))
