"""Losses and scores."""

import numpy as np
import scipy.special as sp

from ..draw import Draw
from ..table import call, case
from . import oracles
from .core import labelled


def reduced(losses, how="mean"):
    if how == "no":
        return losses
    return losses.sum() if how == "sum" else losses.mean()


def alike(n=2, low=2, high=2, **options):
    def draw(g: Draw):
        shape = g.shape(low, high, least=1)
        return call(*(g.x(*shape) for _ in range(n)), **{k: g.pick(*v) for k, v in options.items()})

    return draw


case("mean_squared_error", alike(low=0, high=3), lambda a, b: ((a - b) ** 2).mean())
case("mean_absolute_error", alike(low=0, high=3), lambda a, b: abs(a - b).mean())
case("triplet", alike(3, reduce=("mean", "no")), lambda a, p, n, reduce: reduced(np.maximum(((a - p) ** 2 - (a - n) ** 2).sum(1) + 0.2, 0), reduce), dtypes="fd", within=4)  # a difference of sums that cancels


def contrastive(g: Draw):
    n, k = g.extent(1), g.extent(1)
    return call(g.x(n, k), g.x(n, k), g.index(2, n, dtypes="bhil"), reduce=g.pick("mean", "no"))


def contrastive_of(a, b, y, reduce):
    d = ((a - b) ** 2).sum(1)
    return reduced((y * d + (1 - y) * np.maximum(1 - np.sqrt(d), 0) ** 2) / 2, reduce)


case("contrastive", contrastive, contrastive_of, within=2)
case("cross_covariance", lambda g: (lambda n: call(g.x(n, g.extent(1)), g.x(n, g.extent(1)), reduce=g.pick("half_squared_sum", "no")))(g.extent(1)), lambda y, z, reduce: squared((y - y.mean(0)).T @ (z - z.mean(0)) / len(y), reduce), within=10)  # sums that cancel
case("decov", lambda g: call(g.x(g.extent(1), g.extent(1)), reduce=g.pick("half_squared_sum", "no")), lambda h, reduce: squared((h - h.mean(0)).T @ (h - h.mean(0)) / len(h) * (1 - np.eye(h.shape[1])), reduce), within=10)  # sums that cancel


def squared(covariance, how):
    return covariance if how == "no" else (covariance**2).sum() / 2


def huber(x, t, delta, reduce):
    d = abs(x - t)
    loss = np.where(d < delta, d**2 / 2, delta * (d - delta / 2))
    return loss if reduce == "no" else loss.sum(1)


case("huber_loss", lambda g: (lambda s: call(g.x(*s), g.x(*s), g.uniform(0.3, 2), reduce=g.pick("sum_along_second_axis", "no")))(g.shape(2)), huber)


def hinge(g: Draw):
    n, c = g.extent(1), g.extent(1)
    return call(g.x(n, c), g.index(c, n, dtypes="bhil"), norm=g.pick("L1", "L2"), reduce=g.pick("mean", "no"))


def hinge_of(x, t, norm, reduce):
    if t.size and not (0 <= t.min() and t.max() < x.shape[1]):
        raise IndexError("no such class")
    sign = np.where(np.arange(x.shape[1]) == t[:, None], -1, 1)
    loss = np.maximum(0, 1 + sign * x) ** (2 if norm == "L2" else 1)
    return loss if reduce == "no" else loss.sum() / len(x)


case("hinge", hinge, hinge_of, within=2)


def softmax_loss(g: Draw):
    x, t, weight = labelled(g)
    t = g.index(x.value.shape[1], *t.value.shape, low=-1, dtypes="bhil")
    return call(x, t, normalize=g.chance(0.5), class_weight=weight, reduce=g.pick("mean", "no"))


def softmax_loss_of(x, t, normalize, class_weight, reduce):
    losses = oracles.negative_log_softmax(x, t, class_weight, -1)
    if reduce == "no":
        return losses
    return losses.sum() / max((t != -1).sum() if normalize else len(t), 1)


case("softmax_cross_entropy", softmax_loss, softmax_loss_of, within=2, weight=3)


def soft_targets(g: Draw):
    shape = g.shape(2, 3, least=1)
    t = g.u(*shape, role="constant")
    return call(g.x(*shape), t, reduce="no", soft_target_loss=g.pick("cross-entropy", "kl-divergence"))


def soft_loss(x, t, reduce, soft_target_loss):
    loss = -(t * sp.log_softmax(x, 1)).sum(1)
    if soft_target_loss != "cross-entropy":
        loss = loss + (t * np.log(t)).sum(1)
    return loss if reduce == "no" else loss.mean()


case("softmax_cross_entropy", soft_targets, soft_loss, within=2)
case("label_smoothing_cross_entropy", lambda g: (lambda n, c: call(g.x(n, c), g.index(c, n, low=-1, dtypes="bhil"), epsilon=g.uniform(0, 0.5)))(g.extent(1), g.extent(1)))


def binary(g: Draw):
    shape = g.shape(1, 3, least=1)
    return call(g.x(*shape), g.index(2, *shape, low=-1, dtypes="bhil"), normalize=g.chance(0.5), reduce=g.pick("mean", "no"))


def binary_of(x, t, normalize, reduce):
    losses = np.where(t == -1, 0, np.logaddexp(0, x) - x * t)
    return losses if reduce == "no" else losses.sum() / max((t != -1).sum() if normalize else len(t), 1)


