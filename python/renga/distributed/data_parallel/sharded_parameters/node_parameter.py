"""Parameters whose numbers a node's ranks share, until Python code asks for them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy

from renga import _core, backend
from renga.parameter import Parameter
from renga.variable import Variable

if TYPE_CHECKING:
    from renga.communicators.communicator import Array

_SHARED = "_shared_array"
_ARRAY: Any = vars(Variable)["array"]  # the property


class _NodeParameter:
    """What classes of parameters in shared memory have in common.

    Functions read the numbers where they are. Whoever gets ``array`` may write to it or
    keep it, so from then on the parameter has a copy, which is this rank's alone.
    """

    __slots__ = ()

    @property
    def array(self: Any) -> Any:
        """The array, which is this rank's own from the first access on."""
        x = _ARRAY.__get__(self)
        if x is vars(self).get(_SHARED):
            x = x.copy()
            _ARRAY.__set__(self, x)
        return x

    @array.setter
    def array(self, array: Any) -> None:
        _ARRAY.__set__(self, array)

    data = raw_array = array

    @property
    def device(self: Any) -> Any:
        """The device of the array; shared memory is on the CPU."""
        if is_shared(self):
            return backend.CpuDevice()
        return super().device  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        """As of a parameter that was never shared: a copy is no rank's shard."""
        reduced: Any = super().__reduce__()
        make, (cls, *content), state = reduced
        state = {key: x for key, x in (state or {}).items() if key != _SHARED}
        return make, (cls._plain_class, *content), state or None


@functools.cache
def _shared_class(cls: Any) -> type:
    """The class of parameters in shared memory that are otherwise of ``cls``."""

    class Shared(_NodeParameter, cls):  # type: ignore[misc]
        _plain_class = cls

    Shared.__name__, Shared.__qualname__ = cls.__name__, cls.__qualname__
    Shared.__module__ = cls.__module__
    return Shared


def is_shared(param: Parameter) -> bool:
    """Whether functions read the numbers of ``param`` in memory that ranks share."""
    shared = vars(param).get(_SHARED)
    return shared is not None and is_at(param, shared)


def is_at(param: Parameter, array: Array) -> bool:
    """Whether the numbers of ``param`` are those of ``array``."""
    if not param.is_initialized:
        return False
    own, other = _core.addresses([param, array])
    return bool(own == other)


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
        if not isinstance(param, _NodeParameter):
            cls: Any = type(param)
            param.__class__ = _shared_class(cls)
        vars(param)[_SHARED] = array
    param.array = array
