"""Whether a program holds the arrays of parameters, which are to be moved."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from typing import Any

import numpy

from renga import _core
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable

_ARRAY: Any = vars(Variable)["array"]  # the property, which moves nothing
# The memory of flat arrays of the host, by its ``id``.
_flat_memory: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def is_at(param: Parameter, array: Array) -> bool:
    """Whether the numbers of ``param`` are those of ``array``."""
    if not param.is_initialized:
        return False
    own, other = _core.addresses([param, array])
    return bool(own == other)


def note_flat_memory(views: Iterable[Array]) -> None:
    """Takes note of arrays in memory to which parameters are moved."""
    bases: list[Any] = [x.base for x in views if isinstance(x, numpy.ndarray)]
    _flat_memory.update((id(base), base) for base in bases)


def is_held(param: Parameter) -> bool:
    """Whether something else than a parameter refers to its array, or to its memory."""
    if not param.is_initialized or param.owns_array:
        return False
    x = _ARRAY.__get__(param)
    if isinstance(x, numpy.ndarray) and x.base is not None:
        if _flat_memory.get(id(x.base)) is not x.base:
            return True  # a view of memory that is no earlier optimizer's
    del x
    alone = Parameter(0.0, 1)
    if param.device_name != alone.device_name:
        alone.move_to(param.device_name)
    pairs = zip(_references(param), _references(alone))
    return any(own > of_alone for own, of_alone in pairs)


def _references(param: Parameter) -> tuple[int, int]:
    """How many there are to its array and, on a device, to the memory of it.

    How many a call has depends on Python: the numbers are compared with those of
    another parameter.
    """
    x = _ARRAY.__get__(param)
    # A parameter that was made of an array has it twice.
    own = sys.getrefcount(x) - (param.initializer is x)
    if isinstance(x, numpy.ndarray):
        return own, 0
    return own, sys.getrefcount(x.memory if hasattr(x, "memory") else x.data.mem)
