"""Learned embeddings of positions."""

from __future__ import annotations

from renga.core.around_call import overridable
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_arrays
from renga.utils.extents import check_integer
from renga.utils.type_check import InvalidType


@overridable
def position_embedding(W: ArrayLike, x: ArrayLike, position: int = 0) -> Variable:
    """The rows of ``W`` for the tokens of ``x``, of which the first is at ``position``.

    In a model that is parallel by ``sequence``, the rows for this rank's tokens.

    Shapes:
        W: (positions, E)
        x: (N, L, …), of which the length counts
        result: (L, E)

    Raises:
        TypeError: ``position`` is not an integer.
        InvalidType: ``x`` has no axis 1, or there are fewer rows.

    Source: Radford et al., Improving language understanding by generative
    pre-training, 2018.
    """
    check_arrays("position_embedding", W, x)
    position = check_integer("position_embedding", "position", position)
    shape = x.shape
    if len(shape) < 2 or not 0 <= position <= len(W) - shape[1]:
        raise InvalidType(
            f"position_embedding: expected x of (N, L, …), L at most {len(W)} less "
            f"position {position}, got {shape}"
        )
    return as_variable(W)[position : position + shape[1]]
