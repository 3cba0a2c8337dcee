"""Losses and scores."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.special as sp

import renga.functions as F
from tests.fuzz import oracles
from tests.fuzz.draw import Draw
from tests.fuzz.table import call

from . import speed
from .counted_number import Number
from .row import case, drawn, function, positive


def alike(n=2, low=2, high=2, **options):
    def draw(g: Draw):
        shape = g.shape(low, high, least=1)
        return call(
            *(g.x(*shape) for _ in range(n)),
            **{k: g.pick(*v) for k, v in options.items()},
        )

    return draw


function(
    "mean_squared_error",
    fuzz=drawn(alike(low=0, high=3), lambda a, b: ((a - b) ** 2).mean()),
    signature="(x0, x1)",
    edges=["F.mean_squared_error(s(N, 3), s(N, 3))", "F.mean_squared_error(s(), s())"],
    errors=[
        "F.mean_squared_error(f(2), f(3)) -> InvalidType",
        "F.mean_squared_error(f(2), d(2)) -> InvalidType",
        "F.mean_squared_error(i(2), i(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)

function(
    "mean_absolute_error",
    fuzz=drawn(alike(low=0, high=3), lambda a, b: abs(a - b).mean()),
    signature="(x0, x1)",
    edges=[
        "F.mean_absolute_error(s(N, 3), s(N, 3))",
        "F.mean_absolute_error(s(), s())",
    ],
    errors=[
        "F.mean_absolute_error(f(2), d(2)) -> InvalidType",
        "F.mean_absolute_error(i(2), i(2)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix),
)


def reduced(losses, how="mean"):
    if how == "no":
        return losses
    return losses.sum() if how == "sum" else losses.mean()


function(
    "triplet",
    fuzz=[
        # a difference of sums that cancels
        drawn(
            alike(3, reduce=("mean", "no")),
            lambda a, p, n, reduce: reduced(
                np.maximum(((a - p) ** 2 - (a - n) ** 2).sum(1) + 0.2, 0), reduce
            ),
            dtypes="fd",
            within=4,
        )
    ],
    signature="(anchor, positive, negative, margin=0.2, reduce='mean')",
    edges=[
        "F.triplet(s(N, 3), s(N, 3), s(N, 3))",
        "F.triplet(s(N, 3), s(N, 3), s(N, 3), reduce='no')",
    ],
    errors=[
        "F.triplet(f(2, 3), f(2, 3), f(2, 4)) -> InvalidType",
        "F.triplet(f(2, 3), f(2, 3), f(2, 3), margin=-1) -> ValueError",
        "F.triplet(f(2, 3), f(2, 3), d(2, 3)) -> InvalidType",
    ],
    nothing={
        "F.triplet(s(N, 3), s(N, 3), s(N, 3))": [()],
        "F.triplet(s(N, 3), s(N, 3), s(N, 3), reduce='no')": [(0,)],
    },
    onnx="exported",
    speed=speed.row(
        speed.normal(8192, 128), speed.normal(8192, 128), speed.normal(8192, 128)
    ),
)


def contrastive(g: Draw):
    n, k = g.extent(1), g.extent(1)
    return call(
        g.x(n, k), g.x(n, k), g.index(2, n, dtypes="bhil"), reduce=g.pick("mean", "no")
    )


def contrastive_of(a, b, y, reduce):
    d = ((a - b) ** 2).sum(1)
    return reduced((y * d + (1 - y) * np.maximum(1 - np.sqrt(d), 0) ** 2) / 2, reduce)


function(
    "contrastive",
    fuzz=drawn(contrastive, contrastive_of, within=2),
    signature="(x0, x1, y, margin=1, reduce='mean')",
    edges=[
        "F.contrastive(s(N, 3), s(N, 3), i(2, N))",
        "F.contrastive(s(N, 3), s(N, 3), i(2, N), reduce='no')",
    ],
    errors=[
        "F.contrastive(f(2, 3), f(2, 3), i(3)) -> InvalidType",
        "F.contrastive(f(2, 3), f(2, 3), i(2), margin=-1) -> ValueError",
        "F.contrastive(f(2, 3), d(2, 3), i(2)) -> InvalidType",
        "F.contrastive(f(2, 3), f(2, 3), i(2), reduce='foo') -> ValueError",
    ],
    nothing={
        "F.contrastive(s(N, 3), s(N, 3), i(2, N))": [()],
        "F.contrastive(s(N, 3), s(N, 3), i(2, N), reduce='no')": [(0,)],
    },
    onnx="exported",
    speed=speed.row(
        speed.normal(8192, 128), speed.normal(8192, 128), speed.indices(2, 8192)
    ),
)


def squared(covariance, how):
    return covariance if how == "no" else (covariance**2).sum() / 2


function(
    "cross_covariance",
    fuzz=[
        # sums that cancel
        drawn(
            lambda g: (
                lambda n: call(
                    g.x(n, g.extent(1)),
                    g.x(n, g.extent(1)),
                    reduce=g.pick("half_squared_sum", "no"),
                )
            )(g.extent(1)),
            lambda y, z, reduce: squared(
                (y - y.mean(0)).T @ (z - z.mean(0)) / len(y), reduce
            ),
            within=10,
        )
    ],
    signature="(y, z, reduce='half_squared_sum')",
    edges=[
        "F.cross_covariance(s(N, 3), s(N, 2))",
        "F.cross_covariance(s(N, 3), s(N, 2), reduce='no')",
    ],
    errors=[
        "F.cross_covariance(f(2, 3), f(3, 3)) -> InvalidType",
        "F.cross_covariance(f(2, 3), f(2, 3), reduce='foo') -> ValueError",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(1024, 256), speed.normal(1024, 256), flops=2 * 1024 * 256 * 256
    ),
)

function(
    "decov",
    fuzz=[
        # sums that cancel
        drawn(
            lambda g: call(
                g.x(g.extent(1), g.extent(1)), reduce=g.pick("half_squared_sum", "no")
            ),
            lambda h, reduce: squared(
                (h - h.mean(0)).T @ (h - h.mean(0)) / len(h) * (1 - np.eye(h.shape[1])),
                reduce,
            ),
            within=10,
        )
    ],
    signature="(h, reduce='half_squared_sum')",
    edges=["F.decov(s(N, 3))", "F.decov(s(N, 3), reduce='no')"],
    errors=[
        "F.decov(f(2, 3, 4)) -> InvalidType",
        "F.decov(f(2, 3), reduce='foo') -> ValueError",
        "F.decov(i(2, 3)) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.normal(1024, 256), flops=2 * 1024 * 256 * 256),
)


def huber(x, t, delta, reduce):
    d = abs(x - t)
    loss = np.where(d < delta, d**2 / 2, delta * (d - delta / 2))
    return loss if reduce == "no" else loss.sum(1)


function(
    "huber_loss",
    fuzz=drawn(
        lambda g: (
            lambda s: call(
                g.x(*s),
                g.x(*s),
                g.uniform(0.3, 2),
                reduce=g.pick("sum_along_second_axis", "no"),
            )
        )(g.shape(2)),
        huber,
    ),
    signature="(x, t, delta, reduce='sum_along_second_axis')",
    edges=[
        "F.huber_loss(s(N, 3), s(N, 3), 1.)",
        "F.huber_loss(s(N, 3), s(N, 3), 1., reduce='no')",
    ],
    errors=[
        "F.huber_loss(f(2, 3), f(2, 3), 1, reduce='foo') -> ValueError",
        "F.huber_loss(f(2, 3), d(2, 3), 1) -> InvalidType",
        "F.huber_loss(f(2, 3), f(2, 4), 1) -> InvalidType",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix, 1.0),
)


def hinge(g: Draw):
    n, c = g.extent(1), g.extent(1)
    return call(
        g.x(n, c),
        g.index(c, n, dtypes="bhil"),
        norm=g.pick("L1", "L2"),
        reduce=g.pick("mean", "no"),
    )


def hinge_of(x, t, norm, reduce):
    if t.size and not (0 <= t.min() and t.max() < x.shape[1]):
        raise IndexError("no such class")
    sign = np.where(np.arange(x.shape[1]) == t[:, None], -1, 1)
    loss = np.maximum(0, 1 + sign * x) ** (2 if norm == "L2" else 1)
    return loss if reduce == "no" else loss.sum() / len(x)


labels, few = speed.indices(1024, 1024), speed.indices(10, 100_000)

function(
    "hinge",
    fuzz=drawn(hinge, hinge_of, within=2),
    signature="(x, t, norm='L1', reduce='mean')",
    edges=["F.hinge(s(N, 3), i(3, N))", "F.hinge(s(N, 3), i(3, N), reduce='no')"],
    errors=[
        "F.hinge(f(2, 3), i(2), norm='L3') -> NotImplementedError",
        "F.hinge(f(2, 3), i(3)) -> InvalidType",
        "F.hinge(f(2, 3), f(2)) -> InvalidType",
        "F.hinge(f(2, 3), i(2), reduce='foo') -> ValueError",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, labels),
)

LABELS = np.array([[1, 3], [-1, 0], [2, 2]])


def nll(x, labels, weight):
    log_p = sp.log_softmax(x, 1)
    picked = np.take_along_axis(log_p, np.maximum(labels, 0)[:, None], 1)[:, 0]
    return np.where(labels < 0, 0, -weight[np.maximum(labels, 0)] * picked)


def labelled(g: Draw):
    """Scores, labels (-1 is ignored) and at times the weights of the classes."""
    shape, c = g.shape(1, 3), g.extent(1)
    x = g.x(shape[0], c, *shape[1:])
    return x, g.index(c, *shape, low=-1), g.pick(None, g.positive(c, role="constant"))


def softmax_loss(g: Draw):
    x, t, weight = labelled(g)
    t = g.index(x.value.shape[1], *t.value.shape, low=-1, dtypes="bhil")
    return call(
        x, t, normalize=g.chance(0.5), class_weight=weight, reduce=g.pick("mean", "no")
    )


def softmax_loss_of(x, t, normalize, class_weight, reduce):
    losses = oracles.negative_log_softmax(x, t, class_weight, -1)
    if reduce == "no":
        return losses
    return losses.sum() / max((t != -1).sum() if normalize else len(t), 1)


def soft_targets(g: Draw):
    shape = g.shape(2, 3, least=1)
    t = g.u(*shape, role="constant")
    return call(
        g.x(*shape),
        t,
        reduce="no",
        soft_target_loss=g.pick("cross-entropy", "kl-divergence"),
    )


def soft_loss(x, t, reduce, soft_target_loss):
    loss = -(t * sp.log_softmax(x, 1)).sum(1)
    if soft_target_loss != "cross-entropy":
        loss = loss + (t * np.log(t)).sum(1)
    return loss if reduce == "no" else loss.mean()


def core_loss(g: Draw):
    x, t, weight = labelled(g)
    return call(x, t, g.chance(0.5), weight)


def cross_entropy(x, t, normalize, weight):
    losses = oracles.negative_log_softmax(x, t, weight, -1)
    count = (t.astype(int) != -1).sum() if normalize else len(t)
    return losses.sum() / max(count, 1)


function(
    "softmax_cross_entropy",
    cases=[
        case(
            lambda o, x: o.softmax_cross_entropy(x, LABELS),
            lambda x: nll(x, LABELS, np.ones(4)).sum() / 5,
            (3, 4, 2),
        ),
        case(
            lambda o, x: o.softmax_cross_entropy(x, LABELS),
            lambda x: nll(x, LABELS, np.ones(40)).sum() / 5,
            (3, 40, 2),
        ),
        case(
            lambda o, x: o.softmax_cross_entropy(x, LABELS, False),
            lambda x: nll(x, LABELS, np.ones(4)).sum() / 3,
            (3, 4, 2),
        ),
    ],
    takes_arrays=True,
    node="multiply",
    fuzz=[
        drawn(softmax_loss, softmax_loss_of, within=2, weight=3),
        drawn(soft_targets, soft_loss, within=2),
        drawn(core_loss, cross_entropy, within=2, of="ops"),
    ],
    signature="(x, t, normalize=True, cache_score=True, class_weight=None, ignore_label=-1, reduce='mean', enable_double_backprop=False, soft_target_loss='cross-entropy')",
    edges=[
        "F.softmax_cross_entropy(s(N, 3), i(3, N))",
        "F.softmax_cross_entropy(s(N, 3, 2), i(3, N, 2))",
        "F.softmax_cross_entropy(s(N, 3), i(3, N), normalize=False)",
        "F.softmax_cross_entropy(s(N, 3), i(3, N), class_weight=numpy.array([1, 2, 3], DTYPE))",
        "F.softmax_cross_entropy(s(N, 3), i(3, N), reduce='no')",
        "F.softmax_cross_entropy(s(N, 3), numpy.full((N, 3), 1 / 3, DTYPE))",
    ],
    errors=[
        "F.softmax_cross_entropy(f(2, 3), i(3)) -> RuntimeError | InvalidType",
        "F.softmax_cross_entropy(f(2, 3), f(2)) -> RuntimeError | InvalidType",
        "F.softmax_cross_entropy(f(2, 3), f(2, 3)) -> float32 ()",
        "F.softmax_cross_entropy(i(2, 3), i(2)) -> RuntimeError | InvalidType",
        "F.softmax_cross_entropy(f(2, 3), i(2, 1)) -> RuntimeError | InvalidType",
        "F.softmax_cross_entropy(f(2, 3), i(2), reduce='foo') -> ValueError",
        "F.softmax_cross_entropy(f(2, 3), i(2), class_weight=f(2)) -> ValueError | InvalidType",
        "F.softmax_cross_entropy(f(2, 3), i(2), class_weight=d(3)) -> float32 ()",
        "F.softmax_cross_entropy(f(2, 3), i(2), class_weight=[1, 1, 1]) -> AttributeError | ValueError",
        "F.softmax_cross_entropy(f(2, 3), i(2), class_weight=V(f(3))) -> ValueError",
        "F.softmax_cross_entropy(f(2, 3), l(2)) -> float32 ()",
        "F.softmax_cross_entropy(h(2, 3), i(2)) -> float16 ()",
    ],
    nothing=[()],
    onnx="exported",
    speed=[
        speed.row(speed.matrix, labels),
        speed.row(speed.tall, few, use="of rows of ten"),
        speed.row(
            speed.normal(4, 21, 96, 96), speed.indices(21, 4, 96, 96), use="of pixels"
        ),
    ],
)

function(
    "label_smoothing_cross_entropy",
    fuzz=drawn(
        lambda g: (
            lambda n, c: call(
                g.x(n, c),
                g.index(c, n, low=-1, dtypes="bhil"),
                epsilon=g.uniform(0, 0.5),
            )
        )(g.extent(1), g.extent(1))
    ),
    speed=speed.row(speed.matrix, labels),
)


def draw_binary(g: Draw):
    shape = g.shape(1, 3, least=1)
    return call(
        g.x(*shape),
        g.index(2, *shape, low=-1, dtypes="bhil"),
        normalize=g.chance(0.5),
        reduce=g.pick("mean", "no"),
    )


def binary_of(x, t, normalize, reduce):
    losses = np.where(t == -1, 0, np.logaddexp(0, x) - x * t)
    return (
        losses
        if reduce == "no"
        else losses.sum() / max((t != -1).sum() if normalize else len(t), 1)
    )


function(
    "sigmoid_cross_entropy",
    fuzz=drawn(draw_binary, binary_of),
    signature="(x, t, normalize=True, reduce='mean')",
    edges=[
        "F.sigmoid_cross_entropy(s(N, 3), i(2, N, 3))",
        "F.sigmoid_cross_entropy(s(N, 3), i(2, N, 3), normalize=False)",
        "F.sigmoid_cross_entropy(s(N, 3), i(2, N, 3), reduce='no')",
        "F.sigmoid_cross_entropy(s(), i(2))",
    ],
    errors=[
        "F.sigmoid_cross_entropy(f(2, 3), i(2)) -> InvalidType",
        "F.sigmoid_cross_entropy(f(2, 3), f(2, 3)) -> InvalidType",
        "F.sigmoid_cross_entropy(f(2, 3), i(2, 3), reduce='foo') -> ValueError",
    ],
    others={"F.sigmoid_cross_entropy(s(), i(2))": [()]},
    onnx="exported",
    speed=speed.row(speed.matrix, speed.indices(2, *speed.MATRIX)),
)

BINARY_LABELS = np.arange(12).reshape(3, 4) % 3 - 1


def counted_softplus(x, beta):
    return np.log1p(np.exp(beta * x)) / beta


def core_binary(g: Draw):
    shape = g.shape(0, 3)
    return call(g.x(*shape), g.index(2, *shape, low=-1, dtypes="bhil"))


function(
    "sigmoid_nll",
    cases=case(
        lambda o, x: o.sigmoid_nll(x, BINARY_LABELS),
        lambda x: np.where(
            BINARY_LABELS < 0, 0, np.logaddexp(0, np.where(BINARY_LABELS > 0, -x, x))
        ),
        (3, 4),
    ),
    operands=case(lambda o, x, t: o.sigmoid_nll(x, positive(t)), None, (3, 4), (3, 4)),
    flops=lambda x: np.where(
        BINARY_LABELS < 0, 0, counted_softplus(np.where(BINARY_LABELS > 0, -x, x), 1)
    ),
    fuzz=drawn(
        core_binary,
        # The public function refuses other labels; the core asks only for their signs.
        lambda x, t: np.where(t < 0, 0, np.logaddexp(0, np.where(t > 0, -x, x))),
        of="ops",
    ),
)


def counted_huber(x, t):
    size = abs(x - t)
    near = np.minimum(size, Number(0.7))
    return near * (size - near * 0.5)


def pair(g: Draw, *options):
    shape = g.shape()
    return call(g.x(*shape), g.x(*shape), *options)


def near_and_far(x, t, delta):
    size = abs(x - t)
    return np.where(size < delta, size * size / 2, delta * (size - delta / 2))


function(
    "huber",
    cases=case(
        lambda o, x, t: o.huber(x, t, 0.7),
        lambda x, t: np.where(
            abs(x - t) < 0.7, (x - t) ** 2 / 2, 0.7 * (abs(x - t) - 0.35)
        ),
        (4, 5),
        (4, 5),
    ),
    flops=counted_huber,
    fuzz=drawn(lambda g: pair(g, 0.7), near_and_far, of="ops"),
)


def bernoulli(g: Draw):
    shape = g.shape(1, 3, least=1)
    return call(g.u(*shape), g.x(*shape), reduce=g.pick("sum", "mean", "no"))


function(
    "bernoulli_nll",
    cases=case(
        lambda o, x, t: o.bernoulli_nll(x, t),
        lambda x, t: np.log1p(np.exp(x)) - x * t,
        (4, 5),
        (4, 5),
    ),
    fuzz=[
        drawn(pair, lambda x, t: np.logaddexp(0, x) - x * t, within=4, of="ops"),
        drawn(
            bernoulli,
            lambda x, y, reduce: reduced(np.logaddexp(0, y) - x * y, reduce),
            within=4,
        ),
    ],
    signature="(x, y, reduce='sum')",
    edges=[
        "F.bernoulli_nll(u(N, 3), s(N, 3))",
        "F.bernoulli_nll(u(N, 3), s(N, 3), reduce='no')",
    ],
    errors=[
        "F.bernoulli_nll(f(2), f(2), reduce='foo') -> ValueError",
        "F.bernoulli_nll(f(2), f(3)) -> ValueError | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.constant(speed.uniform(0.0, 1.0, *speed.MATRIX)), speed.matrix
    ),
)

function(
    "gaussian_kl_divergence",
    fuzz=drawn(
        alike(2, 1, 3, reduce=("sum", "mean", "no")),
        lambda m, v, reduce: reduced((m**2 + np.exp(v) - v - 1) / 2, reduce),
        within=4,
    ),
    signature="(mean, ln_var, reduce='sum')",
    edges=[
        "F.gaussian_kl_divergence(s(N, 3), s(N, 3))",
        "F.gaussian_kl_divergence(s(N, 3), s(N, 3), reduce='no')",
        "F.gaussian_kl_divergence(s(), s())",
    ],
    errors="F.gaussian_kl_divergence(f(2), f(2), reduce='foo') -> ValueError",
    onnx="exported",
    speed=speed.row(speed.matrix, speed.normal(*speed.MATRIX, scale=0.1)),
)

function(
    "gaussian_nll",
    fuzz=drawn(
        alike(3, 1, 3, reduce=("sum", "mean", "no")),
        lambda x, m, v, reduce: reduced(
            (np.log(2 * np.pi) + v + (x - m) ** 2 * np.exp(-v)) / 2, reduce
        ),
        within=4,
    ),
    signature="(x, mean, ln_var, reduce='sum')",
    edges=[
        "F.gaussian_nll(s(N, 3), s(N, 3), s(N, 3))",
        "F.gaussian_nll(s(N, 3), s(N, 3), s(N, 3), reduce='no')",
        "F.gaussian_nll(s(), s(), s())",
    ],
    errors=[
        "F.gaussian_nll(f(2), f(2), f(3)) -> InvalidType",
        "F.gaussian_nll(f(2), f(2), f(2), reduce='foo') -> ValueError",
    ],
    onnx="exported",
    speed=speed.row(speed.matrix, speed.matrix, speed.normal(*speed.MATRIX, scale=0.1)),
)


def samples(g: Draw):
    # Long vectors of equal elements make a probability 1 in float32, and its loss infinite.
    n, d, classes = g.extent(1), min(g.extent(1), 12), g.extent(1)
    return (
        g.x(n, d, low=-0.5, high=0.5),
        g.index(classes, n, dtypes="il"),
        g.x(classes, d, low=-0.5, high=0.5),
        classes,
        n,
    )


def black_out(g: Draw):
    x, t, W, classes, n = samples(g)
    return call(
        x,
        t,
        W,
        g.index(classes, n, g.integer(1, 3), dtypes="il"),
        reduce=g.pick("mean", "no"),
    )


def black_out_of(x, t, W, samples, reduce):
    classes = np.concatenate([t[:, None], samples], 1).astype(int)
    if classes.size and not (0 <= classes.min() and classes.max() < len(W)):
        raise IndexError("no such class")
    log_p = sp.log_softmax(np.einsum("nd,nsd->ns", x, W[classes]), 1)
    return reduced(-log_p[:, 0] - np.log1p(-np.exp(log_p[:, 1:])).sum(1), reduce)


function(
    "black_out",
    fuzz=drawn(black_out, black_out_of, within=50, dtypes="fd"),
    signature="(x, t, W, samples, reduce='mean')",
    edges=[
        "F.black_out(s(N, 3), i(4, N), s(4, 3), i(4, N, 2))",
        "F.black_out(s(N, 3), i(4, N), s(4, 3), i(4, N, 2), reduce='no')",
    ],
    errors="F.black_out(f(2, 3), i(2), f(4, 3), i(2, 2), reduce='foo') -> float32 (2,) | ValueError",
    nothing=[()],
    onnx="exported",
    speed=speed.row(
        speed.normal(1024, 256),
        speed.indices(4096, 1024),
        speed.normal(4096, 256),
        speed.indices(4096, 1024, 16),
    ),
)


def first_class(shape):
    return np.zeros(shape, "i")


def negative_sampling(g: Draw):
    x, t, W, _, _ = samples(g)
    return call(x, t, W, first_class, g.integer(1, 3), reduce=g.pick("sum", "no"))


def negative_sampling_of(x, t, W, sampler, size, reduce):
    if t.size and not (-1 <= t.min() and t.max() < len(W)):
        raise IndexError("no such class")
    right = np.logaddexp(0, -(x * W[t]).sum(1))
    losses = np.where(t == -1, 0, right + size * np.logaddexp(0, x @ W[0]))
    return reduced(losses, reduce)


function(
    "negative_sampling",
    fuzz=drawn(negative_sampling, negative_sampling_of, within=2),
    signature="(x, t, W, sampler, sample_size, reduce='sum', **kwargs)",
    edges=[
        "F.negative_sampling(s(N, 3), i(4, N), s(4, 3), lambda shape: i(4, *shape), 2)",
        "F.negative_sampling(s(N, 3), i(4, N), s(4, 3), lambda shape: i(4, *shape), 2, reduce='no')",
    ],
    errors=[
        "F.negative_sampling(f(2, 3), i(2), f(4, 3), lambda s: i(*s), 2, reduce='mean') -> ValueError",
        "F.negative_sampling(f(2, 3), f(2), f(4, 3), lambda s: i(*s), 2) -> InvalidType",
        "F.negative_sampling(f(2, 3), i(3), f(4, 3), lambda s: i(*s), 2) -> InvalidType",
        "F.negative_sampling(f(2, 3), i(2), f(4, 2), lambda s: i(*s), 2) -> ValueError | InvalidType",
    ],
    onnx="exported",
    speed=speed.row(
        speed.normal(1024, 256),
        speed.indices(4096, 1024),
        speed.normal(4096, 256),
        call=lambda x, t, W: F.negative_sampling(
            x,
            t,
            W,
            lambda shape: np.random.RandomState(0).randint(0, 4096, shape).astype("i"),
            16,
        ),
    ),
)


def random_field(g: Draw):
    labels = g.extent(1) % 6 + 1
    steps = sorted((g.integer(1, 4) for _ in range(g.integer(1, 4))), reverse=True)
    return (
        g.x(labels, labels),
        [g.x(n, labels) for n in steps],
        [g.index(labels, n, dtypes="bilB") for n in steps],
    )


SENTENCES = [speed.normal(64, 16)] * 40

function(
    "crf1d",
    fuzz=drawn(lambda g: call(*random_field(g), reduce=g.pick("mean", "no")), within=4),
    signature="(cost, xs, ys, reduce='mean')",
    edges=[
        "F.crf1d(s(3, 3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)])",
        "F.crf1d(s(3, 3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)], reduce='no')",
    ],
    errors=[
        "F.crf1d(f(3, 3), [f(2, 3)], [i(2)], reduce='foo') -> ValueError",
        "F.crf1d(f(3, 3), [f(2, 3)], [f(2)]) -> InvalidType",
    ],
    nothing=[()],
    onnx="exported",
    speed=speed.row(speed.normal(16, 16), SENTENCES, [speed.indices(16, 64)] * 40),
)

function(
    "argmax_crf1d",
    fuzz=drawn(lambda g: call(*random_field(g)[:2]), smooth=False),
    signature="(cost, xs)",
    edges="F.argmax_crf1d(s(3, 3), [s(N, 3), s(N, 3)])",
    onnx="reads values",
    speed=speed.row(
        speed.constant(speed.normal(16, 16)),
        [speed.constant(x) for x in SENTENCES],
        call=lambda cost, xs: F.argmax_crf1d(cost, xs)[0],
    ),
)


def alignment(g: Draw):
    labels, n, length = g.integer(2, 5), g.extent(1) % 6 + 1, g.integer(1, 3)
    steps = 2 * length + g.integer(0, 2)  # enough for equal labels in a row
    t = g.index(labels, n, length, low=1, dtypes="il")
    return call(
        [g.x(n, labels) for _ in range(steps)], t, 0, reduce=g.pick("mean", "no")
    )


function(
    "connectionist_temporal_classification",
    fuzz=drawn(alignment, within=10, smooth=False),
    signature="(x, t, blank_symbol, input_length=None, label_length=None, reduce='mean')",
    edges=[
        "F.connectionist_temporal_classification([s(N, 3), s(N, 3), s(N, 3)], i(2, N, 1) + 1, 0)",
        "F.connectionist_temporal_classification([s(N, 3), s(N, 3), s(N, 3)], i(2, N, 1) + 1, 0, reduce='no')",
    ],
    errors=[
        "F.connectionist_temporal_classification(f(4, 2, 3), i(2, 2), 0) -> TypeError",
        "F.connectionist_temporal_classification([f(2, 3)] * 4, i(2, 2), 9) -> AssertionError | ValueError",
        "F.connectionist_temporal_classification([f(2, 3)] * 4, i(2, 2), '0') -> TypeError",
        "F.connectionist_temporal_classification([f(2, 3)] * 4, f(2, 2), 0) -> InvalidType",
        "F.connectionist_temporal_classification([f(2, 3)] * 4, i(3, 2), 0) -> InvalidType",
        "F.connectionist_temporal_classification([f(2, 3)] * 4, i(2, 2), 0, reduce='foo') -> ValueError",
    ],
    onnx="no counterpart",
    speed=speed.row(
        [speed.normal(32, 40)] * 50,
        speed.indices(39, 32, 12),
        call=lambda xs, t: F.connectionist_temporal_classification(xs, t, 39),
    ),
)


def clusters(g: Draw):
    n, h, w = g.integer(1, 3), g.integer(2, 4), g.integer(2, 4)
    return call(
        g.x(n, g.integer(1, 3), h, w),
        g.index(3, n, h, w, dtypes="i"),
        0.5,
        1.5,
        4,
        norm=g.pick(1, 2),
    )


function(
    "discriminative_margin_based_clustering_loss",
    fuzz=drawn(clusters, within=4, smooth=False),
    signature="(embeddings, labels, delta_v, delta_d, max_embedding_dim, norm=1, alpha=1.0, beta=1.0, gamma=0.001)",
    edges="F.discriminative_margin_based_clustering_loss(s(N, 2, 4, 4), i(3, N, 4, 4), .5, 1.5, 2)",
    nothing=[(), (), ()],
    onnx="exported",
    speed=speed.row(
        speed.normal(2, 8, 64, 64), speed.indices(4, 2, 64, 64), 0.5, 1.5, 8
    ),
)


def scored(g: Draw, dtypes="bhil"):
    n, c = g.extent(1), g.extent(1)
    return g.x(n, c), g.index(c, n, dtypes=dtypes)


function(
    "accuracy",
    fuzz=drawn(
        lambda g: call(*scored(g, "bhilB"), ignore_label=g.pick(None, 0, -1)),
        lambda y, t, ignore_label: (
            np.mean(
                (y.argmax(1) == t)[
                    slice(None) if ignore_label is None else t != ignore_label
                ]
            )
            if ignore_label is None or (t != ignore_label).any()
            else 0.0
        ),
        smooth=False,
    ),
    signature="(y, t, ignore_label=None)",
    edges="F.accuracy(s(N, 3), i(3, N))",
    errors=[
        "F.accuracy(f(2, 3), i(3)) -> InvalidType",
        "F.accuracy(f(2, 3), f(2)) -> InvalidType",
        "F.accuracy(i(2, 3), i(2)) -> InvalidType",
        "F.accuracy(f(2, 3, 2), i(2)) -> InvalidType",
    ],
    onnx="reads values",
    speed=speed.row(speed.constant(speed.matrix), labels),
)

function(
    "binary_accuracy",
    fuzz=drawn(
        lambda g: (lambda s: call(g.x(*s), g.index(2, *s, low=-1, dtypes="bhil")))(
            g.shape(1, 3, least=1)
        ),
        lambda y, t: ((y >= 0) == t)[t != -1].mean() if (t != -1).any() else 0.0,
        smooth=False,
    ),
    signature="(y, t)",
    edges="F.binary_accuracy(s(N, 3), i(2, N, 3))",
    errors=[
        "F.binary_accuracy(f(2), i(3)) -> InvalidType",
        "F.binary_accuracy(f(2), f(2)) -> InvalidType",
    ],
    onnx="reads values",
    speed=speed.row(speed.constant(speed.matrix), speed.indices(2, *speed.MATRIX)),
)

function(
    "classification_summary",
    fuzz=drawn(lambda g: call(*scored(g)), smooth=False),
    signature="(y, t, label_num=None, beta=1.0, ignore_label=-1)",
    edges="F.classification_summary(s(N, 3), i(3, N))",
    onnx="reads values",
    speed=speed.row(speed.constant(speed.tall), few),
)

function(
    "precision",
    fuzz=drawn(lambda g: call(*scored(g)), smooth=False),
    signature="(y, t, label_num=None, ignore_label=-1)",
    edges="F.precision(s(N, 3), i(3, N))",
    errors=[
        "F.precision(f(2, 3), i(3)) -> InvalidType",
        "F.precision(f(2, 3), f(2)) -> InvalidType",
    ],
    onnx="reads values",
    speed=speed.row(speed.constant(speed.tall), few),
)

function(
    "recall",
    fuzz=drawn(lambda g: call(*scored(g)), smooth=False),
    signature="(y, t, label_num=None, ignore_label=-1)",
    edges="F.recall(s(N, 3), i(3, N))",
    onnx="reads values",
    speed=speed.row(speed.constant(speed.tall), few),
)

function(
    "f1_score",
    fuzz=drawn(lambda g: call(*scored(g)), smooth=False),
    signature="(y, t, label_num=None, ignore_label=-1)",
    edges="F.f1_score(s(N, 3), i(3, N))",
    errors="F.f1_score(i(2, 3), i(2)) -> InvalidType",
    onnx="reads values",
    speed=speed.row(speed.constant(speed.tall), few),
)

function(
    "r2_score",
    fuzz=drawn(
        lambda g: (
            lambda s: call(
                g.x(*s), g.x(*s), multioutput=g.pick("uniform_average", "raw_values")
            )
        )(g.shape(1, 2, least=2)),
        smooth=False,
    ),
    signature="(pred, true, sample_weight=None, multioutput='uniform_average')",
    edges="F.r2_score(s(N, 3), s(N, 3))",
    errors=[
        "F.r2_score(f(2), f(3)) -> InvalidType",
        "F.r2_score(f(4), f(4), multioutput='foo') -> ValueError",
        "F.r2_score(f(4), f(4), sample_weight=f(4)) -> NotImplementedError",
    ],
    onnx="reads values",
    speed=speed.row(speed.constant(speed.matrix), speed.constant(speed.matrix)),
)

WEIGHT = np.array([0.5, 1.0, 2.0, 0.0])

COLUMN_LABELS = np.arange(2 * 900).reshape(2, 900) % 8 - 1

function(
    "softmax_nll",
    cases=[
        case(
            lambda o, x: o.softmax_nll(x, LABELS),
            lambda x: nll(x, LABELS, np.ones(4)),
            (3, 4, 2),
        ),
        case(
            lambda o, x: o.softmax_nll(x, LABELS, WEIGHT.astype(x.dtype)),
            lambda x: nll(x, LABELS, WEIGHT),
            (3, 4, 2),
        ),
        case(
            lambda o, x: o.softmax_nll(x, COLUMN_LABELS),
            lambda x: nll(x, COLUMN_LABELS, np.ones(7)),
            (2, 7, 900),
        ),
        case(
            lambda o, x: o.softmax_nll(x, COLUMN_LABELS[0]),
            lambda x: nll(x, COLUMN_LABELS[0], np.ones(7)),
            (900, 7),
        ),
    ],
    operands=case(
        lambda o, x, t, w: o.softmax_nll(x, positive(t), w),
        None,
        (5, 3, 2),
        (5, 2),
        (3,),
    ),
    node="softmax_cross_entropy",
    fuzz=drawn(
        lambda g: call(*labelled(g)),
        lambda x, t, w: oracles.negative_log_softmax(x, t, w, -1),
        of="ops",
    ),
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


def draw_core_aligned(g: Draw):
    """Enough steps for any path of labels, between which there are blanks."""
    n, kinds, labels = g.integer(1, 3), g.integer(2, 4), g.integer(1, 2)
    steps = 2 * labels + g.integer(0, 2)
    path = np.zeros((n, 2 * labels + 1), np.int64)
    path[:, 1::2] = [[g.integer(1, kinds - 1) for _ in range(labels)] for _ in range(n)]
    lengths = np.array([g.integer(2 * labels, steps) for _ in range(n)], np.int64)
    positions = np.array([2 * g.integer(0, labels) + 1 for _ in range(n)], np.int64)
    return call(g.x(steps, n, kinds), path, lengths, positions, 0)


function(
    "alignment_loss",
    cases=case(
        lambda o, x: o.alignment_loss(x, PATHS, STEPS, POSITIONS, 0),
        aligned,
        (5, 3, 3),
        tolerance=1e-4,
    ),
    takes_arrays=True,
    flops=[0],
    fuzz=drawn(draw_core_aligned, dtypes="fd", smooth=False, within=6, of="ops"),
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


def scored_steps(g: Draw):
    """Fewer sequences from step to step, and the costs of transitions."""
    kinds = g.integer(1, 4)
    sizes = sorted((g.integer(1, 4) for _ in range(g.integer(1, 4))), reverse=True)
    return call(g.x(kinds, kinds), [g.x(n, kinds) for n in sizes])


function(
    "best_paths",
    cases=case(
        lambda o, cost, *xs: o.best_paths(cost, list(xs)),
        best_labels,
        (4, 4),
        (3, 4),
        (3, 4),
        (1, 4),
        orders=0,
        dtypes="fd",
    ),
    flops=[0],
    fuzz=drawn(scored_steps, dtypes="fd", smooth=False, of="ops"),
)
