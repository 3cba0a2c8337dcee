"""DeviceResident: an object whose arrays move between devices together."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any, TypeVar

from renga._core import Variable
from renga.backends.device import Device, DeviceLike
from renga.core import backend
from renga.core.types import Array

_Self = TypeVar("_Self", bound="DeviceResident")


def _warn_deprecated(name: str) -> None:
    warnings.warn(
        f"{name} is deprecated, use to_device", DeprecationWarning, stacklevel=3
    )


# Methods that a class may override, with a warning, and that it may not.
_OLD_MOVES = ("to_cpu", "to_gpu", "to_intel64")
_MOVES = ("to_device", "to_chx", "from_chx")


def _move_to(device: Any) -> str | None:
    """The old method that moves to a device; None for a class of the user's."""
    kinds = (backend.CpuDevice, backend.GpuDevice, backend.Intel64Device)
    pairs = zip(kinds, _OLD_MOVES)
    return next((name for kind, name in pairs if isinstance(device, kind)), None)


def check_overridden_moves(cls: type) -> None:
    """Warns if a class overrides ``to_cpu`` or its like; others are a TypeError."""
    for name in _MOVES:
        if name in vars(cls):
            raise TypeError(
                f"{cls.__name__}: expected device_resident_accept to be overridden, "
                f"got {name}"
            )
    for name in _OLD_MOVES:
        if name in vars(cls):
            warnings.warn(
                f"{cls.__name__}.{name}: overriding it is deprecated: override "
                "device_resident_accept",
                DeprecationWarning,
                stacklevel=4,
            )


class DeviceResident:
    """Base of objects that own arrays: links, distributions.

    A subclass passes its arrays to the visitor in ``device_resident_accept``; every
    ``to_*`` method visits all arrays once.
    """

    _device: Any = None

    @property
    def device(self) -> Device:
        """The device that the arrays are on."""
        return backend.CpuDevice() if self._device is None else self._device

    @property
    def xp(self) -> ModuleType:
        """The array module of the device."""
        return self.device.xp

    def device_resident_accept(self, visitor: DeviceResidentsVisitor) -> None:
        """Passes every array to ``visitor``; a subclass adds its own arrays."""
        visitor.visit_device_resident(self)

    def to_device(self: _Self, device: DeviceLike) -> _Self:
        """Moves every array to ``device``; returns itself."""
        return self._move(backend.get_device(device), "to_device")

    def to_cpu(self: _Self) -> _Self:
        """Moves every array to the CPU; returns itself."""
        _warn_deprecated("to_cpu")
        return self._move(backend.CpuDevice(), "to_cpu")

    def to_gpu(self: _Self, device: int | None = None) -> _Self:
        """Moves every array to a GPU, the first by default; returns itself."""
        _warn_deprecated("to_gpu")
        target = backend.GpuDevice.from_device_id(0 if device is None else int(device))
        return self._move(target, "to_gpu")

    def to_intel64(self: _Self) -> _Self:
        """Moves every array to iDeep, which raises RuntimeError: there is none."""
        _warn_deprecated("to_intel64")
        return self._move(backend.get_device("@intel64"), "to_intel64")

    def to_chx(self: _Self) -> _Self:
        """Moves every array to ChainerX, which raises RuntimeError: there is none."""
        return self._move(backend.get_device("native"), "to_chx")

    def from_chx(self: _Self) -> _Self:
        """Returns itself, since no array is ChainerX's."""
        return self

    def _move(self: _Self, device: Any, method: str) -> _Self:
        self.device_resident_accept(_Mover(device, self, method))
        return self


class DeviceResidentsVisitor:
    """Base of visitors of the arrays of a DeviceResident."""

    def visit_device_resident(self, resident: DeviceResident) -> None:
        """Called once for each DeviceResident."""
        raise NotImplementedError

    def visit_array(self, array: Array) -> Array:
        """Called for each bare array; returns its replacement."""
        raise NotImplementedError

    def visit_variable(self, variable: Variable) -> None:
        """Called for each variable, which it may change."""
        raise NotImplementedError


class _Mover(DeviceResidentsVisitor):
    """Sends every array to one device."""

    def __init__(self, device: Any, root: DeviceResident, method: str) -> None:
        self._device = device
        self._root = root
        self._method = method

    def visit_device_resident(self, resident: DeviceResident) -> None:
        resident._device = self._device
        # A child that overrides to_gpu() must have its own method called.
        method: str | None = self._method
        if method == "to_device":
            method = _move_to(self._device)
        elif resident is self._root:  # called by that method
            return
        if method is not None and self._is_overridden(resident, method):
            is_gpu = method == "to_gpu"
            getattr(resident, method)(*([self._device.device.id] if is_gpu else []))

    def visit_array(self, array: Any) -> Any:
        return self._device.send(array)

    def visit_variable(self, variable: Any) -> None:
        variable.to_device(self._device)

    def _is_overridden(self, resident: DeviceResident, method: str) -> bool:
        own = getattr(type(resident), method)
        return own is not getattr(DeviceResident, method)
