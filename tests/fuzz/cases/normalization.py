"""Normalization of batches, groups, samples and channels."""

import numpy as np

from ..draw import Draw
from ..table import call, case
from . import oracles


def batch(g: Draw, states=0, named=True):
    """x, gamma, beta and the states, and at times the axes reduced."""
    x = g.x(*g.shape(2, 4, least=g.pick(0, 1, 2)))
    shape = x.value.shape
    axis, more = (0, *range(2, len(shape))), {}
    if named and g.chance(0.4):
        n = g.integer(1, len(shape) - 1)
        axis = tuple(sorted(g.rng.permutation(len(shape))[:n].tolist()))
        more = {"axis": axis}
    kept = [n for i, n in enumerate(shape) if i not in axis]
    gamma, beta = g.x(*kept), g.x(*kept)
    return x, gamma, beta, kept, more


def default(x, axis):
    return (0, *range(2, x.ndim)) if axis is None else axis


def normalization(g: Draw):
    x, gamma, beta, kept, more = batch(g)
    if g.chance(0.4):
        more.update(running_mean=g.target(*kept), running_var=g.target(*kept))
        more.update(decay=g.uniform(0, 1))
    return call(x, gamma, beta, **more)


def normalized(x, gamma, beta, axis=None, running_mean=None, running_var=None, decay=0.9):
    axis = default(x, axis)
    y = oracles.normalized(x, gamma, beta, axis)
    if running_mean is None or not x.size:
        return [y]
    count = x.size // max(running_mean.size, 1)
    mean, var = x.mean(axis), x.var(axis) * count / max(count - 1, 1)
    return [y, decay * running_mean + (1 - decay) * mean, decay * running_var + (1 - decay) * var]


def fixed(g: Draw):
    x, gamma, beta, kept, more = batch(g)
    return call(x, gamma, beta, g.x(*kept), g.positive(*kept), **more)


def fixed_of(x, gamma, beta, mean, var, axis=None):
    return oracles.normalized(x, gamma, beta, default(x, axis), mean, var)


case("batch_normalization", normalization, normalized, within=20, weight=3)
case("fixed_batch_normalization", fixed, fixed_of, within=4, weight=2)


def channelwise(g: Draw):
    """As Chainer's: parameters of axis 1, or of all axes after the first."""
    x = g.x(*g.shape(2, 4, least=2))
    kept = x.value.shape[1 : g.pick(2, x.value.ndim)]
    return x, g.x(*kept), g.x(*kept), kept


def renormalization(g: Draw):
    x, gamma, beta, kept = channelwise(g)
    means = {"running_mean": g.target(*kept), "running_var": g.target(*kept, low=0.5)}
    return call(x, gamma, beta, 2.0, 1.0, update_statistics=g.chance(0.5), **means)


def fixed_renormalization(g: Draw):
    x, gamma, beta, kept = channelwise(g)
    return call(x, gamma, beta, g.x(*kept), g.positive(*kept))


case("batch_renormalization", renormalization, within=20, smooth=False)
case("fixed_batch_renormalization", fixed_renormalization, lambda x, g, b, m, v: oracles.normalized(x, g, b, (0, *range(1 + g.ndim, x.ndim)), m, v), within=4)


def decorrelated(g: Draw):
    groups, width = g.integer(1, 3), g.integer(1, 3)
    x = g.x(g.integer(6, 12), groups * width, *g.shape(0, 2, least=2))
    more = {}
    if g.chance(0.4):
        more = {"running_mean": g.target(groups, width), "running_projection": g.target(groups, width, width)}
    return call(x, groups=groups, eps=0.5, **more)


def fixed_decorrelated(g: Draw):
    groups, width = g.integer(1, 3), g.integer(1, 3)
    x = g.x(g.extent(), groups * width, *g.shape(0, 2))
    return call(x, g.x(groups, width), g.x(groups, width, width), groups=groups)


case("decorrelated_batch_normalization", decorrelated, within=20, smooth=False, dtypes="fd")
case("fixed_decorrelated_batch_normalization", fixed_decorrelated, within=4)


def grouped(g: Draw):
    groups = g.integer(1, 3)
    x = g.x(g.extent(), groups * g.integer(1, 3), *g.shape(0, 2, least=2))
    n = x.value.shape[1]
    return call(x, groups, g.x(n), g.x(n))


def group_normalized(x, groups, gamma, beta):
    y = x.reshape(len(x), groups, x.size // max(len(x) * groups, 1) if len(x) else 1)[..., :] if x.size else x
    if not x.size:
        return x
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    return y.reshape(x.shape) * gamma.reshape(shape) + beta.reshape(shape)


def layered(g: Draw):
    shape = (*(g.extent() for _ in range(g.integer(1, 2))), g.extent(2))
    last = shape[-g.integer(1, 2) :]
    return call(g.x(*shape), g.x(*last), g.x(*last))


def layer_normalized(x, gamma, beta):
    axes = tuple(range(-gamma.ndim, 0))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5) * gamma + beta


def of_root_mean_square(g: Draw):
    args, _ = layered(g)
    return call(*args[:2], eps=0.1)


def by_root_mean_square(x, gamma, eps):
    return x / np.sqrt((x * x).mean(tuple(range(-gamma.ndim, 0)), keepdims=True) + eps) * gamma


case("ops.group_normalization group_normalization", grouped, group_normalized, within=20)
case("layer_normalization ops.layer_normalization", layered, layer_normalized, within=20)
case("rms_normalization", of_root_mean_square, by_root_mean_square, within=20)


def responses(x, n, k, alpha, beta):
    squares = np.zeros_like(x)
    for i in range(x.shape[1]):
        squares[:, i] = (x[:, max(i - n // 2, 0) : i + n // 2 + 1] ** 2).sum(1)
    return x / (k + alpha * squares) ** beta


case("local_response_normalization", lambda g: call(g.x(*g.shape(2)), g.pick(1, 3, 5), 2.0, g.uniform(0, 0.5), 0.75), responses)
