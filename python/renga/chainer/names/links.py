"""Functions of modules below ``chainer.links`` and ``chainer.link_hooks``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar

import numpy

from renga import functions as F
from renga.chainer.names.pickles import (
    BinaryHierarchicalSoftmaxFunction as BinaryHierarchicalSoftmaxFunction,
)
from renga.core.types import Array, ArrayLike, DTypeLike
from renga.core.variable import Variable
from renga.dataset.convert import concat_examples as concat_examples
from renga.links.rnn.n_step_rnn import (
    NStepGRUBase as NStepGRUBase,
    NStepLSTMBase as NStepLSTMBase,
)


class TreeParser:
    """The path from the root to each leaf of a binary tree of tuples."""

    def __init__(self, dtype: DTypeLike) -> None:
        self.next_id = 0
        self.dtype = dtype
        self.paths: dict[Any, numpy.ndarray] = {}
        self.codes: dict[Any, numpy.ndarray] = {}

    def size(self) -> int:
        """The number of inner nodes."""
        return self.next_id

    def get_paths(self) -> dict[object, numpy.ndarray]:
        """The inner nodes above each leaf."""
        return self.paths

    def get_codes(self) -> dict[object, numpy.ndarray]:
        """1 for each step to the left and -1 for each to the right."""
        return self.codes

    def parse(self, tree: object) -> None:
        """Numbers the inner nodes from 0, from the root to the left.

        Raises:
            ValueError: an inner node has not two children.
        """
        self.next_id, self.paths, self.codes = 0, {}, {}
        pending: list[tuple[Any, list[int], list[float]]] = [(tree, [], [])]
        while pending:
            node, path, code = pending.pop()
            if not isinstance(node, tuple):
                self.paths[node] = numpy.array(path, numpy.int32)
                self.codes[node] = numpy.array(code, self.dtype)
                continue
            if len(node) != 2:
                raise ValueError(
                    f"TreeParser: expected two children per inner node, got {node}"
                )
            path = [*path, self.next_id]
            self.next_id += 1
            pending += [(node[1], path, [*code, -1.0]), (node[0], path, [*code, 1.0])]


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


def l2normalize(xp: ModuleType, v: Array, eps: float) -> Array:
    """``v / (|v| + eps)``."""
    return v / (xp.linalg.norm(v) + eps)


def update_approximate_vectors(
    weight_matrix: Variable, u: Array, n_power_iteration: int, eps: float
) -> tuple[Array, Array]:
    """The first singular vectors after some power iterations from ``u``."""
    matrix, xp = weight_matrix.array, weight_matrix.xp
    for _ in range(n_power_iteration):
        v = l2normalize(xp, xp.dot(u, matrix), eps)
        u = l2normalize(xp, xp.dot(matrix, v), eps)
    return u, v


def calculate_max_singular_value(
    weight_matrix: Variable, u: Array, v: Array
) -> Variable:
    """``u^T W v``, a Variable."""
    return F.matmul(F.matmul(u, weight_matrix), v)


available = find_spec("PIL") is not None


def _global_average_pooling_2d(x: ArrayLike) -> Variable:
    """The mean of each channel's image, as (N, C)."""
    n, channels, *size = x.shape
    return F.reshape(F.average_pooling_2d(x, tuple(size), stride=1), (n, channels))


def _max_pooling_2d(x: ArrayLike) -> Variable:
    return F.max_pooling_2d(x, ksize=2)
