"""Arrays in the memory of the stand-in's devices."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy
from numpy.lib.stride_tricks import as_strided

from cupy import cuda

_TO_DEVICE, _TO_HOST = 1, 2


class ndarray:
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: Any = None,
        strides: Any = None,
        order: str = "C",
    ) -> None:
        self.shape = tuple(shape) if hasattr(shape, "__iter__") else (int(shape),)
        self.dtype = numpy.dtype(dtype)
        if strides is None:
            steps, step = [], self.dtype.itemsize
            for extent in reversed(self.shape):
                steps.append(step)
                step *= max(extent, 1)
            strides = tuple(reversed(steps))
        self.strides = tuple(strides)
        self.data = cuda.alloc(self.nbytes) if memptr is None else memptr

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> cuda.Device:
        return cuda.Device(self.data.device_id)

    @property
    def flags(self) -> Any:
        return self._layout().flags

    @property
    def T(self) -> ndarray:
        return self.transpose()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": None if self.flags.c_contiguous else self.strides,
            "typestr": self.dtype.str,
            "data": (self.data.ptr, False),
            "version": 3,
            "stream": 1,
        }

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(
        self, ufunc: Any, method: str, *args: Any, **kwargs: Any
    ) -> Any:
        out = kwargs.pop("out", None)
        refuse_numpy(args)
        result = getattr(ufunc, method)(*to_host(args), **kwargs)
        if out is None:
            return to_device(result)
        out[0][...] = to_device(result)
        return out[0]

    def __array_function__(
        self, function: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        refuse_numpy(args)
        return to_device(function(*to_host(args), **to_host(kwargs)))

    def get(self, stream: Any = None) -> numpy.ndarray:
        host = self._host()
        cuda.get_current_stream().synchronize()
        return host

    def _host(self) -> numpy.ndarray:
        """The elements, for what CuPy would compute on the device: not a wait."""
        with cuda.uncounted_waits():
            return self._read()

    def _read(self) -> numpy.ndarray:
        low, size = self._extent()
        host = numpy.empty(size, numpy.uint8)
        self._move(host.ctypes.data, self.data.ptr + low, size, _TO_HOST)
        if not self.size:
            return numpy.empty(self.shape, self.dtype)
        one = numpy.frombuffer(host, self.dtype, 1, -low)
        return numpy.array(as_strided(one, self.shape, self.strides), order="C")

    def set(self, arr: numpy.ndarray, stream: Any = None) -> None:
        self._write(arr)

    def _write(self, values: Any) -> None:
        """Only the elements themselves change, not what lies between them."""
        values = numpy.array(
            numpy.broadcast_to(values, self.shape), self.dtype, order="C"
        )
        low, size = self._extent()
        host = numpy.empty(size, numpy.uint8)
        if not self.flags.c_contiguous:
            with cuda.uncounted_waits():
                self._move(host.ctypes.data, self.data.ptr + low, size, _TO_HOST)
        if self.size:
            one = numpy.frombuffer(host, self.dtype, 1, -low)
            as_strided(one, self.shape, self.strides)[...] = values
        self._move(self.data.ptr + low, host.ctypes.data, size, _TO_DEVICE)

    def _extent(self) -> tuple[int, int]:
        """The first byte, counted from the first element, and how many there are."""
        if not self.size:
            return 0, 0
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides)]
        low = sum(s for s in steps if s < 0)
        return low, sum(s for s in steps if s > 0) - low + self.itemsize

    def _move(self, to: int, start: int, size: int, kind: int) -> None:
        with self.device:
            status = cuda.runtime.cudaMemcpyAsync(
                ctypes.c_void_p(to),
                ctypes.c_void_p(start),
                ctypes.c_size_t(size),
                kind,
                ctypes.c_void_p(cuda.get_current_stream().ptr),
            )
        cuda.check(status)

    def _layout(self) -> numpy.ndarray:
        return as_strided(numpy.empty(0, self.dtype), self.shape, self.strides)

    def _at(self, layout: numpy.ndarray, view: numpy.ndarray) -> ndarray:
        def address(x: numpy.ndarray) -> int:
            return x.__array_interface__["data"][0]

        pointer = cuda.MemoryPointer(self.data.mem, 0)
        pointer.ptr = self.data.ptr + address(view) - address(layout)
        return ndarray(view.shape, view.dtype, pointer, view.strides)

    def transpose(self, *axes: Any) -> ndarray:
        layout = self._layout()
        return self._at(layout, layout.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        layout = self._layout()
        return self._at(layout, layout.swapaxes(axis1, axis2))

    def reshape(self, *shape: Any) -> ndarray:
        if self.flags.c_contiguous:
            layout = numpy.broadcast_to(numpy.empty((), self.dtype), self.shape)
            extents = layout.reshape(*shape).shape
            return ndarray(extents, self.dtype, self.data)
        return to_device(self._host().reshape(*shape))

    def ravel(self, order: str = "C") -> ndarray:
        return self.reshape(-1)

    def astype(self, dtype: Any, copy: bool = True) -> ndarray:
        if not copy and self.dtype == dtype:
            return self
        return to_device(self._host().astype(dtype))

    def copy(self, order: str = "C") -> ndarray:
        return to_device(self._host())

    def fill(self, value: Any) -> None:
        self[...] = value

    def item(self) -> Any:
        return self.get().item()

    def __getitem__(self, key: Any) -> ndarray:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, (ndarray, numpy.ndarray, list)) for k in keys):
            return to_device(self._host()[to_host(key)])
        layout = self._layout()
        if not any(k is ... for k in keys):
            keys = (*keys, ...)
        return self._at(layout, layout[keys])

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        if isinstance(value, numpy.ndarray) and value.ndim:
            raise TypeError("expected an array of CuPy, got NumPy's")
        value = to_host(value)
        if any(isinstance(k, (ndarray, numpy.ndarray, list)) for k in keys):
            host = self._host()
            host[to_host(key)] = value
            self._write(host)
        else:
            self[key]._write(value)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __reduce__(self) -> Any:
        return to_device, (self.get(),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(numpy.empty(0), name)
        if not callable(method):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            refuse_numpy(args)
            return to_device(
                getattr(self._host(), name)(*to_host(args), **to_host(kwargs))
            )

        return call


def _defers_to(other: Any) -> bool:
    """Whether operators leave the operation to those of ``other``."""
    if isinstance(other, (ndarray, int, float, numpy.generic, numpy.ndarray)):
        return False
    return getattr(other, "__array_ufunc__", None) is None


def _values(other: Any) -> Any:
    """What CuPy takes of an object that has an array in a device's memory."""
    described = getattr(other, "__cuda_array_interface__", None)
    if isinstance(other, ndarray) or described is None:
        return other
    return ndarray(
        described["shape"],
        described["typestr"],
        cuda.MemoryPointer(cuda.UnownedMemory(described["data"][0], 0, other, 0), 0),
        described["strides"],
    )


