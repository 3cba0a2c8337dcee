"""Gradients of leaves, kept from what becomes of them meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from renga.core.types import Array
from renga.core.variable import Variable


class KeptGradients:
    """The gradients that leaves have at a time, to be given back to them."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Variable, Variable | None]] = []

    def keep(self, leaves: Iterable[Variable]) -> None:
        """Keeps the gradients that the leaves have."""
        self._pairs = [(leaf, leaf.grad_var) for leaf in leaves]

    def give_back(self) -> None:
        """Gives them back, if some are kept, and keeps none."""
        for leaf, grad in self._pairs:
            leaf.grad_var = grad
        self._pairs = []


@contextlib.contextmanager
def gradients_apart(
    leaves: Sequence[Variable],
) -> Iterator[list[tuple[Variable, Array]]]:
    """A block that begins without gradients, and leaves those of before as they are.

    Yields a list that has, after the block, the leaves to which it gave gradients, each
    with its own.
    """
    kept = KeptGradients()
    kept.keep(leaves)
    found: list[tuple[Variable, Array]] = []
    for leaf in leaves:
        leaf.grad_var = None
    yield found
    found += [(leaf, leaf.grad) for leaf in leaves if leaf.grad is not None]
    kept.give_back()


def add_to_gradient(leaf: Variable, grad: Array) -> None:
    """Adds an array, which the leaf may keep and change, to its gradient."""
    if leaf.grad is not None:
        grad += leaf.grad
    leaf.grad = grad
