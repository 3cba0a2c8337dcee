"""BinaryHierarchicalSoftmax: a loss over words that are leaves of a binary tree."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import numpy

from renga import functions as F
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, DTypeLike
from renga.core.variable import Variable, as_array
from renga.functions.check import check_floats, check_shape, checked_indices
from renga.initializers import Uniform
from renga.utils.extents import check_sizes
from renga.utils.type_check import InvalidType

Tree = Union[int, "tuple[Tree, Tree]"]
"""A word, or the two trees below a node."""


class BinaryHierarchicalSoftmax(Link):
    """The negative log-likelihood of words, each a path of decisions down a tree.

    ``tree`` is a pair of trees or a word, a number. At every pair on the path to a
    word a logistic regression chooses left or right.

    Shapes:
        x: (N, in_size)
        t: (N,) of int32
        W: (number of pairs, in_size), initially uniform in [-1, 1)

    Raises:
        ValueError: a node of the tree is not a pair.

    Source: Morin and Bengio, Hierarchical probabilistic neural network language model,
    2005.
    """

    W: Parameter

    def __init__(
        self,
        in_size: int,
        tree: Sequence[Sequence[int]],
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, in_size=in_size)
        paths = dict(_paths(tree))
        n_words = max(paths) + 1
        # The path of word k is begins[k] to begins[k + 1].
        lengths = [len(paths.get(word, ((), ()))[0]) for word in range(n_words)]
        self._begins = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("i")
        self._nodes = numpy.concatenate([paths[w][0] for w in sorted(paths)])
        self._sides = numpy.concatenate([paths[w][1] for w in sorted(paths)])
        n_pairs = int(self._nodes.max(initial=-1)) + 1
        with self.init_scope():
            self.W = Parameter(Uniform(1.0, dtype=dtype), (n_pairs, in_size))

    @staticmethod
    def create_huffman_tree(word_counts: Mapping[int, int]) -> Tree:
        """The tree in which frequent words have short paths; ValueError if empty."""
        if not word_counts:
            raise ValueError("create_huffman_tree: expected counts of words, got none")
        queue = [
            (count, order, word)
            for order, (word, count) in enumerate(word_counts.items())
        ]
        heapq.heapify(queue)
        # Of nodes with equal counts, the one that has the earliest word comes first:
        # each model file has rows of W in the order of such a tree.
        while len(queue) > 1:
            (n, i, left), (m, j, right) = heapq.heappop(queue), heapq.heappop(queue)
            node: Any = (n + m, min(i, j), (left, right))
            heapq.heappush(queue, node)
        return queue[0][2]

    def forward(self, x: ArrayLike, t: ArrayLike) -> Variable:
        """The sum of the losses of the words ``t``; IndexError for an unknown word."""
        name = "BinaryHierarchicalSoftmax"
        check_floats(name, x, self.W)
        words = as_array(t)
        fits = x.ndim == 2 and words.ndim == 1 and len(words) == len(x)
        fits = fits and x.shape[1] == self.W.shape[1]
        check_shape(name, fits, f"(N, {self.W.shape[1]}) and (N,)", x, t)
        if words.dtype != numpy.int32:
            raise InvalidType(f"{name}: expected labels of int32, got {words.dtype}")
        words = checked_indices(name, "t", words, len(self._begins) - 1)
        begins, ends = self._begins[words], self._begins[words + 1]
        steps = [numpy.arange(b, e) for b, e in zip(begins, ends)]
        samples = numpy.repeat(numpy.arange(len(words), dtype="i"), ends - begins)
        step = numpy.concatenate([numpy.zeros(0, "i"), *steps])
        sides = self._sides[step].astype(x.dtype)
        rows = F.embed_id(self._nodes[step], self.W)
        decisions = F.sum(rows * F.embed_id(samples, x), axis=1)
        return F.sum(F.softplus(-sides * decisions))


def _paths(tree: Any) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """Every word with the pairs on its path, numbered from the root, and the sides."""
    todo: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [(tree, (), ())]
    n_pairs = 0
    while todo:
        node, pairs, sides = todo.pop()
        if not isinstance(node, tuple):
            yield node, (numpy.array(pairs, "i"), numpy.array(sides, "f"))
            continue
        if len(node) != 2:
            raise ValueError(f"tree: expected a pair of trees, got {node}")
        here = (*pairs, n_pairs)
        n_pairs += 1
        todo += [(node[1], here, (*sides, -1)), (node[0], here, (*sides, 1))]
