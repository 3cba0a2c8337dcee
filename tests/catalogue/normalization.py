"""Normalizations."""

from __future__ import annotations

import numpy as np

import renga.functions as F
from tests.fuzz import oracles
from tests.fuzz.draw import Draw
from tests.fuzz.table import call

from . import speed
from .row import case, drawn, function


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


def normalization(g: Draw):
    x, gamma, beta, kept, more = batch(g)
    if g.chance(0.4):
        more.update(running_mean=g.target(*kept), running_var=g.target(*kept))
        more.update(decay=g.uniform(0, 1))
    return call(x, gamma, beta, **more)


def default(x, axis):
    return (0, *range(2, x.ndim)) if axis is None else axis


def normalized_of(
    x, gamma, beta, axis=None, running_mean=None, running_var=None, decay=0.9
):
    axis = default(x, axis)
    y = oracles.normalized(x, gamma, beta, axis)
    if running_mean is None or not x.size:
        return [y]
    count = x.size // max(running_mean.size, 1)
    mean, var = x.mean(axis), x.var(axis) * count / max(count - 1, 1)
    return [
        y,
        decay * running_mean + (1 - decay) * mean,
        decay * running_var + (1 - decay) * var,
    ]


gamma, beta = speed.normal(32), speed.normal(32)

function(
    "batch_normalization",
    cases=[
        case(
            lambda o, x, g, b, a=named: o.batch_normalization(x, g, b, axis=a),
            lambda x, g, b, a=axis: normalized(x, g, b, a),
            shape,
            parameter,
            parameter,
            **options,
        )
        for shape, axis, named in NORMALIZED
        for parameter in [tuple(n for i, n in enumerate(shape) if i not in axis)]
        for options in [dict(tolerance=1e-4, low=0.25)]
    ],
    fuzz=[
        drawn(normalization, normalized_of, within=20, weight=3),
        drawn(normalization, normalized_of, within=20, of="ops"),
    ],
    signature="(x, gamma, beta, *, eps=2e-05, running_mean=None, running_var=None, decay=0.9, axis=None)",
    edges=[
        "F.batch_normalization(s(N, 3), s(3), s(3))",
        "F.batch_normalization(s(N, 3, 4, 4), s(3), s(3))",
    ],
    errors=[
        "F.batch_normalization(f(4, 3), f(2), f(3)) -> InvalidType",
        "F.batch_normalization(f(4, 3), f(3), f(2)) -> InvalidType",
        "F.batch_normalization(i(4, 3), f(3), f(3)) -> InvalidType",
        "F.batch_normalization(f(4, 3), d(3), d(3)) -> float32 (4, 3)",
        "F.batch_normalization(h(4, 3), f(3), f(3)) -> float16 (4, 3)",
        "F.batch_normalization(f(4, 3), f(3), d(3)) -> InvalidType",
        "F.batch_normalization(f(4, 3), f(3), f(3), axis=2) -> InvalidType",
        "F.batch_normalization(f(4, 3), f(3), f(3), axis=1.5) -> RuntimeError | TypeError",
        "F.batch_normalization(f(4, 3), f(3), f(3), foo=1) -> TypeError",
        "F.batch_normalization(f(4, 3), f(3), f(3), axis=(0, 0)) -> RuntimeError | ValueError",
    ],
    onnx="exported",
    speed=[
        speed.row(speed.images, gamma, beta),
        speed.row(speed.last(speed.images), gamma, beta, use="channels last"),
    ],
)


def fixed(g: Draw):
    x, gamma, beta, kept, more = batch(g)
    return call(x, gamma, beta, g.x(*kept), g.positive(*kept), **more)


def fixed_of(x, gamma, beta, mean, var, axis=None):
    return oracles.normalized(x, gamma, beta, default(x, axis), mean, var)


