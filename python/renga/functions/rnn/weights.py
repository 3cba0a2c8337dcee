"""Checks of the weights and keywords of recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.types import ArrayLike
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs
from renga.utils.type_check import InvalidType


def check_kwargs(name: str, kwargs: dict[str, object]) -> None:
    """Raises ValueError for keywords of old Chainer versions, TypeError for others."""
    if kwargs:
        check_unexpected_kwargs(
            kwargs,
            train=f"{name}: expected using_config('train', …), got train",
            use_cudnn=f"{name}: expected using_config('use_cudnn', …), got use_cudnn",
        )
        assert_kwargs_empty(kwargs)


def check_weights(
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
