"""The arrays of a model that ranks exchange. Nothing else here knows of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def broadcast(comm: Any, model: Any) -> None:
    """Gives every rank the parameters and persistent arrays of rank 0.

    Raises:
        RuntimeError: the ranks' models do not have the same arrays.
    """
    arrays = dict(_model_arrays(model))
    shapes = {name: (x.shape, x.dtype.str) for name, x in arrays.items()}
    others = comm.allgather_obj(shapes)
    for rank, theirs in enumerate(others):
        differing = dict(theirs.items() ^ others[0].items())
        if differing:
            raise RuntimeError(
                f"bcast_data: expected the same arrays on every rank, "
                f"but on ranks 0 and {rank} differ {sorted(differing)}"
            )
    for x in arrays.values():
        comm.broadcast(x)


def _model_arrays(model: Any) -> Iterator[tuple[str, np.ndarray]]:
    for name, param in sorted(model.namedparams()):
        if param.array is not None:
            yield name, param.array
    for prefix, link in sorted(model.namedlinks()):
        for name in sorted(link._persistent):
            value = getattr(link, name)
            if isinstance(value, np.ndarray):
                yield f"{prefix}/{name}", value


def _params_with_gradients(model: Any, zero_fill: bool) -> list[list[Any]]:
    """Lists of parameters whose gradients have one dtype, in the order of names."""
    found: dict[np.dtype, list[Any]] = {}
    for _, param in sorted(model.namedparams(include_uninit=False)):
        if zero_fill and param.grad is None:
            param.grad = np.zeros_like(param.array)
        if param.grad is not None:
            found.setdefault(param.grad.dtype, []).append(param)
    return list(found.values())


def mean_gradients(comm: Any, model: Any, zero_fill: bool) -> None:
    """Replaces the gradients of a model by their mean over the ranks.

    Where ``zero_fill`` is true, a parameter without a gradient counts as one
    whose gradient is zero.
    """
    if comm.get_config("allreduce_grad_dtype") is not None:
        GradientsUnderWay(comm, model, zero_fill).arrive()
        return
    for params in _params_with_gradients(model, zero_fill):
        grads = [param.grad for param in params]
        comm.all_reduce(grads, "mean", out=grads)


class GradientsUnderWay:
    """Copies of a model's gradients that become their mean in the background."""

    def __init__(self, comm: Any, model: Any, zero_fill: bool) -> None:
        travels_as = comm.get_config("allreduce_grad_dtype")
        self._parts = []
        for params in _params_with_gradients(model, zero_fill):
            copies = [param.grad.astype(travels_as or param.dtype) for param in params]
            work = comm.all_reduce(copies, "mean", out=copies, wait=False)
            self._parts.append((params, work))

    def arrive(self) -> None:
        """Waits for the mean and makes it the gradients of the model."""
        for params, work in self._parts:
            for param, mean in zip(params, work.wait()):
                param.grad = mean.astype(param.dtype, copy=False)
