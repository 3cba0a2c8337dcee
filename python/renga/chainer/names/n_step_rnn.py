"""Functions of ``chainer.links.rnn.n_step_rnn``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy

from renga.core.types import ArrayLike

_Item = TypeVar("_Item")


def argsort_list_descent(lst: Sequence[ArrayLike]) -> numpy.ndarray:
    """The order of sequences by length, the longest first."""
    return numpy.argsort([-len(x) for x in lst]).astype(numpy.int32)


def permutate_list(
    lst: Sequence[_Item], indices: Iterable[int], inv: bool
) -> list[_Item]:
    """``[lst[i] for i in indices]``, or with ``inv`` the reverse."""
    if not inv:
        return [lst[i] for i in indices]
    result = list(lst)
    for i, index in enumerate(indices):
        result[index] = lst[i]
    return result
