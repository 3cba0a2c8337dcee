"""Communication of a model's parameters and gradients.

This is the only module of communicators that knows models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from renga.communicators.array_communicator import ArrayCommunicator
from renga.communicators.work import Work
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.link.own_values import persistent_arrays
from renga.core.parameter import Parameter
from renga.core.types import Array

Model = Link

_ON_DEVICE = "__cuda_array_interface__"


def broadcast(comm: ArrayCommunicator, model: Model) -> None:
    """Overwrites a model's parameters and persistent arrays by those of rank 0.

    Raises:
        TypeError: if the model is no link.
        RuntimeError: if the ranks' models do not have the same arrays.
    """
    _require_link("bcast_data", model)
    arrays = dict(_model_arrays(model))
    shapes = {name: (x.shape, x.dtype.str) for name, x in arrays.items()}
    shapes_of_ranks = comm.allgather_obj(shapes)
    for rank, other in enumerate(shapes_of_ranks):
        differing = dict(other.items() ^ shapes_of_ranks[0].items())
        if differing:
            raise RuntimeError(
                f"bcast_data: expected the same arrays on every rank, "
                f"but on ranks 0 and {rank} differ {sorted(differing)}"
            )
    for x in arrays.values():
        comm.broadcast(x)


def _require_link(name: str, model: object) -> None:
    if not hasattr(model, "namedparams"):
        raise TypeError(f"{name}: expected a link, got {type(model).__name__}")


def _model_arrays(model: Model) -> Iterator[tuple[str, Array]]:
    for param, names in distinct_params(model, include_uninit=False):
        yield names[0], param.array
    yield from persistent_arrays(model).items()


def mean_gradients(comm: ArrayCommunicator, model: Model, zero_fill: bool) -> None:
    """Replaces the gradients of a model by their means over the ranks.

    A gradient that is missing on some ranks counts as zero there. One that is missing
    on all ranks becomes zero if ``zero_fill`` is true and stays missing otherwise.
    """
    _require_link("multi_node_mean_grad", model)
    for params in params_by_dtype(comm, model, zero_fill):
        grads = _distinct([_gradient_or_zero(param) for param in params])
        average(comm, grads)
        for param, mean in zip(params, grads):
            param.grad = mean


def average(comm: ArrayCommunicator, grads: list[Array], wait: bool = True) -> Any:
    """Replaces arrays by their means over the ranks.

    They are communicated in the dtype of the setting ``allreduce_grad_dtype``.
    """
    dtype = comm.get_config("allreduce_grad_dtype")
    if comm.size == 1 and dtype is None:
        return grads if wait else Work(None, lambda: grads)
    return comm.all_reduce(grads, "mean", out=grads, wait=wait, dtype=dtype)


def params_by_dtype(
    comm: ArrayCommunicator, model: Model, zero_fill: bool
) -> list[list[Parameter]]:
    """The parameters to average, sorted by name, in one list per dtype.

    Unless ``zero_fill``, those that have a gradient on no rank are left out.
    """
    params = [distinct.param for distinct in distinct_params(model, False)]
    if not zero_fill:
        used = np.array([param.grad_var is not None for param in params])
        used = comm.all_reduce(used, "max")
        params = [param for param, is_used in zip(params, used) if is_used]
    by_dtype: dict[Any, list[Parameter]] = {}
    for param in params:
        by_dtype.setdefault(param.dtype, []).append(param)
    return list(by_dtype.values())


def _gradient_or_zero(param: Parameter) -> Array:
    grad: Array | None = param.grad
    if grad is None:
        grad = param.xp.zeros_like(param.array)
    return grad


def _distinct(grads: list[Array]) -> list[Array]:
    """``grads`` with copies of repeated arrays, which would be averaged twice."""
    addresses: set[int] = set()
    result = []
    for grad in grads:
        kind = "__array_interface__" if isinstance(grad, np.ndarray) else _ON_DEVICE
        address = getattr(grad, kind)["data"][0]
        result.append(grad.copy() if address in addresses else grad)
        addresses.add(address)
    return result
