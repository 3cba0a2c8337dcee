"""``TreeParser`` of ``chainer.links.loss.hierarchical_softmax``."""

from __future__ import annotations

from typing import Any

import numpy

from renga.chainer.names.pickles import (
    BinaryHierarchicalSoftmaxFunction as BinaryHierarchicalSoftmaxFunction,
)
from renga.core.types import DTypeLike


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