case("sigmoid_cross_entropy", binary, binary_of)


def core_binary(g: Draw):
    shape = g.shape(0, 3)
    return call(g.x(*shape), g.index(2, *shape, low=-1, dtypes="bhil"))


case("ops.sigmoid_nll", core_binary, lambda x, t: np.where(t == -1, 0, np.logaddexp(0, x) - x * t))


def pair(g: Draw, *options):
    shape = g.shape()
    return call(g.x(*shape), g.x(*shape), *options)


def near_and_far(x, t, delta):
    size = abs(x - t)
    return np.where(size < delta, size * size / 2, delta * (size - delta / 2))


case("ops.huber", lambda g: pair(g, 0.7), near_and_far)
case("ops.bernoulli_nll", pair, lambda x, t: np.logaddexp(0, x) - x * t, within=4)


def bernoulli(g: Draw):
    shape = g.shape(1, 3, least=1)
    return call(g.u(*shape), g.x(*shape), reduce=g.pick("sum", "mean", "no"))


case("bernoulli_nll", bernoulli, lambda x, y, reduce: reduced(np.logaddexp(0, y) - x * y, reduce), within=4)
case("gaussian_kl_divergence", alike(2, 1, 3, reduce=("sum", "mean", "no")), lambda m, v, reduce: reduced((m**2 + np.exp(v) - v - 1) / 2, reduce), within=4)
case("gaussian_nll", alike(3, 1, 3, reduce=("sum", "mean", "no")), lambda x, m, v, reduce: reduced((np.log(2 * np.pi) + v + (x - m) ** 2 * np.exp(-v)) / 2, reduce), within=4)


def samples(g: Draw):
    # Long vectors of equal elements make a probability 1 in float32, and its loss infinite.
    n, d, classes = g.extent(1), min(g.extent(1), 12), g.extent(1)
    return g.x(n, d, low=-0.5, high=0.5), g.index(classes, n, dtypes="il"), g.x(classes, d, low=-0.5, high=0.5), classes, n


def black_out(g: Draw):
    x, t, W, classes, n = samples(g)
    return call(x, t, W, g.index(classes, n, g.integer(1, 3), dtypes="il"), reduce=g.pick("mean", "no"))


def black_out_of(x, t, W, samples, reduce):
    classes = np.concatenate([t[:, None], samples], 1).astype(int)
    if classes.size and not (0 <= classes.min() and classes.max() < len(W)):
        raise IndexError("no such class")
    log_p = sp.log_softmax(np.einsum("nd,nsd->ns", x, W[classes]), 1)
    return reduced(-log_p[:, 0] - np.log1p(-np.exp(log_p[:, 1:])).sum(1), reduce)


case("black_out", black_out, black_out_of, within=50, dtypes="fd")


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


case("negative_sampling", negative_sampling, negative_sampling_of, within=2)


def random_field(g: Draw):
    labels = g.extent(1) % 6 + 1
    steps = sorted((g.integer(1, 4) for _ in range(g.integer(1, 4))), reverse=True)
    return g.x(labels, labels), [g.x(n, labels) for n in steps], [g.index(labels, n, dtypes="bilB") for n in steps]


case("crf1d", lambda g: call(*random_field(g), reduce=g.pick("mean", "no")), within=4)
case("argmax_crf1d", lambda g: call(*random_field(g)[:2]), smooth=False)


def alignment(g: Draw):
    labels, n, length = g.integer(2, 5), g.extent(1) % 6 + 1, g.integer(1, 3)
    steps = 2 * length + g.integer(0, 2)  # enough for equal labels in a row
    t = g.index(labels, n, length, low=1, dtypes="il")
    return call([g.x(n, labels) for _ in range(steps)], t, 0, reduce=g.pick("mean", "no"))


case("connectionist_temporal_classification", alignment, within=10, smooth=False)


def clusters(g: Draw):
    n, h, w = g.integer(1, 3), g.integer(2, 4), g.integer(2, 4)
    return call(g.x(n, g.integer(1, 3), h, w), g.index(3, n, h, w, dtypes="i"), 0.5, 1.5, 4, norm=g.pick(1, 2))


case("discriminative_margin_based_clustering_loss", clusters, within=4, smooth=False)


def scored(g: Draw, dtypes="bhil"):
    n, c = g.extent(1), g.extent(1)
    return g.x(n, c), g.index(c, n, dtypes=dtypes)


case("accuracy", lambda g: call(*scored(g, "bhilB"), ignore_label=g.pick(None, 0, -1)), lambda y, t, ignore_label: np.mean((y.argmax(1) == t)[slice(None) if ignore_label is None else t != ignore_label]) if ignore_label is None or (t != ignore_label).any() else 0.0, smooth=False)
case("binary_accuracy", lambda g: (lambda s: call(g.x(*s), g.index(2, *s, low=-1, dtypes="bhil")))(g.shape(1, 3, least=1)), lambda y, t: ((y >= 0) == t)[t != -1].mean() if (t != -1).any() else 0.0, smooth=False)
case("classification_summary precision recall f1_score", lambda g: call(*scored(g)), smooth=False)
case("r2_score", lambda g: (lambda s: call(g.x(*s), g.x(*s), multioutput=g.pick("uniform_average", "raw_values")))(g.shape(1, 2, least=2)), smooth=False)
