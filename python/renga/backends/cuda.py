"""CUDA devices. Without one, every name exists and raises RuntimeError when used.

The plugin and CuPy are loaded when a name that depends on them is first used:
``available``, ``cudnn_enabled``, ``cupy``, ``ndarray``, ``Device``, ``Stream``,
``Event``. ``cudnn`` and ``libcudnn`` exist where there is a device.
"""

from __future__ import annotations

import contextlib
import functools
from types import ModuleType
from typing import Any, Callable

import numpy

from renga import _core
from renga.backends.cuda_loader import (
    check_cuda_available,
    load_plugin as load_plugin,
    loaded,
    unavailable,
)
from renga.backends.device import Device as _Device, DeviceLike
from renga.core.configuration import config
from renga.core.types import Array, DTypeLike

_OF_CUPY = {
    "available",
    "cudnn",
    "cudnn_enabled",
    "cupy",
    "libcudnn",
    "ndarray",
    "Device",
    "Stream",
    "Event",
}


def __getattr__(name: str) -> Any:
    if name in _OF_CUPY and hasattr(loaded(), name):
        return getattr(loaded(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *filter(lambda x: hasattr(loaded(), x), _OF_CUPY)})


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
    """A CUDA device and its arrays: CuPy's, or without CuPy renga's own."""

    def __init__(self, device: Any) -> None:
        check_cuda_available()
        self.device = loaded().Device(int(device))

    @property
    def supported_array_types(self) -> tuple[type, ...]:  # type: ignore[override]
        """The type of arrays on CUDA devices."""
        return (loaded().ndarray,)

    @property
    def xp(self) -> ModuleType:
        """CuPy, or without it :mod:`renga.backends.cuda_arrays`."""
        return loaded().cupy

    @property
    def name(self) -> str:
        """``@cupy:`` and the number."""
        return f"@cupy:{self.device.id}"

    def __repr__(self) -> str:
        return f"<GpuDevice (cupy):{self.device.id}>"

    @staticmethod
    def from_device_id(device_id: int) -> GpuDevice:
        """The device with a number; RuntimeError where there is none."""
        if not device_id >= 0:
            raise ValueError(f"GpuDevice: expected a number from 0, got {device_id}")
        return GpuDevice(device_id)

    @staticmethod
    def from_array(array: object) -> GpuDevice | None:
        """The device of a CUDA array, None for anything else."""
        if isinstance(array, loaded().ndarray):
            return GpuDevice(array.device.id)
        return None

    def create_context(self) -> contextlib.AbstractContextManager[object]:
        """A context in which new arrays are made on this device."""
        return loaded().Device(self.device.id)

    def use(self) -> None:
        """Makes this the device of the thread."""
        self.device.use()

    def is_array_supported(self, array: object) -> bool:
        """Whether ``array`` is on this device."""
        return isinstance(array, loaded().ndarray) and array.device.id == self.device.id

    def send_array(self, array: Array) -> Array:
        if self.is_array_supported(array):
            return array
        if isinstance(array, loaded().ndarray):
            variable = _core.Variable(array, requires_grad=False)
            variable.move_to(f"cuda:{self.device.id}")
        else:
            variable = self.upload(numpy.asarray(array))
            _core.wait_for_upload(variable)
        return variable.array

    def upload(self, array: numpy.ndarray) -> _core.Variable:
        """Starts a copy, which may be used after ``_core.wait_for_upload``."""
        return _core.upload(array, f"cuda:{self.device.id}")

    def pinned_empty(self, shape: tuple[int, ...], dtype: numpy.dtype) -> numpy.ndarray:
        """An array in the main memory from which uploads need no other copy."""
        return _core.pinned_empty(shape, dtype, f"cuda:{self.device.id}")


def get_device_from_id(device_id: int | None) -> Any:
    """The device with a number; DummyDevice for None or -1."""
    if device_id is None or device_id < 0:
        return DummyDevice
    check_cuda_available()
    return loaded().Device(int(device_id))


def get_device_from_array(*arrays: object) -> Any:
    """The device of the first CUDA array, else DummyDevice."""
    kind = loaded().ndarray
    return next((x.device for x in arrays if isinstance(x, kind)), DummyDevice)


def get_device(*args: object) -> Any:
    """The device of the first argument that has one: a number, device or array."""
    names = loaded()
    for arg in args:
        if isinstance(arg, (int, numpy.integer)) and arg >= 0:
            return get_device_from_id(int(arg))
        if isinstance(arg, (names.Device, names.ndarray)):
            return getattr(arg, "device", arg)
    return DummyDevice


def to_cpu(array: object, stream: object = None) -> Any:
    """Arrays as ``to_gpu`` takes them, in main memory; raises a device's failure.

    Raises:
        TypeError: a Variable.
    """
    if isinstance(array, (list, tuple)):
        return type(array)(to_cpu(x, stream) for x in array)
    if isinstance(array, loaded().ndarray):
        copied = array.get(stream)
        if loaded().available:
            _core.throw_failures(f"cuda:{array.device.id}")
        return copied
    if hasattr(array, "device_name"):
        raise TypeError(f"to_cpu: expected an array, got {type(array).__name__}")
    return None if array is None else numpy.asarray(array)