function(
    "fixed_batch_normalization",
    cases=[
        case(
            lambda o, x, g, b, m, v, a=named: o.fixed_batch_normalization(
                x, g, b, m, v, axis=a
            ),
            lambda x, g, b, m, v, a=axis: normalized(x, g, b, a, m, v),
            shape,
            *[parameter] * 4,
            **options,
        )
        for shape, axis, named in NORMALIZED
        for parameter in [tuple(n for i, n in enumerate(shape) if i not in axis)]
        for options in [dict(tolerance=1e-4, low=0.25)]
    ],
    fuzz=drawn(fixed, fixed_of, within=4, weight=2),
    signature="(x, gamma, beta, mean, var, eps=2e-05, axis=None)",
    edges="F.fixed_batch_normalization(s(N, 3), s(3), s(3), s(3), u(3))",
    errors="F.fixed_batch_normalization(f(4, 3), f(3), f(3), f(2), f(3)) -> InvalidType",
    onnx="exported",
    speed=speed.row(
        speed.images,
        gamma,
        beta,
        speed.constant(speed.normal(32)),
        speed.constant(speed.uniform(0.5, 2.0, 32)),
    ),
)


def channelwise(g: Draw):
    """As Chainer's: parameters of axis 1, or of all axes after the first."""
    x = g.x(*g.shape(2, 4, least=2))
    kept = x.value.shape[1 : g.pick(2, x.value.ndim)]
    return x, g.x(*kept), g.x(*kept), kept


def renormalization(g: Draw):
    x, gamma, beta, kept = channelwise(g)
    means = {"running_mean": g.target(*kept), "running_var": g.target(*kept, low=0.5)}
    return call(x, gamma, beta, 2.0, 1.0, update_statistics=g.chance(0.5), **means)


function(
    "batch_renormalization",
    fuzz=drawn(renormalization, within=20, smooth=False),
    signature="(x, gamma, beta, rmax, dmax, eps=2e-05, running_mean=None, running_var=None, decay=0.9, update_statistics=False)",
    edges="F.batch_renormalization(s(N, 3), s(3), s(3), 2., 1., running_mean=numpy.zeros(3, DTYPE), running_var=numpy.ones(3, DTYPE))",
    errors=[
        "F.batch_renormalization(f(4, 3), f(3), f(3), 1, 1) -> TypeError",
        "F.batch_renormalization(f(4, 3), f(3), f(3), 0, 1, running_mean=f(3), running_var=f(3)) -> ZeroDivisionError | ValueError",
        "F.batch_renormalization(f(4, 3), f(2), f(3), 1, 1, running_mean=f(3), running_var=f(3)) -> InvalidType",
    ],
    onnx="reads values",
    speed=speed.row(
        speed.images,
        gamma,
        beta,
        speed.constant(speed.normal(32)),
        speed.constant(speed.uniform(0.5, 2.0, 32)),
        call=lambda x, gamma, beta, mean, var: F.batch_renormalization(
            x, gamma, beta, 3.0, 5.0, running_mean=mean, running_var=var
        ),
    ),
)


def fixed_renormalization(g: Draw):
    x, gamma, beta, kept = channelwise(g)
    return call(x, gamma, beta, g.x(*kept), g.positive(*kept))


function(
    "fixed_batch_renormalization",
    fuzz=drawn(
        fixed_renormalization,
        lambda x, g, b, m, v: oracles.normalized(
            x, g, b, (0, *range(1 + g.ndim, x.ndim)), m, v
        ),
        within=4,
    ),
    signature="(x, gamma, beta, mean, var, eps=2e-05)",
    edges="F.fixed_batch_renormalization(s(N, 3), s(3), s(3), s(3), u(3))",
    onnx="exported",
    speed=speed.row(
        speed.images,
        gamma,
        beta,
        speed.constant(speed.normal(32)),
        speed.constant(speed.uniform(0.5, 2.0, 32)),
    ),
)


def decorrelated(g: Draw):
    groups, width = g.integer(1, 3), g.integer(1, 3)
    x = g.x(g.integer(6, 12), groups * width, *g.shape(0, 2, least=2))
    more = {}
    if g.chance(0.4):
        more = {
            "running_mean": g.target(groups, width),
            "running_projection": g.target(groups, width, width),
        }
    return call(x, groups=groups, eps=0.5, **more)


