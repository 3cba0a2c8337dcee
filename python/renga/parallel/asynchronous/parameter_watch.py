"""Finds out what the caller has written into parameters between updates."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.parameter import Parameter
from renga.core.types import Array


class ParameterWatch:
    """Compares parameters with copies of what an optimizer has left in them.

    An optimizer that keeps the parameters elsewhere, too, makes the same changes there.

    Args:
        params: initialized parameters.
    """

    def __init__(self, params: Sequence[Parameter]) -> None:
        self._params = list(params)
        self.expected = [param.array.copy() for param in params]

    def record(self) -> None:
        """Takes the parameters as they are."""
        for param, x in zip(self._params, self.expected):
            x[...] = param.array

    def expect(self, arrays: Sequence[Array]) -> None:
        """Takes other arrays for what was left, if they have the parameters' shapes."""
        if [x.shape for x in arrays] == [x.shape for x in self.expected]:
            for param, x, y in zip(self._params, self.expected, arrays):
                x[...] = param.device.send(y)

    def changes(self) -> list[Array]:
        """Where each parameter has changed, as masks; none if no parameter has.

        Raises:
            ValueError: if an array has been replaced by one of another shape or dtype.
        """
        masks = []
        for param, x in zip(self._params, self.expected):
            if param.array.shape != x.shape or param.array.dtype != x.dtype:
                raise ValueError(
                    f"update: expected {param.name} to keep its shape {x.shape} and "
                    f"dtype {x.dtype}, got {param.array.shape} and {param.array.dtype}"
                )
            masks.append(_where_different(param.array, x))
        return masks if any(mask.any() for mask in masks) else []


def _where_different(x: Array, y: Array) -> Array:
    mask: Array = x != y
    if mask.any():  # NaN is not equal to itself
        mask = mask & ((x == x) | (y == y))
    return mask
