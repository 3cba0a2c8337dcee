"""Layers of recurrent networks over sequences, and checks of their arguments."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, Callable

from renga import _core
from renga._core import Variable
from renga.core.types import ArrayLike
from renga.functions.array.split_axis import separate
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.functions.noise.dropout import dropout
from renga.utils.extents import check_integer
from renga.utils.type_check import InvalidType


def old_keywords(name: str) -> dict[str, str]:
    """What errors say of keywords of old Chainer versions, for ``parse_kwargs``."""
    return {
        key: f"{name}: expected using_config({key!r}, …), got {key}"
        for key in ("train", "use_cudnn")
    }


# One layer in one direction. Arguments: weights, biases, inputs, initial states, the
# lengths of the steps, whether it runs backwards. Results: outputs, last states.
Layer = Callable[..., "tuple[Any, ...]"]


def run_layers(
    name: str,
    n: int,
    layer: Layer,
    n_layers: int,
    dropout_ratio: float,
    states: Sequence[ArrayLike],
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    bidirectional: bool,
) -> tuple[list[Variable], tuple[Variable, ...]]:
    """The last states, and the outputs of each step of the last layer.

    ``ws`` and ``bs`` have ``n`` arrays per layer and direction, in the order of axis 0
    of the states.

    Shapes:
        states: (S, B, N) each, with S layers and directions
        xs: (B_t, I) each, B >= B_1 >= B_2 >= …
    """
    _check_weights(name, n, states, ws, bs, xs, bidirectional)
    layers = [functools.partial(layer, w, b) for w, b in zip(ws, bs)]
    n_layers = check_integer(name, "n_layers", n_layers)
    directions = 2 if bidirectional else 1
    lengths = [len(x) for x in xs]
    _check(name, n_layers * directions, states, layers, lengths)
    ops = _core.ops
    initial = list(zip(*(separate(state) for state in states)))
    last: list[tuple[Any, ...]] = []
    inputs = ops.concat(list(xs), 0)
    for number in range(n_layers):
        if number:
            inputs = dropout(inputs, dropout_ratio)
        outputs = []
        for backwards in (False, True)[:directions]:
            run, first = layers[len(last)], initial[len(last)]
            ys, *end = run(inputs, *first, lengths, backwards)
            last.append(tuple(end))
            outputs.append(ys)
        inputs = outputs[0] if directions == 1 else ops.concat(outputs, 1)
    final = [ops.stack(list(group), 0) for group in zip(*last)]
    cuts = list(itertools.accumulate(lengths))[:-1]
    return final, tuple(ops.split_axis(inputs, cuts, 0))


def _check_weights(
    name: str,
    n: int,
    states: Sequence[ArrayLike],
    ws: Sequence[Sequence[ArrayLike]],
    bs: Sequence[Sequence[ArrayLike]],
    xs: Sequence[ArrayLike],
    bidirectional: bool,
) -> None:
    """Raises InvalidType unless each layer has ``n`` weights and biases that fit."""
    if len(xs) == 0:
        raise InvalidType(f"{name}: expected one step or more, got none")
    check_floats(name, *states, *xs)
    fits = all(s.ndim == 3 for s in states) and all(x.ndim == 2 for x in xs)
    check_shape(name, fits, "states (layers, B, N) and steps (B_t, I)", *states, *xs)
    units = states[0].shape[-1]
    width = xs[0].shape[-1]
    directions = 2 if bidirectional else 1
    for number, (w, b) in enumerate(zip(ws, bs)):
        inputs = width if number < directions else units * directions
        wanted = [(units, inputs)] * (n // 2) + [(units, units)] * (n // 2)
        check_arrays(name, *w, *b)
        got = [x.shape for x in w]
        if got != wanted or [x.shape for x in b] != [(units,)] * n:
            raise InvalidType(
                f"{name}: expected weights of shapes {wanted} and biases of ({units},) "
                f"in layer {number}, got {got} and {[x.shape for x in b]}"
            )


def _check(
    name: str,
    n: int,
    states: Sequence[Any],
    layers: Sequence[Layer],
    lengths: Sequence[int],
) -> None:
    if len(layers) != n:
        raise ValueError(f"{name}: expected weights of {n} layers, got {len(layers)}")
    if sorted(lengths, reverse=True) != lengths:
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
