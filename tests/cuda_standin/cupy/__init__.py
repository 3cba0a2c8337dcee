"""CuPy's interface on the stand-in for CUDA, for tests of what renga does with it.

Functions copy their arguments to the host, call NumPy's of the same name, and copy the
result to the device. As in CuPy, NumPy's arrays are not taken where CuPy's are wanted,
and arrays become NumPy's only by ``get()``.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy

from cupy import cuda
from cupy.arrays import ndarray, refuse_numpy, to_device, to_host

__version__ = "14.0.0"
__all__ = ["cuda", "ndarray"]


def array(a: Any, dtype: Any = None, copy: bool = True, order: str = "K") -> ndarray:
    if isinstance(a, ndarray):
        if not copy and (dtype is None or a.dtype == dtype):
            return a
        return to_device(numpy.array(to_host(a), dtype, order="C"))
    if isinstance(a, (list, tuple)):
        a = to_host(a)
    return to_device(numpy.array(a, dtype))


def asarray(a: Any, dtype: Any = None, order: Any = None) -> ndarray:
    return array(a, dtype, copy=False)


def asnumpy(a: Any, stream: Any = None) -> numpy.ndarray:
    return a.get() if isinstance(a, ndarray) else numpy.asarray(a)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return ndarray(shape, dtype)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Sets the memory on the current stream, as CuPy does."""
    new = ndarray(shape, dtype)
    address, size = ctypes.c_void_p(new.data.ptr), ctypes.c_size_t(new.nbytes)
    stream = ctypes.c_void_p(cuda.get_current_stream().ptr)
    cuda.check(cuda.runtime.cudaMemsetAsync(address, 0, size, stream))
    return new


def empty_like(a: ndarray, dtype: Any = None) -> ndarray:
    return ndarray(a.shape, a.dtype if dtype is None else dtype)


def copyto(dst: ndarray, src: Any, casting: Any = "same_kind") -> None:
    if not numpy.can_cast(getattr(src, "dtype", type(src)), dst.dtype, casting):
        raise TypeError(f"copyto: expected {dst.dtype}, got {src.dtype}")
    dst[...] = src


def get_array_module(*args: Any) -> Any:
    import cupy

    return cupy if any(isinstance(x, ndarray) for x in args) else numpy


def fuse(kernel_name: str | None = None) -> Any:
    def decorate(function: Any) -> Any:
        name = kernel_name or function.__name__
        if not name.isidentifier():
            raise RuntimeError(f"fuse: expected the name of a kernel, got {name!r}")
        return function

    return decorate


class ElementwiseKernel:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.arguments = args, kwargs


class ReductionKernel(ElementwiseKernel):
    pass


class RawKernel(ElementwiseKernel):
    pass


class _Random:
    def __getattr__(self, name: str) -> Any:
        draw = getattr(numpy.random, name)
        return lambda *args, **kwargs: to_device(draw(*args, **kwargs))


random = _Random()


def __getattr__(name: str) -> Any:
    found = getattr(numpy, name)
    if isinstance(found, type) or not callable(found):
        return found

    @functools.wraps(found)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        refuse_numpy(args)
        result = found(*to_host(args), **to_host(kwargs))
        if out is None:
            return to_device(result)
        out[...] = to_device(result)
        return out

    return call
