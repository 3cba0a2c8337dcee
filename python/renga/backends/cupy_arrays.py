"""CuPy's arrays over the memory of Variables on CUDA devices, and back."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

from renga import _core
from renga.backends.cuda_device import number_of


def make_with(cupy: ModuleType) -> Callable[[Any], Any]:
    """The function that makes CuPy's array over a Variable's memory."""

    def make(variable: Any) -> Any:
        described = variable.__cuda_array_interface__
        return cupy.ndarray(
            described["shape"],
            described["typestr"],
            _pointer(cupy, variable, _bytes(variable)),
            strides=described["strides"],
        )

    return make


def owner(array: Any) -> Any:
    """The Variable whose memory CuPy's ``array`` is part of; None for CuPy's own."""
    kept = getattr(array.data.mem, "_owner", None)
    return kept if isinstance(kept, _core.Variable) else None


def share_memory(cupy: ModuleType) -> None:
    """Makes CuPy take memory from the core, so that there is one pool of it."""

    def allocate(size: int) -> Any:
        device = f"cuda:{cupy.cuda.Device().id}"
        return _pointer(cupy, _core.empty_variable((size,), "uint8", device), size)

    cupy.cuda.set_allocator(allocate)


def _bytes(variable: Any) -> int:
    return int(variable.size * variable.dtype.itemsize)


def _pointer(cupy: ModuleType, variable: Any, size: int) -> Any:
    address = variable.__cuda_array_interface__["data"][0]
    memory = cupy.cuda.UnownedMemory(address, size, variable, number_of(variable))
    return cupy.cuda.MemoryPointer(memory, 0)
