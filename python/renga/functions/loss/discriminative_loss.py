"""Clustering loss of the embeddings of instances' pixels."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.functions.on_host import on_host
from renga.utils.extents import check_count, check_real


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
