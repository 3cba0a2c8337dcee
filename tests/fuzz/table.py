"""A random call of a function, and what NumPy makes of it."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import renga.functions
from renga import _core

from .draw import FLOATS, Draw


@dataclasses.dataclass
class Case:
    """One function and one way to call it, which a row of the catalogue has.

    Attributes:
        name: ``F.name`` or ``ops.name``.
        draw: Makes the arguments (with ``call``) from a Draw.
        oracle: Takes the same arguments, floats as float64, and computes with NumPy
            and SciPy; None compares with the function's own float64 run instead.
        dtypes: Of the operands that ``Draw.x`` makes.
        special: Operands may hold NaN, infinities and the like.
        smooth: The numerical derivative exists almost everywhere.
        within: Factor on the accepted error.
        weight: How often the function is drawn, relative to others.
        layouts: The result is the same whatever the layout of the operands.
        refuses: The errors with which arguments as drawn may be refused.
    """

    name: str
    draw: Callable[[Draw], tuple[tuple[Any, ...], dict[str, Any]]]
    oracle: Callable[..., Any] | None = None
    dtypes: str = FLOATS
    special: bool = False
    smooth: bool = True
    within: float = 1.0
    weight: float = 1.0
    layouts: bool = True
    refuses: tuple[type[Exception], ...] = ()

    @property
    def function(self) -> Callable[..., Any]:
        module, _, name = self.name.partition(".")
        return getattr(renga.functions if module == "F" else _core.ops, name)


def call(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs
