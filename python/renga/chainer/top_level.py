"""Names of the package ``chainer`` that have no meaning in renga."""

from __future__ import annotations

from collections.abc import Iterable

from renga.core.backend import get_array_types
from renga.core.variable import as_array

disable_experimental_feature_warning = False


class _FallbackType:
    """The type of ``Fallback``."""

    def __repr__(self) -> str:
        return "Fallback"


#: Returned by ChainerX's functions to request a fallback.
Fallback = _FallbackType()


def is_arrays_compatible(arrays: Iterable[object]) -> bool:
    """Whether all are arrays, Variables or None that can be computed with together."""
    given = [as_array(array) for array in arrays if array is not None]
    return all(isinstance(array, get_array_types()) for array in given)
