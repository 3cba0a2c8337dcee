"""Elements in another order."""

from __future__ import annotations

import numpy

from renga.core.configuration import config
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.array.get_item import get_item
from renga.functions.check import array_of, check_axis, checked_indices
from renga.functions.on_host import on_host


@on_host
def permutate(
    x: ArrayLike, indices: ArrayLike, axis: int = 0, inv: bool = False
) -> Variable:
    """``x[indices]`` along an axis; with ``inv`` the inverse permutation.

    Raises:
        ValueError: indices are not an array of integers of one axis or, with ``inv``
            and in debug mode, one comes twice.
        InvalidType: there is no such axis.
        IndexError: there are no such elements; with ``inv``, of as many as there are
            indices.
    """
    indices = array_of("permutate", "indices", indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(
            "permutate: expected indices as an array of integers of one axis, got "
            f"{indices.shape} {indices.dtype}"
        )
    axis = check_axis("permutate", x, axis)
    limit = indices.size if inv else x.shape[axis]
    checked = checked_indices("permutate", "indices", indices, limit)
    if inv or config.debug:
        if numpy.bincount(checked, minlength=1).max() > 1:
            raise ValueError(f"permutate: expected each index once, got {checked}")
    if inv:
        indices = InvertPermutation().apply((indices,))[0].array
    return get_item(as_variable(x), (slice(None),) * axis + (indices,))


class InvertPermutation(FunctionNode):
    """The positions of 0, 1, … in an array that has each of them once."""

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (numpy.argsort(inputs[0]),)
