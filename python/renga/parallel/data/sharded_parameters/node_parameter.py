"""Parameters whose numbers are elsewhere, until Python code asks for their arrays."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy
from numpy.lib.stride_tricks import as_strided

from renga import _core
from renga.core import backend
from renga.core.function_node import FunctionNode
from renga.core.parameter import Parameter
from renga.core.types import Array, Grads, Indexes
from renga.core.variable import Variable
from renga.parallel.data.sharded_states.held_arrays import is_at, is_held

_PLACE = "_place"  # key of the place of numbers that are no one rank's own
_ARRAY: Any = vars(Variable)["array"]  # the property


class Place(NamedTuple):
    """Where the numbers of a parameter are.

    Attributes:
        array: of the parameter's shape and dtype.
        lock: what a thread has that gives a parameter of this rank another array.
        unit: what gathers the numbers before a function reads them, if ``array`` has
            none.
    """

    array: Array
    lock: Any
    unit: Any = None


class PlacedParameter:
    """What classes of parameters have in common whose array is not this rank's own.

    Functions read the numbers where they are. Whoever gets ``array`` may write to it or
    keep it, so from then on the parameter has a copy, which is this rank's alone.
    """

    __slots__ = ()

    @property
    def array(self: Any) -> Any:
        """The array, which is this rank's own from the first access on."""
        with vars(self)[_PLACE].lock if _PLACE in vars(self) else nullcontext():
            x, place = _ARRAY.__get__(self), vars(self).get(_PLACE)
            if place is not None and x is place.array:
                if place.unit is not None:
                    x = place.unit.read(self)
                    if place.unit.lends:
                        return x
                x = x.copy()
                _ARRAY.__set__(self, x)
            return x

    @array.setter
    def array(self, array: object) -> None:
        _ARRAY.__set__(self, array)

    data = raw_array = array

    @property
    def device(self: Any) -> Any:
        """The device of the array, which no access makes this rank's own."""
        if is_shared(self):
            return backend.get_device_from_array(vars(self)[_PLACE].array)
        return super().device  # type: ignore[misc]

    def as_operand(self: Any) -> Variable:
        """A copy that a graph keeps, if the numbers have to be gathered."""
        place = place_of(self)
        if place is None or place.unit is None:
            return self  # type: ignore[no-any-return]
        with place.lock:
            x = place.unit.read(self) if unit_of(self) else self.array
        copied: Variable = _core.record_python(_Copy(), [self], [x])[0]
        return copied

    def move_to(self: Any, device: str) -> None:
        self.array  # noqa: B018 (makes the numbers this rank's own)
        super().move_to(device)  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        """As of a parameter that was never shared: a copy is no rank's shard."""
        reduced: Any = super().__reduce__()
        make, (cls, *content), state = reduced
        state = {k: x for k, x in (state or {}).items() if k != _PLACE}
        return make, (cls._plain_class, *content), state or None


class _Copy(FunctionNode):
    """A copy of a parameter, whose gradient is the parameter's."""

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        return grad_outputs


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
    place = place_of(param)
    return place is not None and is_at(param, place.array)


def place_of(param: Parameter) -> Place | None:
    """Where the numbers of ``param`` are, or were before it got an array of its own."""
    place: Place | None = vars(param).get(_PLACE)
    return place


def unit_of(param: Parameter) -> Any:
    """What gathers the numbers of ``param``; None if they are somewhere in memory."""
    place = place_of(param)
    return place.unit if place is not None and is_at(param, place.array) else None


def place(
    param: Parameter, array: Array, lock: AbstractContextManager[object] | None
) -> None:
    """Makes ``array`` the numbers of a parameter.

    If something else refers to the array that the parameter has, it stays, and gets the
    values: whoever holds it sees updates, as of any parameter.

    Args:
        param: the parameter.
        array: of its shape and dtype.
        lock: that of :class:`Place`, if other ranks have the same memory, else None.
    """
    if is_at(param, array):
        return
    if is_held(param):
        param.array[...] = array
        return
    if lock is None:
        param.array = array
    else:
        put(param, Place(array, lock))


def put(param: Parameter, place: Place) -> None:
    """Has functions read the array of a place, of which Python code gets copies."""
    if not isinstance(param, PlacedParameter):
        cls: Any = type(param)
        param.__class__ = _shared_class(cls)
    with place.lock:
        vars(param)[_PLACE] = place
        _ARRAY.__set__(param, place.array)


def forget_place(param: Parameter) -> None:
    """Forgets where the numbers were of a parameter that has an array of its own."""
    vars(param).pop(_PLACE, None)


def without_numbers(param: Parameter) -> Array:
    """An array that has the shape and dtype of a parameter, and memory of one element.

    All its elements are one NaN, so that a result that was computed of it is seen.
    """
    nan: Any = _core.empty((), param.dtype, param.device_name)
    nan.fill(numpy.nan)
    strides = (0,) * param.ndim
    if isinstance(nan, numpy.ndarray):
        return as_strided(nan, param.shape, strides)
    if not hasattr(nan, "data"):  # an array where CuPy is not installed
        whole: Array = _core.ops.broadcast_to(nan, param.shape).array
        return whole
    array: Array = type(nan)(param.shape, nan.dtype, nan.data, strides)
    return array
