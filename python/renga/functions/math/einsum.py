"""Einstein's summation convention.

Operands are contracted from left to right. Each contraction is a batch of matrix
products: labels of both operands are batch axes if they remain, else they are summed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.variable import Variable, as_variable
from renga.functions.math.subscripts import Labels, parse
from renga.utils.type_check import InvalidType


def einsum(*operands: object) -> Variable:
    """Sums of products of arrays named by labels, as ``numpy.einsum``.

    Takes ``("ij,jk->ik", a, b)`` or ``(a, [0, 1], b, [1, 2], [0, 2])``.

    Raises:
        ValueError: the subscripts are invalid.
        InvalidType: a label has two extents.
    """
    inputs, output, arrays = parse(operands)
    _check_extents(inputs, arrays)
    terms = [_Term(as_variable(x), labels) for x, labels in zip(arrays, inputs)]
    for i, term in enumerate(terms):
        others = {label for t in terms[:i] + terms[i + 1 :] for label in t.labels}
        terms[i] = term.diagonal().summed(others | set(output))
    result = terms[0]
    for i, term in enumerate(terms[1:], 2):
        later = {label for t in terms[i:] for label in t.labels}
        result = _product(result, term, later | set(output))
    return result.ordered(output).x


def _check_extents(inputs: Sequence[Labels], arrays: Sequence[Any]) -> None:
    extents: dict[Any, int] = {}
    for labels, x in zip(inputs, arrays):
        for label, n in zip(labels, x.shape):
            # Only the axes behind an ellipsis broadcast.
            extent = extents.setdefault(label, n)
            broadcasts = isinstance(label, int) and label < 0 and 1 in (extent, n)
            if extent != n and not broadcasts:
                raise InvalidType(
                    f"einsum: expected one extent for a label, got {extent} and {n} in "
                    f"{[x.shape for x in arrays]}"
                )
            extents[label] = max(extent, n)


class _Term:
    """An array whose axes have labels."""

    def __init__(self, x: Variable, labels: Labels) -> None:
        self.x = x
        self.labels = labels
        self.extent: dict[Any, int] = dict(zip(labels, x.shape))

    def diagonal(self) -> _Term:
        """The diagonal over axes with the same label."""
        term = self
        while len(set(term.labels)) < len(term.labels):
            twice = next(a for a in term.labels if term.labels.count(a) > 1)
            first, second = [i for i, a in enumerate(term.labels) if a == twice][:2]
            rest = [i for i in range(len(term.labels)) if i not in (first, second)]
            x = _core.ops.diagonal(term.x, 0, first, second)
            term = _Term(x, (*(term.labels[i] for i in rest), twice))
        return term

    def summed(self, kept: set[object]) -> _Term:
        """Summed over the labels that are not in ``kept``."""
        axes = tuple(i for i, a in enumerate(self.labels) if a not in kept)
        if not axes:
            return self
        labels = tuple(a for a in self.labels if a in kept)
        return _Term(_core.ops.sum(self.x, axes), labels)

    def ordered(self, labels: Labels) -> _Term:
        """With its axes in another order."""
        if labels == self.labels:
            return self
        axes = [self.labels.index(a) for a in labels]
        return _Term(_core.ops.transpose(self.x, axes), labels)

    def matrices(self, *groups: Labels) -> Variable:
        """The array with one axis for each group of labels."""
        x = self.ordered(tuple(a for group in groups for a in group)).x
        extents = [math.prod(self.extent[a] for a in group) for group in groups]
        return _core.ops.reshape(x, extents)


def _product(a: _Term, b: _Term, kept: set[Any]) -> _Term:
    a, b = _stretched(a, b), _stretched(b, a)
    both = [label for label in a.labels if label in b.extent]
    stack = tuple(label for label in both if label in kept)
    inner = tuple(label for label in both if label not in kept)
    left = tuple(label for label in a.labels if label not in both)
    right = tuple(label for label in b.labels if label not in both)
    y = _core.ops.matmul(
        a.matrices(stack, left, inner), b.matrices(stack, inner, right)
    )
    labels = stack + left + right
    extent = {**a.extent, **b.extent}
    return _Term(_core.ops.reshape(y, [extent[label] for label in labels]), labels)


def _stretched(a: _Term, b: _Term) -> _Term:
    """``a`` repeated along the axes of extent 1 that are longer in ``b``."""
    shape = [b.extent.get(k, n) if n == 1 else n for k, n in a.extent.items()]
    if tuple(shape) == a.x.shape:
        return a
    return _Term(_core.ops.broadcast_to(a.x, shape), a.labels)
