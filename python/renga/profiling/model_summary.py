"""A table of the links of a model."""

from __future__ import annotations

import dataclasses

from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Link
from renga.core.types import ArrayLike
from renga.program import LinkCall, Recorder, Value
from renga.utils.table import aligned, html_table

_TITLES = ("link", "class", "output shape", "parameters")


@dataclasses.dataclass(frozen=True)
class LinkRow:
    """A link that ran: its name, class, the shape of its output, its own parameters.

    ``shape`` is None for outputs that are not one array; ``parameters`` counts
    elements of parameters that no link above it in the table has.
    """

    name: str
    kind: str
    shape: tuple[int, ...] | None
    parameters: int


@dataclasses.dataclass(frozen=True)
class ModelSummary:
    """The links of a model in the order in which they ended; prints as a table."""

    rows: list[LinkRow]
    parameters: int
    unused: int

    def _cells(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                row.name,
                row.kind,
                "" if row.shape is None else str(row.shape),
                f"{row.parameters:,}",
            )
            for row in self.rows
        ]

    def _total(self) -> str:
        unused = f", {self.unused:,} of links that did not run" if self.unused else ""
        return f"{self.parameters:,} parameters{unused}"

    def __str__(self) -> str:
        lines = aligned([_TITLES, *self._cells()], right=[3])
        return "\n".join([*lines, self._total()])

    def _repr_html_(self) -> str:
        return f"{html_table(_TITLES, self._cells())}<p>{self._total()}</p>"


def model_summary(model: Link, *args: ArrayLike, **kwargs: object) -> ModelSummary:
    """Calls ``model(*args, **kwargs)`` once, in test mode, and lists the links.

    Uninitialized parameters are initialized by that.

    >>> import numpy, renga, renga.links as L
    >>> model = renga.Sequential(L.Linear(4, 3), L.Linear(3, 2))
    >>> print(renga.model_summary(model, numpy.ones((5, 4), "f")))
    link  class       output shape  parameters
    /0    Linear      (5, 3)                15
    /1    Linear      (5, 2)                 8
    /     Sequential  (5, 2)                 0
    23 parameters

    Raises:
        TypeError: the model is not a Link.
    """
    if not isinstance(model, Link):
        raise TypeError(f"model_summary: expected a Link, got {type(model).__name__}")
    recorder = Recorder(model)
    with recorder, using_config("train", False), no_backprop_mode():
        model(*args, **kwargs)
    counted: set[int] = set()
    rows = [_row(call, counted) for call in recorder.program.links]
    total = sum(p.size for p in model.params(include_uninit=False))
    return ModelSummary(rows, total, total - sum(row.parameters for row in rows))


def _row(call: LinkCall, counted: set[int]) -> LinkRow:
    """The row of a link; the ids of its own parameters are counted from now on."""
    own = [
        p
        for name, p in call.link.namedparams(include_uninit=False)
        if name.count("/") == 1 and id(p) not in counted
    ]
    counted |= {id(p) for p in own}
    shape = call.result.shape if isinstance(call.result, Value) else None
    kind = type(call.link).__name__
    return LinkRow(call.path, kind, shape, sum(p.size for p in own))
