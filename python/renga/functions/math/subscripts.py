"""Parser of the subscripts of ``einsum``.

Labels are letters, or integers in the list form; the axes behind an ellipsis are
labelled -1, -2, … from the last one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from renga.core.types import ArrayLike
from renga.functions.check import check_arrays

Labels = tuple[Any, ...]


def parse(operands: Sequence[Any]) -> tuple[list[Labels], Labels, list[ArrayLike]]:
    """The labels of every input and of the output, and the arrays."""
    if not operands:
        raise ValueError("einsum: expected subscripts and arrays, got nothing")
    if isinstance(operands[0], str):
        raw, raw_output = _split(operands[0])
        arrays = list(operands[1:])
    else:
        raw, raw_output, arrays = _from_lists(operands)
    if len(raw) != len(arrays):
        raise ValueError(
            f"einsum: expected subscripts for {len(arrays)} arrays, got {len(raw)}"
        )
    check_arrays("einsum", *arrays)
    inputs, output = _resolved(raw, raw_output, tuple(x.ndim for x in arrays))
    return list(inputs), output, arrays


@functools.lru_cache(maxsize=256)
def _split(subscripts: str) -> tuple[tuple[Labels, ...], Labels | None]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    inputs = tuple(_letters(term) for term in left.split(","))
    return inputs, _letters(right) if arrow else None


@functools.lru_cache(maxsize=256)
def _resolved(
    raw: tuple[Labels, ...], raw_output: Labels | None, ndims: tuple[int, ...]
) -> tuple[tuple[Labels, ...], Labels]:
    """The labels of all axes of arrays with so many of them, and of the output."""
    dots = [_hidden(labels, ndim) for labels, ndim in zip(raw, ndims)]
    inputs = tuple(_expanded(labels, n) for labels, n in zip(raw, dots))
    hidden = max(dots, default=0)
    if raw_output is None:
        output = _implied(inputs, hidden)
    else:
        output = _expanded(raw_output, hidden)
    _check_output(output, inputs, raw, raw_output)
    return inputs, output


def _letters(term: str) -> Labels:
    labels = list(term.replace("...", "\0"))
    if labels.count("\0") > 1 or not all(a.isalpha() or a == "\0" for a in labels):
        raise ValueError(f"einsum: expected letters and one '...', got {term!r}")
    return tuple(Ellipsis if a == "\0" else a for a in labels)


def _from_lists(
    operands: Sequence[Any],
) -> tuple[tuple[Labels, ...], Labels | None, list[Any]]:
    pairs = len(operands) // 2
    arrays = list(operands[: 2 * pairs : 2])
    inputs = tuple(tuple(labels) for labels in operands[1 : 2 * pairs : 2])
    output = tuple(operands[-1]) if len(operands) % 2 else None
    for labels in (*inputs, output or ()):
        if any(a is not Ellipsis and (not isinstance(a, int) or a < 0) for a in labels):
            raise ValueError(
                f"einsum: expected labels of at least 0 or ..., got {list(labels)}"
            )
    return inputs, output, arrays


def _hidden(labels: Labels, ndim: int) -> int:
    """How many axes are behind the ellipsis."""
    named = sum(a is not Ellipsis for a in labels)
    if named > ndim or named < ndim and Ellipsis not in labels:
        raise ValueError(f"einsum: expected subscripts for {ndim} axes, got {named}")
    return ndim - named


def _expanded(labels: Labels, hidden: int) -> Labels:
    if Ellipsis not in labels:
        return labels
    at = labels.index(Ellipsis)
    return (*labels[:at], *range(-hidden, 0), *labels[at + 1 :])


def _implied(inputs: Sequence[Labels], hidden: int) -> Labels:
    """The implied output: the ellipsis, then the labels that occur once, in order."""
    every = [a for labels in inputs for a in labels]
    named = (a for a in set(every) if not isinstance(a, int) or a >= 0)
    return (*range(-hidden, 0), *sorted(a for a in named if every.count(a) == 1))


def _check_output(
    output: Labels, inputs: Sequence[Labels], raw: Sequence[Labels], output_term: Any
) -> None:
    input_labels = {a for labels in inputs for a in labels}
    if len(set(output)) < len(output) or not set(output) <= input_labels:
        raise ValueError(
            f"einsum: expected output labels of the inputs, each once, got {output}"
        )
    dotted = any(Ellipsis in labels for labels in raw)
    if output_term is not None and dotted != (Ellipsis in output_term):
        raise ValueError(
            "einsum: expected '...' in an input and the output or in neither"
        )
