"""The arrays of a model that ranks exchange. Nothing else here knows of models."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from renga.communicators.work import Work


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


def mean_gradients(comm: Any, model: Any, zero_fill: bool) -> None:
    """Replaces the gradients of a model by their mean over the ranks.

    A parameter without a gradient on this rank counts as one whose gradient is zero.
    One without any on all ranks gets zero if ``zero_fill`` is true, and none otherwise.
    """
    for params in _that_take_part(comm, model, zero_fill):
        grads = _apart([_gradient(param) for param in params])
        average(comm, grads)
        for param, mean in zip(params, grads):
            param.grad = mean


class GradientsUnderWay:
    """Copies of a model's gradients that become their mean in the background.

    They are multiplied by ``weight`` before.
    """

    def __init__(
        self, comm: Any, model: Any, zero_fill: bool, weight: float = 1.0
    ) -> None:
        self._parts = []
        for params in _that_take_part(comm, model, zero_fill):
            copies = [take_gradient(param, weight) for param in params]
            self._parts.append((params, average(comm, copies, wait=False)))

    def means(self) -> list[tuple[Any, Any]]:
        """Waits; the parameters with their means."""
        return [
            pair for params, work in self._parts for pair in zip(params, work.wait())
        ]

    def arrive(self) -> None:
        """Waits for the mean and makes it the gradients of the model."""
        for param, mean in self.means():
            param.grad = mean


def average(comm: Any, grads: list[np.ndarray], wait: bool = True) -> Any:
    """Replaces arrays by their mean over the ranks, as the communicator is set to."""
    travels_as = comm.get_config("allreduce_grad_dtype")
    if comm.size == 1 and travels_as is None:
        return grads if wait else Work(None, lambda: grads)
    return comm.all_reduce(grads, "mean", out=grads, wait=wait, dtype=travels_as)


def checksum(arrays: Iterable[np.ndarray]) -> int:
    """A number that is the same where arrays are, and all but never elsewhere."""
    value = 0
    for x in arrays:
        value = zlib.crc32(np.ascontiguousarray(x).data, value)
    return value


def take_gradient(param: Any, weight: float = 1.0, place: Any = None) -> np.ndarray:
    """``weight`` times the gradient, in ``place`` or memory that nothing else uses.

    It is taken away from the parameter. Where there is none, it is zero.
    """
    own, grad = param._owns_grad, param.grad
    param.grad = None
    if place is not None:
        zero = grad is None or weight == 0
        if zero:
            place[...] = 0
        elif weight == 1:
            if not _is_there(grad, place):
                np.copyto(place, grad)
        else:
            np.multiply(grad, grad.dtype.type(weight), out=place)
        return place
    if grad is None or weight == 0:  # what is not a number counts as zero too
        return param.xp.zeros_like(param.array)
    if weight != 1:
        return grad * grad.dtype.type(weight)
    return grad if own else grad.copy()


def _is_there(x: np.ndarray, place: np.ndarray) -> bool:
    """Whether an array of a place's shape and dtype is the place itself."""
    ours, theirs = x.__array_interface__, place.__array_interface__
    return ours["data"] == theirs["data"] and ours["strides"] == theirs["strides"]


def _that_take_part(comm: Any, model: Any, zero_fill: bool) -> list[list[Any]]:
    """Lists of parameters of one dtype, in the order of names."""
    params = [param for _, param in sorted(model.namedparams(include_uninit=False))]
    if not zero_fill:
        used = np.array([param.grad_var is not None for param in params])
        used = comm.all_reduce(used, "max")
        params = [param for param, taken in zip(params, used) if taken]
    found: dict[np.dtype, list[Any]] = {}
    for param in params:
        found.setdefault(param.dtype, []).append(param)
    return list(found.values())


def _gradient(param: Any) -> np.ndarray:
    grad = param.grad
    return param.xp.zeros_like(param.array) if grad is None else grad


def _apart(grads: list[np.ndarray]) -> list[np.ndarray]:
    """The same, of which no two begin at one place: else a mean of means would come."""
    places: set[int] = set()
    result = []
    for grad in grads:
        place = grad.__array_interface__["data"][0]
        result.append(grad.copy() if place in places else grad)
        places.add(place)
    return result
