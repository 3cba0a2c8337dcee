"""Losses of margins: between classes, and between embeddings."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.functions.array.cast import in_nominal_dtype
from renga.functions.check import (
    array_of,
    check_alike,
    check_arrays,
    check_floats,
    check_shape,
    checked_indices,
)
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.math.average import average
from renga.functions.on_host import on_host
from renga.utils.extents import check_count, check_real
from renga.utils.type_check import InvalidType


@on_host
def hinge(
    x: ArrayLike, t: ArrayLike, norm: str = "L1", reduce: str = "mean"
) -> Variable:
    """``max(0, 1 - x)`` for the class of the label, ``max(0, 1 + x)`` for the others.

    ``norm="L2"`` squares it. ``reduce="mean"`` divides the sum by N; ``"no"`` keeps one
    loss per element.

    Shapes:
        x: (N, C)
        t: (N,), integers

    Raises:
        NotImplementedError: ``norm`` is unknown.
        ValueError: ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a label is not one of the classes.
    """
    if norm not in ("L1", "L2"):
        raise NotImplementedError(f"hinge: expected norm 'L1' or 'L2', got {norm!r}")
    check_reduce("hinge", reduce)
    t = array_of("hinge", "labels", t)
    check_floats("hinge", x)
    check_shape("hinge", x.ndim == 2 and t.shape == x.shape[:1], "(N, C), (N,)", x, t)
    if t.dtype.kind != "i":
        raise InvalidType(f"hinge: expected labels of integers, got {t.dtype}")
    t = checked_indices("hinge", "t", t, x.shape[1])
    sign = _core.empty(x.shape, x.dtype)
    sign[...] = 1
    sign[numpy.arange(len(t)), t] = -1
    loss = _core.ops.relu(_core.ops.multiply(x, sign) + 1)
    if norm == "L2":
        loss = _core.ops.square(loss)
    return loss if reduce == "no" else average(_core.ops.sum(loss, 1))


@reads_elements
@on_host
def contrastive(
    x0: ArrayLike, x1: ArrayLike, y: ArrayLike, margin: float = 1, reduce: str = "mean"
) -> Variable:
    """Half of ``d ** 2`` where ``y`` is 1, else of ``max(margin - d, 0) ** 2``.

    d is the distance of the two samples.

    Shapes:
        x0, x1: (N, K)
        y: (N,), integers

    Raises:
        ValueError: the margin is not positive, or ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a label is neither 0 nor 1.

    Source: Hadsell et al., Dimensionality reduction by learning an invariant mapping,
    2006.
    """
    check_reduce("contrastive", reduce)
    if margin <= 0:
        raise ValueError(f"contrastive: expected a positive margin, got {margin}")
    check_alike("contrastive", x0, x1)
    y = array_of("contrastive", "labels", y)
    fits = x0.ndim == 2 and y.shape == x0.shape[:1]
    check_shape("contrastive", fits, "(N, K), (N, K) and (N,)", x0, x1, y)
    if y.dtype.kind != "i":
        raise InvalidType(f"contrastive: expected y of integers, got {y.dtype}")
    y = checked_indices("contrastive", "y", y, 2)
    ops = _core.ops
    squares = ops.sum(ops.squared_difference(in_nominal_dtype(x0), x1), 1)
    # The square root has no derivative at 0; the gradient there is defined as 0.
    apart = squares.array > 0
    root = ops.sqrt(ops.where(apart, squares, numpy.ones(y.shape, x0.dtype)))
    gap = ops.relu(margin - root * apart)
    y = y.astype(x0.dtype)
    return reduced((squares * y + ops.square(gap) * (1 - y)) * 0.5, reduce)


def triplet(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 0.2,
    reduce: str = "mean",
) -> Variable:
    """``max(|anchor - positive|² - |anchor - negative|² + margin, 0)``.

    Shapes:
        anchor, positive, negative: (N, K)

    Raises:
        ValueError: the margin is not positive, or ``reduce`` is unknown.
        InvalidType: shapes or dtypes differ, or are not floats.

    Source: Schroff et al., FaceNet, 2015.
    """
    check_reduce("triplet", reduce)
    if margin <= 0:
        raise ValueError(f"triplet: expected a positive margin, got {margin}")
    check_alike("triplet", anchor, positive, negative)
    ops, anchor = _core.ops, in_nominal_dtype(anchor)
    near = ops.squared_difference(anchor, positive)
    far = ops.squared_difference(anchor, negative)
    return reduced(ops.relu(ops.sum(near - far, 1) + margin), reduce)


@reads_elements
@on_host
def discriminative_margin_based_clustering_loss(
    embeddings: ArrayLike,
    labels: ArrayLike,
    delta_v: float,
    delta_d: float,
    max_embedding_dim: int,
    norm: int = 1,
    alpha: float = 1.0,
    beta: float = 1.0,
    gamma: float = 0.001,
) -> tuple[Variable, Variable, Variable]:
    """Variance, distance and regularization losses of instances' embeddings.

    Instances are the labels 1 to ``max_embedding_dim``; other pixels are ignored.
    Pixels should be within ``delta_v`` of their instance's mean, and means further than
    ``2 delta_d`` from each other, by the norm 1 or 2. The losses are mean squares of
    the deviations from these bounds, and mean norms of the means, times ``alpha``,
    ``beta`` and ``gamma``.

    Shapes:
        embeddings: (N, C, H, W)
        labels: (N, H, W), integers
        return: (), (), ()

    Raises:
        ValueError: the norm is neither 1 nor 2, or ``max_embedding_dim`` below 1.
        TypeError: ``max_embedding_dim`` is not an integer, or another option not a
            number.
        InvalidType: shapes or dtypes do not fit.

    Source: De Brabandere et al., Semantic instance segmentation with a discriminative
    loss function, 2017.
    """
    name = "discriminative_margin_based_clustering_loss"
    if norm not in (1, 2):
        raise ValueError(f"{name}: expected norm 1 or 2, got {norm}")
    check_floats(name, embeddings)
    labels = as_array(labels)
    delta_v = check_real(name, "delta_v", delta_v)
    delta_d = check_real(name, "delta_d", delta_d)
    alpha, beta = check_real(name, "alpha", alpha), check_real(name, "beta", beta)
    gamma = check_real(name, "gamma", gamma)
    k = check_count(name, "max_embedding_dim", max_embedding_dim)
    check_arrays(name, labels)
    images = (*embeddings.shape[:1], *embeddings.shape[2:])
    fits = embeddings.ndim == 4 and labels.shape == images
    check_shape(name, fits, "(N, C, H, W) and (N, H, W)", embeddings, labels)
    ops, n = _core.ops, len(labels)
    masks = labels == numpy.arange(1, k + 1)[:, None, None, None]  # (k, N, H, W)
    masks = masks.astype(embeddings.dtype)
    sizes = masks.sum((2, 3))
    inside = ops.expand_dims(embeddings, 0) * masks[:, :, None]
    means = ops.sum(inside, (3, 4)) / numpy.maximum(sizes, 1)[:, :, None]
    apart = ops.reshape(means, (*means.shape, 1, 1)) - ops.expand_dims(embeddings, 0)
    far = ops.relu(_norm(apart * masks[:, :, None], (2,), norm) - delta_v)
    spread = ops.sum(ops.square(far), (1, 2, 3)) / numpy.maximum(sizes.sum(1), 1)
    first, second = numpy.triu_indices(k, 1)
    pairs = means[first] - means[second]
    near = ops.relu(-_norm(pairs, (2,), norm) + 2 * delta_d)
    return (
        ops.sum(spread) * (alpha / k),
        ops.sum(ops.square(near)) * (beta / max(len(first) * n, 1)),
        ops.sum(_norm(means, (1, 2), norm)) * (gamma / max(k * n, 1)),
    )


def _norm(x: Variable, axes: tuple[int, ...], norm: int) -> Variable:
    ops = _core.ops
    if norm == 1:
        return ops.sum(ops.absolute(x), axes)
    squares = ops.sum(ops.square(x), axes)
    # The square root has no derivative at 0; the gradient there is defined as 0.
    is_zero = (squares.array == 0).astype(x.dtype)
    return ops.sqrt(squares + is_zero) * (1 - is_zero)