function(
    "decorrelated_batch_normalization",
    fuzz=drawn(decorrelated, within=20, smooth=False, dtypes="fd"),
    signature="(x, **kwargs)",
    edges="F.decorrelated_batch_normalization(s(8 * N, 4), groups=2)",
    errors="F.decorrelated_batch_normalization(f(4, 3), groups=2) -> InvalidType",
    half=False,
    onnx="no counterpart",
    speed=speed.row(
        speed.images, call=lambda x: F.decorrelated_batch_normalization(x, groups=2)
    ),
)


def fixed_decorrelated(g: Draw):
    groups, width = g.integer(1, 3), g.integer(1, 3)
    x = g.x(g.extent(), groups * width, *g.shape(0, 2))
    return call(x, g.x(groups, width), g.x(groups, width, width), groups=groups)


function(
    "fixed_decorrelated_batch_normalization",
    fuzz=drawn(fixed_decorrelated, within=4),
    signature="(x, mean, projection, groups=16)",
    edges="F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2)",
    gradients=False,
    onnx="exported",
    speed=speed.row(
        speed.images,
        speed.constant(speed.normal(2, 16)),
        speed.constant(speed.normal(2, 16, 16)),
        2,
    ),
)


def normalized_groups(x, gamma, beta, groups):
    rows = x.reshape(len(x), groups, -1) if x.size else x
    centred = rows - rows.mean(-1, keepdims=True)
    y = (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).reshape(
        x.shape
    )
    channels = (-1, *(1,) * (x.ndim - 2))
    return y * gamma.reshape(channels) + beta.reshape(channels)


def grouped(g: Draw):
    groups = g.integer(1, 3)
    x = g.x(g.extent(), groups * g.integer(1, 3), *g.shape(0, 2, least=2))
    n = x.value.shape[1]
    return call(x, groups, g.x(n), g.x(n))


def group_normalized(x, groups, gamma, beta):
    y = (
        x.reshape(len(x), groups, x.size // max(len(x) * groups, 1) if len(x) else 1)[
            ..., :
        ]
        if x.size
        else x
    )
    if not x.size:
        return x
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    return y.reshape(x.shape) * gamma.reshape(shape) + beta.reshape(shape)


function(
    "group_normalization",
    cases=[
        case(
            lambda o, x, g, b, n=groups: o.group_normalization(x, n, g, b),
            lambda x, g, b, n=groups: normalized_groups(x, g, b, n),
            shape,
            shape[1:2],
            shape[1:2],
            tolerance=1e-4,
            low=0.25,
        )
        for shape, groups in (
            ((2, 6, 5), 3),
            ((1, 6, 5), 3),
            ((3, 4, 3, 2), 1),
            ((2, 3, 4, 5), 3),
            ((4, 6), 2),
            ((0, 4, 3), 2),
        )
    ],
    fuzz=drawn(grouped, group_normalized, within=20, of="ops F"),
    signature="(x, groups, gamma, beta, eps=1e-05)",
    edges="F.group_normalization(s(N, 4, 3), 2, s(4), s(4))",
    errors=[
        "F.group_normalization(f(4, 3), 2, f(3), f(3)) -> ValueError",
        "F.group_normalization(f(4, 4), 2.0, f(4), f(4)) -> TypeError",
        "F.group_normalization(f(4, 4), 2, f(3), f(4)) -> InvalidType",
    ],
    nothing=[(0, 4, 3)],
    onnx="exported",
    speed=speed.row(speed.images, 8, gamma, beta),
)


def normalized_rows(x, gamma, beta=None, eps=1e-5):
    axes = tuple(range(-gamma.ndim, 0))
    centred = x if beta is None else x - x.mean(axes, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps) * gamma
    return y if beta is None else y + beta


def layered(g: Draw):
    shape = (*(g.extent() for _ in range(g.integer(1, 2))), g.extent(2))
    last = shape[-g.integer(1, 2) :]
    return call(g.x(*shape), g.x(*last), g.x(*last))


