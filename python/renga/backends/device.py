"""Device: the interface of CPUs and GPUs."""

from __future__ import annotations

import contextlib
import numbers
from types import ModuleType
from typing import Any, Union

import numpy

from renga.core.types import Array

_SENDABLE = (numpy.ndarray, numpy.generic, numbers.Number)


class Device:
    """A device that holds arrays and runs functions."""

    supported_array_types: tuple[type, ...] = ()

    @property
    def xp(self) -> ModuleType:
        """The module that makes and computes with the arrays."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The specifier that ``get_device`` understands."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __enter__(self) -> None:
        raise RuntimeError("Device: expected `with using_device(device):`")

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise RuntimeError("Device: expected `with using_device(device):`")

    def create_context(self) -> contextlib.AbstractContextManager[object]:
        """A context in which new arrays are made on this device."""
        return contextlib.nullcontext(self)

    def use(self) -> None:
        """Makes this the device of the thread."""

    def is_array_supported(self, array: object) -> bool:
        """Whether ``array`` is on this device."""
        return isinstance(array, self.supported_array_types)

    def send(self, arrays: object) -> Any:
        """An array, or a list or tuple of arrays or None, on this device.

        None alone stays None.

        Raises:
            TypeError: a value is neither an array nor a number.
        """
        if arrays is None:
            return None
        if isinstance(arrays, (list, tuple)):
            return type(arrays)(None if x is None else self._send(x) for x in arrays)
        return self._send(arrays)

    def _send(self, array: Any) -> Any:
        if not isinstance(array, (*self.supported_array_types, *_SENDABLE)):
            raise TypeError(
                f"{self.name}: expected an array, a number or None, got {type(array)}"
            )
        return self.send_array(array)

    def send_array(self, array: Any) -> Array:
        """One array on this device; itself if it is already there."""
        raise NotImplementedError


DeviceLike = Union[Device, str, int]
"""What ``get_device`` takes: a device, its name, or a GPU's number."""
