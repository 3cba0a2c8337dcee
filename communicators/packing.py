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


def gradients(model: Any, zero_fill: bool) -> dict[np.dtype, list[np.ndarray]]:
    """The gradients of a model by dtype, in the order of the parameters' names.

    Where ``zero_fill`` is true, parameters without a gradient get one of zeros.
    """
    found: dict[np.dtype, list[np.ndarray]] = {}
    for _, param in sorted(model.namedparams()):
        if zero_fill and param.grad is None and param.array is not None:
            param.grad = np.zeros_like(param.array)
        if param.grad is not None:
            found.setdefault(param.grad.dtype, []).append(param.grad)
    return found


def mean_gradients(comm: Any, model: Any, zero_fill: bool) -> None:
    """Replaces the gradients of a model by their mean over the ranks."""
    travels_as = comm.get_config("allreduce_grad_dtype")
    for dtype, grads in gradients(model, zero_fill).items():
        if travels_as is None or dtype == travels_as:
            comm.all_reduce(grads, "mean", out=grads)
            continue
        means = comm.all_reduce([g.astype(travels_as) for g in grads], "mean")
        for grad, mean in zip(grads, means):
            grad[...] = mean
