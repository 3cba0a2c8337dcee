"""A table of the links of a model."""

from __future__ import annotations

import dataclasses
from typing import Any

from renga import configuration
from renga.link import Link
from renga.link_hook import LinkHook
from renga.utils.table import aligned, html_table
from renga.variable import Variable

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


class _Observer(LinkHook):
    name = "ModelSummary"

    def __init__(self, model: Link) -> None:
        self._names = {id(link): name or "/" for name, link in model.namedlinks()}
        self._counted: set[int] = set()
        self.rows: list[LinkRow] = []

    def forward_postprocess(self, args: Any) -> None:
        name = self._names.get(id(args.link))
        if name is None:
            return  # made while the model ran
        own = [
            p
            for name, p in args.link.namedparams(include_uninit=False)
            if name.count("/") == 1 and id(p) not in self._counted
        ]
        self._counted |= {id(p) for p in own}
        shape = args.out.shape if isinstance(args.out, Variable) else None
        count = sum(p.size for p in own)
        self.rows.append(LinkRow(name, type(args.link).__name__, shape, count))


def model_summary(model: Link, *args: Any, **kwargs: Any) -> ModelSummary:
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
    observer = _Observer(model)
    test_mode = configuration.using_config("train", False)
    with observer, test_mode, configuration.no_backprop_mode():
        model(*args, **kwargs)
    total = sum(p.size for p in model.params(include_uninit=False))
    return ModelSummary(
        observer.rows, total, total - sum(row.parameters for row in observer.rows)
    )
