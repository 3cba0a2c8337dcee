"""CUDA devices. Without one, every name exists and raises RuntimeError when used."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import Any, Callable, NoReturn

import numpy

from renga.backends.device import Device as _Device

available = False
cudnn_enabled = False
cupy = object()

_max_workspace_size = 8 * 1024 * 1024


def load_plugin() -> ModuleType:
    """The compiled plugin; loading it registers the CUDA devices in the core.

    Raises:
        RuntimeError: it was not built, or a library, the driver or a device is missing.
    """
    if importlib.util.find_spec("renga._cuda") is None:
        raise RuntimeError(
            "cuda: expected a renga built with RENGA_CUDA (`make cuda`), got none"
        )
    try:
        return importlib.import_module("renga._cuda")
    except ImportError as error:
        raise RuntimeError(f"cuda: {error}") from error


def check_cuda_available() -> None:
    """Raises RuntimeError where there are no CUDA devices with CuPy's arrays."""
    load_plugin()
    raise RuntimeError(
        "cuda: expected CuPy's arrays, which renga does not support yet; "
        "use the device '@numpy'"
    )


def unavailable(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError, as every function that needs CuPy does without it."""
    check_cuda_available()
    raise AssertionError


class ndarray:
    """The type of arrays on CUDA devices; without one no array has it."""

    dtype: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        unavailable()

    @property
    def device(self) -> Device:
        """The device of the array."""
        unavailable()

    def get(self, stream: Any = None) -> numpy.ndarray:
        """A copy in the main memory."""
        unavailable()

    def set(self, arr: numpy.ndarray, stream: Any = None) -> None:
        """Copies ``arr`` into this array."""
        unavailable()


class Device:
    """A CUDA device by its number."""

    id: int

    def __init__(self, device: int | None = None) -> None:
        unavailable()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *args: Any) -> None:
        pass


class Stream:
    """A CUDA stream."""

    __init__ = unavailable


class Event:
    """A CUDA event."""

    __init__ = unavailable


class DummyDeviceType:
    """The device of an array in the main memory."""

    id = -1

    def __int__(self) -> int:
        return -1

    def __enter__(self) -> DummyDeviceType:
        return self

    def __exit__(self, *args: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DummyDeviceType)

    def __hash__(self) -> int:
        return hash(DummyDeviceType)

    def use(self) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""


DummyDevice = DummyDeviceType()


class GpuDevice(_Device):
    """A CUDA device and its CuPy arrays."""

    supported_array_types = (ndarray,)
    device: Device

    @property
    def xp(self) -> Any:
        """CuPy."""
        return cupy

    def __init__(self, device: Any) -> None:
        unavailable()

    @staticmethod
    def from_device_id(device_id: int) -> GpuDevice:
        """The device with a number; RuntimeError where there is none."""
        return GpuDevice(device_id)

    @staticmethod
    def from_array(array: Any) -> GpuDevice | None:
        """The device of a CuPy array, None for anything else."""
        return GpuDevice(array.device) if isinstance(array, ndarray) else None


def get_device_from_id(device_id: int | None) -> Any:
    """The device with a number; DummyDevice for None or -1."""
    if device_id is None or device_id < 0:
        return DummyDevice
    return Device(device_id)


def get_device_from_array(*arrays: Any) -> Any:
    """The device of the first CuPy array, else DummyDevice."""
    return next((x.device for x in arrays if isinstance(x, ndarray)), DummyDevice)


def get_device(*args: Any) -> Any:
    """The device of the first argument that has one: a number, device or array."""
    for arg in args:
        if isinstance(arg, (int, numpy.integer)) and arg >= 0:
            return get_device_from_id(int(arg))
        if isinstance(arg, (Device, ndarray)):
            return getattr(arg, "device", arg)
    return DummyDevice


def to_cpu(array: Any, stream: Any = None) -> Any:
    """An array, or a list or tuple of arrays or None, in the main memory."""
    if isinstance(array, (list, tuple)):
        return type(array)(to_cpu(x, stream) for x in array)
    if isinstance(array, ndarray):
        return array.get(stream)
    return None if array is None else numpy.asarray(array)


def get_array_module(*args: Any) -> Any:
    """NumPy or CuPy, whichever the arrays belong to."""
    return cupy if any(isinstance(arg, ndarray) for arg in args) else numpy


def memoize(for_each_device: bool = False) -> Callable:
    """A decorator that keeps results by arguments."""
    return functools.lru_cache(maxsize=None)


def clear_memo() -> None:
    """Clears the results kept by ``memoize``: none without a device."""


def fuse(*args: Any, **kwargs: Any) -> Callable:
    """A decorator that makes one kernel of an element-wise function on CUDA."""
    if len(args) == 1 and not kwargs and callable(args[0]):
        return args[0]
    return lambda function: function


def get_max_workspace_size() -> int:
    """Bytes that cuDNN may use on top of its operands."""
    return _max_workspace_size


def set_max_workspace_size(size: int) -> None:
    """Sets how many bytes cuDNN may use on top of its operands."""
    global _max_workspace_size
    _max_workspace_size = size


def should_use_cudnn(level: str, lowest_version: int = 0) -> bool:
    """Whether a function for which cuDNN is at ``level`` should use it."""
    _check_level("should_use_cudnn", level)
    return False


def should_use_cudnn_tensor_core(dtype: Any) -> bool:
    """Whether cuDNN should use tensor cores for arrays of ``dtype``."""
    return False


def _check_level(name: str, level: str) -> None:
    if level not in ("==always", ">=auto"):
        raise ValueError(f"{name}: expected '==always' or '>=auto', got {level!r}")


copy = elementwise = reduce = raw = to_gpu = unavailable
get_cudnn_dropout_states = get_cudnn_dropout_states_core = unavailable
