"""Devices and the array modules that belong to them."""

from __future__ import annotations

import contextlib
from types import ModuleType

import numpy

from renga import _core
from renga.backends import cuda, intel64
from renga.backends.chainerx import ChainerxDevice, from_chx, to_chx
from renga.backends.cpu import CpuDevice
from renga.backends.cuda import GpuDevice
from renga.backends.device import Device, DeviceLike
from renga.backends.intel64 import Intel64Device
from renga.core.types import Array, ArrayLike

__all__ = [
    "ChainerxDevice",
    "CpuDevice",
    "Device",
    "GpuDevice",
    "Intel64Device",
    "copyto",
    "cuda",
    "from_chx",
    "get_array_module",
    "get_array_types",
    "get_cpu_array_types",
    "get_device",
    "get_device_from_array",
    "intel64",
    "to_chx",
    "using_device",
]

_cpu = CpuDevice()


def get_device(device_spec: DeviceLike) -> Device:
    """The device of a specifier: a Device, a GPU's number or a string.

    Strings are ``"@numpy"``, ``"@cupy:N"``, ``"@intel64"``, or a number; a negative
    number is the main memory.

    Raises:
        TypeError: no specifier.
        ValueError: an unknown name.
        RuntimeError: the device does not exist here.
    """
    if isinstance(device_spec, Device):
        return device_spec
    if isinstance(device_spec, str):
        return _parse(device_spec)
    if isinstance(device_spec, (int, numpy.integer)):
        return _cpu if device_spec < 0 else GpuDevice.from_device_id(int(device_spec))
    raise TypeError(
        f"get_device: expected a Device, an integer or a string, got {device_spec!r}"
    )


def _parse(spec: str) -> Device:
    if spec == "@numpy":
        return _cpu
    if spec == "@intel64":
        return Intel64Device()
    number = spec[len("@cupy:") :] if spec.startswith("@cupy:") else spec
    if number.lstrip("-").isdigit():
        return get_device(int(number))
    if spec.startswith("@"):
        raise ValueError(
            f"get_device: expected '@numpy', '@cupy:N' or '@intel64', got {spec!r}"
        )
    return ChainerxDevice(spec)


def get_device_from_array(*arrays: object) -> Device:
    """The device of the first array or Variable on a GPU, else the CPU.

    No element of a Variable is read: it may have none (in a pipeline), or be deferred.
    """
    for array in arrays:
        if not isinstance(array, _core.Variable):
            device = GpuDevice.from_array(array)
            if device is not None:
                return device
        elif array.device_name.startswith("cuda"):
            return GpuDevice(int(array.device_name.partition(":")[2] or 0))
    return _cpu


def get_array_module(*args: ArrayLike) -> ModuleType:
    """NumPy, or CuPy if one of the arrays or Variables is on a GPU."""
    return get_device_from_array(*args).xp


def get_array_types() -> tuple[type, ...]:
    """The types of arrays, on any device."""
    return (numpy.ndarray, cuda.ndarray)


def get_cpu_array_types() -> tuple[type, ...]:
    """The types of arrays in the main memory."""
    return CpuDevice.supported_array_types


def using_device(device_spec: DeviceLike) -> contextlib.AbstractContextManager[object]:
    """Context in which a device is the current device of this thread.

    It may be entered again. Raises, at once, what ``get_device`` does.
    """
    return get_device(device_spec).create_context()


def copyto(dst: Array, src: Array) -> None:
    """Copies ``src`` into the array ``dst``; TypeError if that is not an array."""
    device = get_device_from_array(dst)
    if not device.is_array_supported(dst):
        raise TypeError(f"copyto: expected an array to copy to, got {type(dst)}")
    device.xp.copyto(dst, device.send(src), casting="same_kind")
