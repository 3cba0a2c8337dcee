"""Arrays on CUDA devices where CuPy is not installed, and the module that makes them.

Just enough for models to be trained, saved and moved: the module stands for ``xp``. For
more there are the functions of renga, which take these arrays, and CuPy.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy
from numpy.lib.stride_tricks import as_strided

from renga import _core
from renga._core import Variable
from renga.backends.cuda_device import Device, current_device, number_of
from renga.core.types import Array, DTypeLike

# Their signatures do not name this module's arrays.
_untyped: Any = _core
_ops: Any = _core.ops


class ndarray:
    """An array in the memory of a CUDA device."""

    __array_priority__ = 100
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("_owner", "_address", "shape", "strides", "dtype", "__weakref__")

    def __init__(self, shape: int | Sequence[int], dtype: DTypeLike = float) -> None:
        device = f"cuda:{current_device().id}"
        name = numpy.dtype(dtype).name
        self._describe(_core.empty_variable(_extents(shape), name, device))

    def _describe(self, owner: Any) -> None:
        described = owner.__cuda_array_interface__
        self._owner = owner
        self._address: int = described["data"][0]
        self.shape: tuple[int, ...] = described["shape"]
        self.strides: tuple[int, ...] = described["strides"]
        self.dtype = numpy.dtype(described["typestr"])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "data": (self._address, False),
            "version": 3,
        }

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
        raise TypeError("expected array.get() for a copy in the main memory")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    @property
    def flags(self) -> Any:
        """NumPy's flags of an array with these strides."""
        return self._layout().flags

    @property
    def memory(self) -> object:
        """What keeps the memory, which views of the array have in common."""
        return self._owner

    @property
    def device(self) -> Device:
        """The device whose memory it is."""
        return Device(number_of(self._owner))

    @property
    def T(self) -> ndarray:
        """The axes in reverse order."""
        layout = self._layout()
        return self._at(layout, layout.T)

    def get(self, stream: object = None) -> numpy.ndarray:
        """A copy in the main memory."""
        variable = _core.Variable(self, requires_grad=False)
        variable.move_to(_core.host_name())
        return variable.array

    def set(self, arr: object, stream: object = None) -> None:
        """Copies ``arr`` into this array."""
        self[...] = arr

    def item(self) -> bool | int | float:
        """The only element as a Python number; waits for the device."""
        return self.get().item()

    def astype(self, dtype: DTypeLike, copy: bool = True) -> ndarray:
        """The elements in another dtype."""
        if not copy and self.dtype == dtype:
            return self
        new = empty_like(self, dtype)
        new[...] = self
        return new

    def copy(self) -> ndarray:
        """A copy in fresh memory."""
        return self.astype(self.dtype)

    def fill(self, value: object) -> None:
        """Sets every element to a number."""
        self[...] = value

    def reshape(self, *shape: Any) -> ndarray:
        """The same elements in another shape, without copying where strides allow."""
        if len(shape) == 1 and hasattr(shape[0], "__iter__"):
            (shape,) = shape
        return _ops.reshape(self, shape).array

    def ravel(self, order: str = "C") -> ndarray:
        """The elements along one axis; ``order`` "K" allows any order."""
        return self.reshape(-1)

    def __getitem__(self, key: Any) -> ndarray:
        """A view; integers, slices, None and ``...`` only."""
        keys = key if isinstance(key, tuple) else (key,)
        if not all(
            k is None or k is ... or isinstance(k, (int, numpy.integer, slice))
            for k in keys
        ):
            raise IndexError(
                "expected integers and slices for arrays on a device without CuPy, "
                f"got {key!r}"
            )
        layout = self._layout()
        return self._at(
            layout, layout[(*keys, ...)] if ... not in keys else layout[keys]
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self if key is ... else self[key]
        if isinstance(value, _core.Variable):
            raise TypeError("expected an array or a number, got a Variable")
        if numpy.isscalar(value) and self.dtype.kind == "f":
            _untyped.fill_array(target, value)
        else:
            _untyped.copy_array(value, target)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __repr__(self) -> str:
        return repr(self.get())

    def __reduce__(self) -> Any:
        return asarray, (self.get(),)

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __add__(self, other: Any) -> Any:
        return _apply(operator.add, self, other)

    def __sub__(self, other: Any) -> Any:
        return _apply(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _apply(lambda x, y: y - x, self, other)

    def __mul__(self, other: Any) -> Any:
        return _apply(operator.mul, self, other)

    def __truediv__(self, other: Any) -> Any:
        return _apply(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply(lambda x, y: y / x, self, other)

    def __neg__(self) -> ndarray:
        return _ops.negative(self).array

    __radd__ = __add__
    __rmul__ = __mul__

    def __iadd__(self, other: Any) -> ndarray:
        return self._set(self + other)

    def __isub__(self, other: Any) -> ndarray:
        return self._set(self - other)

    def __imul__(self, other: Any) -> ndarray:
        return self._set(self * other)

    def __itruediv__(self, other: Any) -> ndarray:
        return self._set(self / other)

    def _set(self, value: ndarray) -> ndarray:
        self[...] = value
        return self

    def _layout(self) -> numpy.ndarray:
        """A NumPy array with these strides, whose elements do not exist."""
        return as_strided(numpy.empty(0, self.dtype), self.shape, self.strides)

    def _at(self, layout: numpy.ndarray, view: numpy.ndarray) -> ndarray:
        """What ``view``, one of ``layout``, is of this array."""
        new = ndarray.__new__(ndarray)
        new._owner = self._owner
        new._address = self._address + _address(view) - _address(layout)
        new.shape, new.strides, new.dtype = view.shape, view.strides, view.dtype
        return new


def _apply(compute: Callable, x: ndarray, other: Any) -> Any:
    """``compute`` of ``x`` and an array or a number, which follows the dtype of x."""
    if isinstance(other, _core.Variable):
        return NotImplemented
    return compute(_core.Variable(x, requires_grad=False), other).array


def make(variable: object) -> ndarray:
    """The array over a Variable's memory."""
    new = ndarray.__new__(ndarray)
    new._describe(variable)
    return new


def owner(array: ndarray) -> Variable | None:
    """The Variable whose memory ``array`` is part of."""
    return array._owner


def follow(array: ndarray) -> None:
    """Nothing: without CuPy, arrays are used on the stream on which renga computes."""


def _extents(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, Sequence) else (shape,)


def _address(x: numpy.ndarray) -> int:
    address: int = x.__array_interface__["data"][0]
    return address


def empty(shape: int | Sequence[int], dtype: DTypeLike = float) -> ndarray:
    """An array whose elements are not set."""
    return ndarray(shape, dtype)


def full(
    shape: int | Sequence[int],
    fill_value: float | Array,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """An array of one number."""
    new = ndarray(shape, numpy.asarray(fill_value).dtype if dtype is None else dtype)
    new[...] = fill_value
    return new


def zeros(shape: int | Sequence[int], dtype: DTypeLike = float) -> ndarray:
    """An array of zeros."""
    return full(shape, 0, dtype)


def ones(shape: int | Sequence[int], dtype: DTypeLike = float) -> ndarray:
    """An array of ones."""
    return full(shape, 1, dtype)


def empty_like(a: ndarray, dtype: DTypeLike | None = None) -> ndarray:
    """An array of the shape and on the device of ``a``."""
    with a.device:
        return ndarray(a.shape, a.dtype if dtype is None else dtype)


def full_like(
    a: ndarray, fill_value: float | Array, dtype: DTypeLike | None = None
) -> ndarray:
    """The same, of one number."""
    new = empty_like(a, dtype)
    new[...] = fill_value
    return new


def zeros_like(a: ndarray, dtype: DTypeLike | None = None) -> ndarray:
    """The same, of zeros."""
    return full_like(a, 0, dtype)


def ones_like(a: ndarray, dtype: DTypeLike | None = None) -> ndarray:
    """The same, of ones."""
    return full_like(a, 1, dtype)


def asarray(a: object, dtype: DTypeLike | None = None) -> ndarray:
    """An array on the device; ``a`` itself if it is one of this dtype."""
    if isinstance(a, ndarray):
        return a if dtype is None else a.astype(dtype, copy=False)
    values = numpy.asarray(a, dtype)
    new = ndarray(values.shape, values.dtype)
    new[...] = values
    return new


def array(a: object, dtype: DTypeLike | None = None) -> ndarray:
    """A copy on the device."""
    new = asarray(a, dtype)
    return new.copy() if new is a else new


def copyto(
    dst: ndarray,
    src: Array | ndarray | float,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
) -> None:
    """Copies ``src``, stretched to its shape, into ``dst``."""
    kind = getattr(src, "dtype", None) or numpy.min_scalar_type(src)
    if not numpy.can_cast(kind, dst.dtype, casting):
        raise TypeError(f"copyto: expected a dtype like {dst.dtype}, got {kind}")
    dst[...] = src


def sqrt(x: ndarray) -> ndarray:
    """The square root of each element."""
    return _ops.sqrt(x).array


def sign(x: ndarray) -> ndarray:
    """-1, 0 or 1 for each element."""
    return _ops.sign(x).array


def clip(a: ndarray, a_min: float, a_max: float, out: ndarray | None = None) -> ndarray:
    """Each element, or the nearer bound outside of the bounds."""
    y = _ops.clip(a, a_min, a_max).array
    return y if out is None else out._set(y)


def __getattr__(name: str) -> Any:
    found = getattr(numpy, name, None)
    if isinstance(found, (type, float)) or name == "newaxis":
        return found
    raise AttributeError(
        f"{name}: expected CuPy, which is not installed; without it there are the "
        "functions of renga"
    )