def layer_normalized(x, gamma, beta):
    axes = tuple(range(-gamma.ndim, 0))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(
        x.var(axes, keepdims=True) + 1e-5
    ) * gamma + beta


function(
    "layer_normalization",
    cases=[
        case(
            lambda o, x, g, b: o.layer_normalization(x, g, b),
            normalized_rows,
            shape,
            parameter,
            parameter,
            tolerance=1e-4,
            low=0.25,
        )
        for shape, parameter in (
            ((7, 50), (50,)),
            ((3, 4, 5), (5,)),
            ((2, 3, 4, 2), (4, 2)),
            ((0, 3), (3,)),
            ((40, 3), (3,)),
        )
    ],
    fuzz=drawn(layered, layer_normalized, within=20, of="F ops"),
    signature="(x, gamma, beta, eps=1e-05)",
    edges="F.layer_normalization(s(N, 3), s(3), s(3))",
    errors=[
        "F.layer_normalization(f(4, 3), f(2), f(3)) -> InvalidType",
        "F.layer_normalization(f(4, 3, 2), f(3), f(3)) -> InvalidType",
        "F.layer_normalization(f(4, 3), d(3), d(3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(2048, 512), speed.normal(512), speed.normal(512)),
)


def of_root_mean_square(g: Draw):
    args, _ = layered(g)
    return call(*args[:2], eps=0.1)


def by_root_mean_square(x, gamma, eps):
    return (
        x
        / np.sqrt((x * x).mean(tuple(range(-gamma.ndim, 0)), keepdims=True) + eps)
        * gamma
    )


function(
    "rms_normalization",
    cases=[
        case(
            lambda o, x, g: o.rms_normalization(x, g, 0.1),
            lambda x, g: normalized_rows(x, g, None, 0.1),
            shape,
            parameter,
            tolerance=1e-4,
            low=0.25,
        )
        for shape, parameter in (
            ((7, 50), (50,)),
            ((3, 4, 5), (5,)),
            ((2, 3, 4, 2), (4, 2)),
            ((0, 3), (3,)),
            ((40, 3), (3,)),
        )
    ],
    fuzz=drawn(of_root_mean_square, by_root_mean_square, within=20),
    speed=speed.row(speed.normal(2048, 512), speed.normal(512)),
)


def responses(x, n, k, alpha, beta):
    squares = np.zeros_like(x)
    for i in range(x.shape[1]):
        squares[:, i] = (x[:, max(i - n // 2, 0) : i + n // 2 + 1] ** 2).sum(1)
    return x / (k + alpha * squares) ** beta


function(
    "local_response_normalization",
    fuzz=drawn(
        lambda g: call(g.x(*g.shape(2)), g.pick(1, 3, 5), 2.0, g.uniform(0, 0.5), 0.75),
        responses,
    ),
    signature="(x, n=5, k=2, alpha=0.0001, beta=0.75)",
    edges="F.local_response_normalization(s(N, 7, 2, 2))",
    errors=[
        "F.local_response_normalization(i(2, 3, 4, 4)) -> InvalidType",
        "F.local_response_normalization(f(3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.images),
)


def alone(own):
    """What a rank that is alone gathers."""
    return own[None]


def multi_node(g: Draw):
    x, gamma, beta, _, more = batch(g)
    return call(x, gamma, beta, (alone, g.chance(0.5), None), **more)


def multi_node_of(x, gamma, beta, ranks, axis=None):
    return oracles.normalized(x, gamma, beta, default(x, axis))


function(
    "multi_node_batch_normalization",
    cases=[
        # One rank, whose parameters are its own, shared by all ranks, or a shard.
        *[
            case(
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
            for shape, axis, named in NORMALIZED
            for parameter in [tuple(n for i, n in enumerate(shape) if i not in axis)]
            for options in [dict(tolerance=1e-4, low=0.25)]
            for shared, offset in [(False, None), (True, None), (True, 0)][
                : 2 + (len(parameter) == 1)
            ]
        ]
    ],
    fuzz=drawn(multi_node, multi_node_of, within=20, of="ops"),
)
