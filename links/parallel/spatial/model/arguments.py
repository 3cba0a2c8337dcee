"""What a model is called with, and what it returns: whole images, or parts of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from renga.configuration import config
from renga.links.parallel.agreement import require_alike
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import gather_image, scatter_image
from renga.links.parallel.spatial.parts import Knowledge
from renga.utils.type_check import InvalidType
from renga.variable import Variable

_SAMPLE = 4  # compared positions along each axis of an array


def require_same_call(
    grid: SpatialGrid, name: str, arguments: Any, whole: bool
) -> None:
    """Raises InvalidType on all ranks unless the model is called alike on all.

    Of whole images some numbers are compared, too, unless they were computed: each
    rank's own batch would give images made of several.
    """
    arrays = list(_arrays(arguments))
    text = ", ".join(_describe(x, whole) for x in arrays) or "no array"
    text += f" {'while training' if config.train else 'while testing'}"
    text += "" if config.enable_backprop else ", without gradients"
    data = b"".join(map(_sample, arrays)) if whole else b""
    what = 'whole inputs (input="parts" takes parts)' if whole else "inputs"
    require_alike(grid.comm, name, what, InvalidType, text, data)


def take_parts(grid: SpatialGrid, knowledge: Knowledge, arguments: Any) -> Any:
    """The arguments with this rank's part of each image.

    Images are what has the most axes, if three or more: what has fewer, such as labels
    of pixels, stays whole.
    """
    axes = max((x.ndim for x in _arrays(arguments)), default=0)

    def take(x: Any) -> Any:
        if x.ndim > 2 and x.ndim == axes:
            return scatter_image(grid, x)
        knowledge.note(x, "whole")
        return x

    return _replace(arguments, take)


def give_whole(grid: SpatialGrid, knowledge: Knowledge, name: str, result: Any) -> Any:
    """The result with whole images in the place of parts.

    Raises:
        ValueError: there is an image of which this is not known.
    """

    def give(y: Any) -> Any:
        kind = knowledge.kind_of(y)
        if kind == "for parts" or (kind == "part" and not isinstance(y, Variable)):
            raise ValueError(
                f"{name}: expected it to return Variables which are whole or parts of "
                f"images, got {type(y).__name__} {y.shape}"
            )
        return gather_image(grid, y) if kind == "part" else y

    return _replace(result, give)


def _is_array(x: Any) -> bool:
    return isinstance(x, (Variable, numpy.ndarray))


def _arrays(value: Any) -> Iterator[Any]:
    if _is_array(value):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _arrays(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item)


def _replace(value: Any, function: Callable[[Any], Any]) -> Any:
    """The same lists, tuples and dictionaries with other arrays."""
    if _is_array(value):
        return function(value)
    if isinstance(value, dict):
        return type(value)((k, _replace(item, function)) for k, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replace(item, function) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_replace(item, function) for item in value)
    return value


def _describe(x: Any, whole: bool) -> str:
    if whole or x.ndim < 3:
        return f"{x.dtype} {x.shape}"
    return f"{x.dtype} {x.shape[:2]} with {x.ndim - 2} more axes"


def _sample(x: Any) -> bytes:
    if isinstance(x, Variable):
        if x.creator_node is not None:
            return b""  # what is computed may differ in its last bits between machines
        x = x.array
    steps = tuple(slice(None, None, max(1, n // _SAMPLE)) for n in x.shape)
    return x[steps].tobytes() if x.dtype != object else b""
