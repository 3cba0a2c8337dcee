"""Chainer's ChainerX device, which never exists: renga's core replaces it."""

from __future__ import annotations

from typing import TypeVar

from renga.backends.cpu import CpuDevice
from renga.backends.device import Device, DeviceLike

_Value = TypeVar("_Value")


class ChainerxDevice(Device):
    """A device of ChainerX."""

    def __init__(self, device: DeviceLike) -> None:
        raise RuntimeError("chainerx: expected ChainerX, got renga")

    @property
    def fallback_device(self) -> Device:
        """The device for operations that ChainerX lacks: the CPU."""
        return CpuDevice()

    @staticmethod
    def from_array(array: object) -> ChainerxDevice | None:
        """None: no array is ChainerX's."""
        return None

    @staticmethod
    def from_fallback_device(device: Device) -> ChainerxDevice:
        """Raises RuntimeError."""
        return ChainerxDevice(device)


def to_chx(array: object) -> None:
    """Raises RuntimeError: no array can be ChainerX's."""
    ChainerxDevice("native")


def from_chx(array: _Value) -> _Value:
    """``array`` as it is, since no array is ChainerX's."""
    return array
