"""A check that a model computes each sample by itself, and how its outputs are made."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy

from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Link
from renga.core.types import Array
from renga.core.variable import as_variable
from renga.links.normalization.batch_normalization import (
    BatchNormalization,
    BatchRenormalization,
)
from renga.links.normalization.decorrelated_batch_normalization import (
    DecorrelatedBatchNormalization,
)
from renga.parallel.conversion.arguments import arrays_in
from renga.parallel.placement.shard_ranges import as_slice, shard_range
from renga.program import Recorder

# Rounding differs between batches of different sizes.
_TOLERANCE = 1e-3
_BY_BATCH = (BatchRenormalization, DecorrelatedBatchNormalization)


def stacked_steps(model: Link, inputs: Sequence[Array], ranks: int) -> tuple[bool, ...]:
    """For each output, whether time steps are stacked along axis 0.

    Then it has all samples of the first step, those of the second one, and so on;
    else all rows of the first sample, those of the second one, and so on.

    A copy of the model is called with all samples of the example and with some of them,
    in test mode, and the outputs are compared.

    Raises:
        ValueError: outputs or gradients of a sample depend on other samples; outputs
            have no axis of samples; or the model recomputes functions (``F.forget``).
    """
    samples = len(inputs[0])
    if samples < ranks:
        raise ValueError(f"expected {ranks} samples or more, got {samples}")
    for link in model.links():
        is_other = isinstance(link, BatchNormalization) and (
            link.axis is not None and 0 not in link.axis
        )
        if isinstance(link, _BY_BATCH) or is_other:
            raise ValueError(f"{type(link).__name__} needs all samples")
    own = as_slice(shard_range(samples, ranks, ranks - 1))
    part = [x[own] if len(x) == samples else x for x in inputs]
    with using_config("train", False):
        with no_backprop_mode():
            whole = arrays_in(copy.deepcopy(model)(*inputs))
        recorder = Recorder(model)
        with using_config("enable_backprop", True), recorder:
            some = arrays_in(copy.deepcopy(model)(*part))
    if any(call.operation == "Forget" for call in recorder.program.calls):
        raise ValueError("F.forget uses parameters in the backward pass")
    if len(whole) != len(some) or not whole:
        raise ValueError(f"{type(model).__name__} returns no arrays of samples")
    return tuple(
        _is_stacked(as_variable(a).array, as_variable(b).array, samples, own)
        for a, b in zip(whole, some)
    )


def _is_stacked(whole: Any, some: Any, samples: int, own: slice) -> bool:
    rows, more = divmod(len(whole), samples) if whole.ndim else (0, 1)
    count = own.stop - own.start
    if more or rows == 0 or some.shape != (rows * count, *whole.shape[1:]):
        raise ValueError(f"outputs have no axis of samples, got {whole.shape}")
    kept = whole.shape[1:]
    by_sample = whole.reshape(samples, rows, *kept)[own].reshape(some.shape)
    by_step = whole.reshape(rows, samples, *kept)[:, own].reshape(some.shape)
    limit = _TOLERANCE * float(numpy.abs(whole).max(initial=1e-30))
    is_by_sample, is_by_step = (
        bool(numpy.abs(some - expected).max(initial=0) <= limit)
        for expected in (by_sample, by_step)
    )
    if rows == 1 and is_by_sample:
        return False
    if is_by_sample == is_by_step:
        raise ValueError(
            "outputs of a sample depend on other samples, or are all equal"
        )
    return is_by_step