def to_gpu(array: object, device: object = None, stream: object = None) -> Any:
    """An array, or a list or tuple of arrays or None, on a device.

    Args:
        device: a device or its number; by default the current one.
        stream: not used: copies have one of their own, for which computation waits.
    """
    check_cuda_available()
    target = GpuDevice(loaded().Device() if device is None else device)
    return target.send(array) if array is not None else None


def copy(
    array: Array,
    out: Array | None = None,
    out_device: DeviceLike | None = None,
    stream: object = None,
) -> Array:
    """A copy of a CUDA array: into ``out``, or a new one on ``out_device``."""
    check_cuda_available()
    if out is not None:
        out[...] = to_gpu(array, out.device)
        return out
    device = array.device if out_device is None else out_device
    sent = to_gpu(array, device)
    return sent.copy() if sent is array else sent


def get_array_module(*args: object) -> ModuleType:
    """NumPy or CuPy, whichever the arrays or Variables belong to."""
    names = loaded()
    for arg in args:
        if isinstance(arg, _core.Variable):
            arg = arg.array
        if isinstance(arg, names.ndarray):
            return names.cupy
    return numpy


def memoize(for_each_device: bool = False) -> Callable:
    """A decorator that keeps results by arguments, and by device if asked."""

    def decorate(function: Callable) -> Callable:
        kept = functools.lru_cache(maxsize=None)(
            lambda device, args, kwargs: function(*args, **dict(kwargs))
        )
        _memos.append(kept)

        @functools.wraps(function)
        def memoized(*args: object, **kwargs: object) -> Any:
            device = loaded().Device().id if for_each_device else None
            return kept(device, args, tuple(sorted(kwargs.items())))

        return memoized

    return decorate


_memos: list[Any] = []


def clear_memo() -> None:
    """Clears the results kept by ``memoize``."""
    for memo in _memos:
        memo.cache_clear()


def cupy_function(name: str) -> Any:
    """A member of CuPy; RuntimeError without CuPy."""
    check_cuda_available()
    found = getattr(loaded().cupy, name, None)
    return unavailable() if found is None else found


@memoize()
def _kernel(kind: str, *args: Any, **kwargs: Any) -> Any:
    return cupy_function(kind)(*args, **kwargs)


def elementwise(
    in_params: str, out_params: str, operation: str, name: str, **kwargs: object
) -> Any:
    """CuPy's ElementwiseKernel, compiled once for the same arguments."""
    return _kernel(
        "ElementwiseKernel", in_params, out_params, operation, name, **kwargs
    )


def reduce(
    in_params: str,
    out_params: str,
    map_expr: str,
    reduce_expr: str,
    post_map_expr: str,
    identity: object,
    name: str,
    **kwargs: object,
) -> Any:
    """CuPy's ReductionKernel, compiled once for the same arguments."""
    expressions = (map_expr, reduce_expr, post_map_expr)
    return _kernel(
        "ReductionKernel", in_params, out_params, *expressions, identity, name, **kwargs
    )


def raw(code: str, name: str, *args: object, **kwargs: object) -> Any:
    """CuPy's RawKernel, compiled once for the same arguments."""
    return _kernel("RawKernel", code, name, *args, **kwargs)


def fuse(*args: object, **kwargs: object) -> Callable:
    """A decorator that makes one kernel of an element-wise function of CUDA arrays.

    On NumPy's arrays the function runs as it is.
    """

    def decorate(function: Callable) -> Callable:
        if not loaded().available:
            return function
        fused: list[Callable] = []

        @functools.wraps(function)
        def call(*xs: object) -> Any:
            if not any(isinstance(x, loaded().ndarray) for x in xs):
                return function(*xs)
            if not fused:
                # CuPy names the kernel after the function, a lambda too.
                named = function.__name__.isidentifier()
                own = {} if named else {"kernel_name": f"fused_{id(function)}"}
                fused.append(cupy_function("fuse")(**{**own, **kwargs})(function))
            return fused[0](*xs)

        return call

    if len(args) == 1 and not kwargs and callable(args[0]):
        return decorate(args[0])
    return decorate


def get_max_workspace_size() -> int:
    """Bytes that cuDNN may use on top of its operands."""
    size: int = _core.process_settings.cudnn_workspace_bytes
    return size


def set_max_workspace_size(size: int) -> None:
    """Sets how many bytes cuDNN may use on top of its operands."""
    _core.process_settings.cudnn_workspace_bytes = size


def should_use_cudnn(level: str, lowest_version: int = 0) -> bool:
    """Whether ``config.use_cudnn``, at least at ``level``, allows cuDNN."""
    _check_level("should_use_cudnn", level)
    allowed = ("always",) if level == "==always" else ("always", "auto")
    return loaded().cudnn_enabled and config.use_cudnn in allowed


def should_use_cudnn_tensor_core(dtype: DTypeLike) -> bool:
    """Whether cuDNN should use tensor cores for arrays of ``dtype``.

    That is ``config.use_cudnn_tensor_core``: "always", "never", or "auto" for float16.
    """
    chosen = config.use_cudnn_tensor_core
    if chosen == "auto":
        chosen = "always" if numpy.dtype(dtype) == numpy.float16 else "never"
    return loaded().cudnn_enabled and chosen == "always"


def _check_level(name: str, level: str) -> None:
    if level not in ("==always", ">=auto"):
        raise ValueError(f"{name}: expected '==always' or '>=auto', got {level!r}")


get_cudnn_dropout_states = get_cudnn_dropout_states_core = unavailable
