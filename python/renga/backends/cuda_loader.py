"""Loading of the CUDA plugin and of CuPy, when they are first used."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, NoReturn

from renga import _core


def load_plugin() -> ModuleType:
    """The compiled plugin; loading it registers the CUDA devices in the core.

    Their arrays become CuPy's where CuPy is installed.

    Raises:
        RuntimeError: it was not built, or a library, the driver or a device is missing.
    """
    names = loaded()
    if not names.available:
        raise RuntimeError(f"cuda: {names.reason}")
    plugin: ModuleType = names.plugin
    return plugin


def check_cuda_available() -> None:
    """Raises RuntimeError where there are no CUDA devices."""
    load_plugin()


def load_nccl() -> ModuleType:
    """The compiled module of NCCL; ImportError where it is missing, or NCCL is."""
    return importlib.import_module("renga._communicators_nccl")


def nccl_unavailable_reason() -> str:
    """Why NCCL cannot be used here; empty if it can."""
    try:
        return str(load_nccl().unavailable_reason())
    except ModuleNotFoundError:
        return "renga was built without RENGA_NCCL"
    except ImportError as error:
        return _reason_of(error)


def _reason_of(error: ImportError) -> str:
    """What is missing for a compiled module, and what has NVIDIA's libraries."""
    of_nvidia = "cannot open shared object file" in str(error)
    return f"{error}{'; `pip install renga[cuda]` has it' if of_nvidia else ''}"


def unavailable(*args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError, as every function that needs CuPy does without it."""
    check_cuda_available()
    raise RuntimeError("cuda: expected CuPy, which is not installed")


class _NoArray:
    """The type of arrays on CUDA devices where there are none."""


class _Nothing:
    """A class of CuPy's without CuPy."""

    __init__ = unavailable


@functools.cache
def loaded() -> SimpleNamespace:
    """What depends on the plugin and on CuPy, both of which it loads."""
    names = SimpleNamespace(
        available=False,
        cudnn_enabled=False,
        cupy=object(),
        ndarray=_NoArray,
        Device=_Nothing,
        Stream=_Nothing,
        Event=_Nothing,
        computing_on=lambda stream, device: contextlib.nullcontext(),
    )
    if importlib.util.find_spec("renga._cuda") is None:
        names.reason = "expected a renga built with RENGA_CUDA (`tools/cuda`), got none"
        return names
    try:
        names.plugin = importlib.import_module("renga._cuda")
    except ImportError as error:
        names.reason = _reason_of(error)
        return names
    names.available = names.cudnn_enabled = True
    # Scripts ask CuPy's modules of cuDNN for these.
    names.libcudnn = SimpleNamespace(getVersion=names.plugin.cudnn_version)
    names.cudnn = SimpleNamespace(
        getVersion=names.plugin.cudnn_version, cudnn=names.libcudnn
    )
    make: Callable[[Any], Any]
    try:
        cupy: Any = importlib.import_module("cupy")
    except ImportError:
        from renga.backends import cuda_arrays, cuda_device

        names.cupy, names.ndarray = cuda_arrays, cuda_arrays.ndarray
        names.Device = cuda_device.Device
        make, owner, follow = cuda_arrays.make, cuda_arrays.owner, cuda_arrays.follow
    else:
        from renga.backends.cupy_arrays import CupyArrays

        arrays = CupyArrays(cupy, names.plugin)
        names.cupy, names.ndarray = cupy, cupy.ndarray
        names.Device = cupy.cuda.Device
        names.Stream, names.Event = cupy.cuda.Stream, cupy.cuda.Event
        names.computing_on = arrays.computing_on
        make, owner, follow = arrays.make, arrays.owner, arrays.follow
        cupy.cuda.set_allocator(arrays.allocate)
    _core.set_device_arrays(names.ndarray, make, owner, follow)
    return names