def _operator(name: str) -> Any:
    def operate(self: ndarray, *others: Any) -> Any:
        refuse_numpy(others)
        if any(_defers_to(x) for x in others):
            return NotImplemented
        others = tuple(map(_values, others))
        result = getattr(self._host(), name)(*to_host(others))
        return result if result is NotImplemented else to_device(result)

    return operate


def _in_place(name: str) -> Any:
    operate = _operator(f"__{name}__")

    def update(self: ndarray, other: Any) -> ndarray:
        self[...] = operate(self, other)
        return self

    return update


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "pow",
    "mod",
    "matmul",
    "and",
    "or",
    "xor",
):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(ndarray, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(ndarray, f"__i{_name}__", _in_place(_name))
for _name in ("lt", "le", "eq", "ne", "gt", "ge", "neg", "abs", "invert"):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


def refuse_numpy(x: Any) -> None:
    """TypeError for arrays of NumPy, also in lists and tuples; numbers are taken."""
    if isinstance(x, (list, tuple)):
        for item in x:
            refuse_numpy(item)
    elif isinstance(x, numpy.ndarray) and x.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")


def to_device(x: Any) -> Any:
    """NumPy's arrays and numbers, also in lists and tuples, as arrays on the device."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(to_device, x))
    if not isinstance(x, (numpy.ndarray, numpy.generic)):
        return x
    new = ndarray(x.shape, x.dtype)
    new._write(x)
    return new


def to_host(x: Any) -> Any:
    """Arrays on the device, also in containers, as NumPy's."""
    if isinstance(x, dict):
        return {key: to_host(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(map(to_host, x))
    return x._host() if isinstance(x, ndarray) else x
