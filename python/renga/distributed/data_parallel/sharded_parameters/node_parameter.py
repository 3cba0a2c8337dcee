"""Parameters whose numbers are elsewhere, until Python code asks for their arrays."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import numpy
from numpy.lib.stride_tricks import as_strided

from renga import _core, backend
from renga.parameter import Parameter
from renga.variable import Variable

if TYPE_CHECKING:
    from renga.communicators.communicator import Array

_SHARED = "_shared_array"  # key of the array that is no one rank's own
_UNIT = "_unit"  # key of what gathers the numbers, if they are not in shared memory
_ARRAY: Any = vars(Variable)["array"]  # the property


class PlacedParameter:
    """What classes of parameters have in common whose array is not this rank's own.

    Functions read the numbers where they are. Whoever gets ``array`` may write to it or
    keep it, so from then on the parameter has a copy, which is this rank's alone.
    """

    __slots__ = ()

    @property
    def array(self: Any) -> Any:
        """The array, which is this rank's own from the first access on."""
        x = _ARRAY.__get__(self)
        if x is vars(self).get(_SHARED):
            unit = vars(self).get(_UNIT)
            if unit is not None:
                x = unit.read(self)
                if unit.is_borrowed:
                    return x
            x = x.copy()
            _ARRAY.__set__(self, x)
        return x

    @array.setter
    def array(self, array: Any) -> None:
        _ARRAY.__set__(self, array)

    data = raw_array = array

    @property
    def device(self: Any) -> Any:
        """The device of the array, which no access makes this rank's own."""
        if is_shared(self):
            return backend.get_device_from_array(vars(self)[_SHARED])
        return super().device  # type: ignore[misc]

    def _to_device(self: Any, device: str) -> None:
        self.array  # noqa: B018 (makes the numbers this rank's own)
        super()._to_device(device)  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        """As of a parameter that was never shared: a copy is no rank's shard."""
        reduced: Any = super().__reduce__()
        make, (cls, *content), state = reduced
        state = {k: x for k, x in (state or {}).items() if k not in (_SHARED, _UNIT)}
        return make, (cls._plain_class, *content), state or None


@functools.cache
def _shared_class(cls: Any) -> type:
    """The class of sharded parameters that are otherwise of ``cls``."""

    class Shared(PlacedParameter, cls):  # type: ignore[misc]
        _plain_class = cls

    Shared.__name__, Shared.__qualname__ = cls.__name__, cls.__qualname__
    Shared.__module__ = cls.__module__
    return Shared


def is_shared(param: Parameter) -> bool:
    """Whether functions read numbers of ``param`` that are not this rank's own copy."""
    shared = vars(param).get(_SHARED)
    return shared is not None and is_at(param, shared)


def is_at(param: Parameter, array: Array) -> bool:
    """Whether the numbers of ``param`` are those of ``array``."""
    if not param.is_initialized:
        return False
    own, other = _core.addresses([param, array])
    return bool(own == other)


def unit_of(param: Parameter) -> Any:
    """What gathers the numbers of ``param``; None if they are somewhere in memory."""
    unit = vars(param).get(_UNIT)
    return unit if unit is not None and is_shared(param) else None


def place(param: Parameter, array: Array, is_shared: bool) -> None:
    """Makes ``array`` the numbers of a parameter.

    If something else refers to the array that the parameter has, it stays, and gets the
    values: whoever holds it sees updates, as of any parameter.

    Args:
        param: the parameter.
        array: of its shape and dtype.
        is_shared: whether other ranks have the same memory.
    """
    if is_at(param, array):
        return
    if isinstance(array, numpy.ndarray) and not param._owns_array:
        param.array[...] = array
        return
    if is_shared:
        put(param, array)
    else:
        param.array = array


def put(param: Parameter, array: Array, unit: Any = None) -> None:
    """Has functions read ``array``, of which Python code gets copies.

    Args:
        param: the parameter.
        array: of its shape and dtype.
        unit: what gathers the numbers before a function reads them, if ``array`` has
            none.
    """
    if not isinstance(param, PlacedParameter):
        cls: Any = type(param)
        param.__class__ = _shared_class(cls)
    vars(param).update({_SHARED: array, _UNIT: unit})
    _ARRAY.__set__(param, array)


def is_held(param: Parameter) -> bool:
    """Whether something else refers to the array of a parameter, or to its memory."""
    if isinstance(_ARRAY.__get__(param), numpy.ndarray):
        return not param._owns_array
    x = _ARRAY.__get__(param)
    # The parameter has the array; this function and its call have it, too.
    return sys.getrefcount(x) > 3 or sys.getrefcount(x.data.mem) > 2


def without_numbers(param: Parameter) -> Array:
    """An array that has the shape and dtype of a parameter, and memory of one element.

    All its elements are one NaN, so that a result that was computed of it is seen.
    """
    nan: Any = _core.empty((), param.dtype, param._device_name)
    nan.fill(numpy.nan)
    strides = (0,) * param.ndim
    if isinstance(nan, numpy.ndarray):
        return as_strided(nan, param.shape, strides)
    array: Array = type(nan)(param.shape, nan.dtype, nan.data, strides)
    return array
