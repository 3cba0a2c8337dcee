"""Loss of one class against others drawn at random, by a softmax over them."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.functions.array.cast import promoted
from renga.functions.check import (
    check_arrays,
    check_floats,
    check_shape,
    checked_indices,
)
from renga.functions.loss.reduction import check_reduce, reduced
from renga.functions.on_host import on_host


@on_host
def black_out(
    x: ArrayLike, t: ArrayLike, W: ArrayLike, samples: ArrayLike, reduce: str = "mean"
) -> Variable:
    """``-log p[t] - sum(log(1 - p[s]))``, p the softmax of ``x W`` over t and all s.

    ``x`` and ``W`` may have different float dtypes; the wider one is the result's.

    Shapes:
        x: (N, D)
        t: (N,), integers
        W: (classes, D)
        samples: (N, S), integers
        return: (), or (N,) if ``reduce`` is "no"

    Raises:
        ValueError: ``reduce`` is unknown.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a label or a sample is not one of the classes.

    Source: Ji et al., BlackOut: speeding up recurrent neural network language models
    with very large vocabularies, 2016.
    """
    name = "black_out"
    check_reduce(name, reduce)
    check_floats(name, x)
    check_floats(name, W)
    x, W = promoted(x, W)
    t, samples = as_array(t), as_array(samples)
    check_arrays(name, t, samples)
    fits = x.ndim == W.ndim == samples.ndim == 2 and x.shape[1] == W.shape[1]
    fits = fits and t.shape == x.shape[:1] == samples.shape[:1]
    check_shape(name, fits, "(N, D), (N,), (K, D), (N, S)", x, t, W, samples)
    ops = _core.ops
    t = checked_indices(name, "t", t, len(W))
    samples = checked_indices(name, "samples", samples, len(W))
    classes = numpy.concatenate([t[:, None], samples], 1)
    vectors = ops.embed_id(classes, W)
    scores = ops.squeeze(ops.matmul(vectors, ops.expand_dims(x, 2)), 2)
    log_p = ops.log_softmax(scores, 1)
    wanted, others = ops.split_axis(log_p, [1], 1)
    losses = ops.add(ops.squeeze(wanted, 1), ops.sum(ops.log1p(-ops.exp(others)), 1))
    return reduced(-losses, reduce)
