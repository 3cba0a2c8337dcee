"""Functions of NumPy and SciPy, which compute on the host what is on a device."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, TypeVar

import numpy

from renga.backends import cuda
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import copy
from renga.utils.containers import map_leaves

Function = TypeVar("Function", bound=Callable[..., Any])


def on_host(function: Function) -> Function:
    """Has ``function`` get copies on the host of what it is given on a device.

    Its results go to the device, and gradients take the same way. Arrays, unlike
    Variables, are written back if the function has changed them.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if "renga._cuda" not in sys.modules:
            return function(*args, **kwargs)
        moves = _Moves()
        args, kwargs = map_leaves(moves.to_host, (args, kwargs))
        ys = function(*args, **kwargs)
        return ys if moves.device is None else moves.to_device(ys)

    return call  # type: ignore[return-value]


def beside(x: ArrayLike, array: numpy.ndarray) -> Array:
    """A constant of the host, on the device of ``x``."""
    if "renga._cuda" not in sys.modules:
        return array
    if isinstance(x, Variable) and x.device_name.startswith("cuda:"):
        return x.device.send(numpy.ascontiguousarray(array))
    if isinstance(x, cuda.ndarray):
        return cuda.to_gpu(numpy.ascontiguousarray(array), x.device)
    return array


class _Moves:
    """The copies of one call."""

    def __init__(self) -> None:
        self.device: Any = None
        self._copied: list[tuple[Any, numpy.ndarray, numpy.ndarray]] = []

    def to_host(self, x: ArrayLike) -> Any:
        """An argument, on the host if it is an array or a Variable."""
        if isinstance(x, Variable):
            if not x.device_name.startswith("cuda:"):
                return x
            self.device = self.device or x.device
            return copy(x, -1)
        if not isinstance(x, cuda.ndarray):
            return x
        self.device = self.device or cuda.GpuDevice(x.device)
        host = cuda.to_cpu(x)
        self._copied.append((x, host, host.copy()))
        return host

    def to_device(self, ys: Any) -> Any:
        """The results; arrays that were written to are written there, too."""
        for x, host, before in self._copied:
            if not numpy.array_equal(host, before, equal_nan=host.dtype.kind == "f"):
                x[...] = self.device.send(host)
        self._copied.clear()
        return map_leaves(self._result_to_device, ys)

    def _result_to_device(self, y: Any) -> Any:
        if isinstance(y, Variable):
            return copy(y, self.device)
        return self.device.send(y) if isinstance(y, numpy.ndarray) else y
