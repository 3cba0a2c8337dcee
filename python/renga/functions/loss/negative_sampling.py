"""Loss of one class against a few others drawn at random."""

from __future__ import annotations

from typing import Callable

import numpy

from renga import _core
from renga.core.types import Array, ArrayLike, Shape
from renga.core.variable import Variable
from renga.functions.check import array_of, check_floats, check_shape, checked_indices
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.on_host import on_host
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_count, check_memory
from renga.utils.type_check import InvalidType


@on_host
def negative_sampling(
    x: ArrayLike,
    t: ArrayLike,
    W: ArrayLike,
    sampler: Callable[[Shape], Array],
    sample_size: int,
    reduce: str = "sum",
    **kwargs: object,
) -> Variable | tuple[Variable, Array]:
    """``-log sigmoid(x W[t]) - sum(log sigmoid(-x W[s]))`` over drawn classes s.

    ``sampler`` draws an integer array of a shape. Samples whose ``t`` is -1 have loss
    0. With ``return_samples=True`` the classes are returned, too; the first of each row
    is ``t``.

    Shapes:
        x: (N, D)
        t: (N,), integers
        W: (classes, D)
        return: (), or (N,) if ``reduce`` is "no"; and (N, 1 + sample_size)

    Raises:
        ValueError: ``reduce`` is unknown, or ``sample_size`` below 1.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a label or a drawn class is not one of the classes.

    Source: Mikolov et al., Distributed representations of words and phrases and their
    compositionality, 2013.
    """
    name = "negative_sampling"
    (return_samples,) = parse_kwargs(kwargs, ("return_samples", False))
    check_reduce(name, reduce, ("sum", "no"))
    sample_size = check_count(name, "sample_size", sample_size)
    check_floats(name, x, W)
    check_memory(name, (*x.shape[:1], sample_size + 1), int)
    t = array_of(name, "labels", t)
    fits = x.ndim == W.ndim == 2 and x.shape[1] == W.shape[1]
    check_shape(name, fits and t.shape == x.shape[:1], "(N, D), (N,), (K, D)", x, t, W)
    if t.dtype.kind != "i":
        raise InvalidType(f"{name}: expected t of integers, got {t.dtype}")
    ops = _core.ops
    t = checked_indices(name, "t", t, len(W), -1)
    shape = (len(t), sample_size + 1)
    samples = numpy.array(sampler(shape))
    check_shape(name, samples.shape == shape, f"samples of {shape}", samples)
    samples[:, 0] = 0
    drawn = checked_indices(name, "samples", samples, len(W))
    samples[:, 0] = drawn[:, 0] = t
    vectors = ops.embed_id(drawn, W, -1)
    scores = ops.squeeze(ops.matmul(vectors, ops.expand_dims(x, 2)), 2)
    sign = numpy.ones(scores.shape, scores.dtype)
    sign[:, 0] = -1
    losses = ops.sum(ops.softplus(ops.multiply(scores, sign)), 1)
    losses = ops.multiply(losses, (t != -1).astype(losses.dtype))
    loss = reduced(losses, reduce)
    return (loss, samples) if return_samples else loss
