"""Layers of recurrent networks over sequences sorted by length, longest first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable

from renga import _core
from renga.functions.array.separate import separate
from renga.functions.noise.dropout import dropout
from renga.utils.type_check import InvalidType

# From the states (the output first) and a step's inputs to the next states.
Cell = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]
# What one layer in one direction makes of its inputs: (all inputs) -> (inputs, cell).
Layer = Callable[[Any], "tuple[Any, Cell]"]


def run_layers(
    name: str,
    n_layers: int,
    dropout_ratio: float,
    states: Sequence[Any],
    layers: Sequence[Layer],
    xs: Sequence[Any],
    bidirectional: bool,
) -> tuple[list[Any], tuple[Any, ...]]:
    """The last states, and the outputs of each step of the last layer.

    ``layers`` has one entry per layer and direction, as axis 0 of the states.

    Shapes:
        states: (S, B, N) each, with S layers and directions
        xs: (B_t, I) each, B >= B_1 >= B_2 >= …
    """
    directions = 2 if bidirectional else 1
    _check(name, n_layers * directions, states, layers, xs)
    ops = _core.ops
    cuts = list(itertools.accumulate(map(len, xs)))[:-1]
    initial = list(zip(*(separate(state) for state in states)))
    last: list[tuple[Any, ...]] = []
    inputs = ops.concat(list(xs), 0)
    for number in range(n_layers):
        if number:
            inputs = dropout(inputs, dropout_ratio)
        outputs = []
        for walk in (_forward, _backward)[:directions]:
            seen, cell = layers[len(last)](inputs)
            end, ys = walk(ops.split_axis(seen, cuts, 0), initial[len(last)], cell)
            last.append(end)
            outputs.append(ops.concat(ys, 0))
        inputs = outputs[0] if directions == 1 else ops.concat(outputs, 1)
    final = [ops.stack(list(group), 0) for group in zip(*last)]
    return final, tuple(ops.split_axis(inputs, cuts, 0))


def _check(
    name: str, n: int, states: Sequence[Any], layers: Sequence[Layer], xs: Sequence[Any]
) -> None:
    if len(layers) != n:
        raise ValueError(f"{name}: expected weights of {n} layers, got {len(layers)}")
    lengths = [len(x) for x in xs]
    if lengths != sorted(lengths, reverse=True):
        raise ValueError(
            f"{name}: expected sequences sorted by length, longest first, got steps of "
            f"{lengths} sequences"
        )
    for state in states:
        if (
            state.ndim != 3
            or len(state) != n
            or state.shape[1] < max(lengths, default=0)
        ):
            raise InvalidType(
                f"{name}: expected states of shape ({n}, B, N) with B >= "
                f"{max(lengths, default=0)}, got {state.shape}"
            )


def _forward(
    steps: Sequence[Any], states: tuple[Any, ...], cell: Cell
) -> tuple[tuple[Any, ...], list[Any]]:
    """States of sequences that have ended wait for the others."""
    ended: list[tuple[Any, ...]] = []
    ys = []
    for x in steps:
        going = len(x)
        if going < len(states[0]):
            ended.append(_rows(states, going, len(states[0])))
            states = _rows(states, 0, going)
        states = cell(states, x)
        ys.append(states[0])
    return _joined(states, *reversed(ended)), ys


def _backward(
    steps: Sequence[Any], states: tuple[Any, ...], cell: Cell
) -> tuple[tuple[Any, ...], list[Any]]:
    """From the end, where only the longest sequences have begun."""
    going = _rows(states, 0, len(steps[-1]))
    ys = []
    for x in reversed(steps):
        begun = len(going[0])
        if begun < len(x):
            going = _joined(going, _rows(states, begun, len(x)))
        going = cell(going, x)
        ys.append(going[0])
    begun, all_rows = len(going[0]), len(states[0])
    if begun < all_rows:
        going = _joined(going, _rows(states, begun, all_rows))
    return going, ys[::-1]


def _rows(states: tuple[Any, ...], begin: int, end: int) -> tuple[Any, ...]:
    return tuple(
        _core.ops.slice(state, [(begin, end - begin, 1), (0, state.shape[1], 1)])
        for state in states
    )


def _joined(*groups: tuple[Any, ...]) -> tuple[Any, ...]:
    """States of different sequences, one below the other."""
    if len(groups) == 1:
        return groups[0]
    return tuple(_core.ops.concat(list(parts), 0) for parts in zip(*groups))
