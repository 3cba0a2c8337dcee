"""Functions of ``chainer.links.rnn.n_step_rnn``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy


def argsort_list_descent(lst: Sequence[Any]) -> numpy.ndarray:
    """The order of sequences by length, the longest first."""
    return numpy.argsort([-len(x) for x in lst]).astype(numpy.int32)


def permutate_list(lst: Sequence[Any], indices: Any, inv: bool) -> list[Any]:
    """``[lst[i] for i in indices]``, or with ``inv`` the reverse."""
    if not inv:
        return [lst[i] for i in indices]
    result = [None] * len(lst)
    for i, index in enumerate(indices):
        result[index] = lst[i]
    return result
