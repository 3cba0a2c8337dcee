"""Gradients of single parameters, on their way into a reduction."""

from __future__ import annotations

from collections.abc import Iterable

import numpy

from renga.core.parameter import Parameter
from renga.core.types import Array

_ON_GPU = "__cuda_array_interface__"


def take_gradient(
    param: Parameter, weight: float = 1.0, out: Array | None = None
) -> Array:
    """Removes the gradient of a parameter and returns it times ``weight``.

    The result is in ``out`` or in memory that nothing else uses. A missing gradient,
    or one with weight zero, even if it is not finite, counts as zero.
    """
    owned, grad = param.owns_grad, param.grad
    param.grad = None
    result: Array
    is_zero = grad is None or weight == 0
    if out is not None:
        if is_zero:
            out[...] = 0
        elif weight != 1:
            numpy.multiply(grad, grad.dtype.type(weight), out=out)
        elif not _is_same_memory(grad, out):
            out[...] = grad
        return out
    if is_zero:
        result = param.xp.zeros_like(param.array)
    elif weight != 1:
        # A product of 0-d arrays would not be an array.
        result = param.xp.asarray(grad * grad.dtype.type(weight))
    else:
        result = grad if owned else grad.copy()
    return result


def spend_gradients(params: Iterable[Parameter]) -> None:
    """Notes that an update has used gradients and kept no sums to add others to."""
    for param in params:
        param.spend_grad()


def require_whole_gradients(params: Iterable[Parameter]) -> None:
    """Refuses gradients that should have been added to those of an update before.

    Raises:
        RuntimeError: they were not cleared since an update that kept no sums.
    """
    for param in params:
        if param.grad_is_partial:
            raise RuntimeError(
                "update: expected gradients that were cleared (model.cleargrads()) "
                "since the last update, which has divided them among the ranks and "
                f"kept no sums to add to, got one of {param.name} that was not"
            )


def _is_same_memory(x: Array, y: Array) -> bool:
    """Whether two arrays of one shape and dtype are one array."""
    name = "__array_interface__" if isinstance(x, numpy.ndarray) else _ON_GPU
    a, b = getattr(x, name), getattr(y, name)
    return bool(a["data"] == b["data"] and a["strides"] == b["strides"])
