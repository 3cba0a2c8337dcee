"""What a row about a link holds."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import renga
import renga.links as L
from tests.catalogue.row import listed

ROOT = Path(__file__).parents[3]
PUBLIC = {name for name in dir(L) if isinstance(getattr(L, name), type)}
MODULES = json.loads(
    (ROOT / "tests/chainer_outcomes/recorded/modules.json").read_text()
)
# Chainer's links, by the names that its modules have.
CHAINERS = {
    name
    for module, names in MODULES.items()
    if module.startswith("chainer.links.")
    for name in names["value"]
}


@dataclasses.dataclass
class Case:
    """A link and what it computes.

    ``reference(p, *inputs)`` computes in float64 what ``call(link, *inputs)`` does,
    from the parameters ``p`` by path. ``lazy`` makes the same link without its sizes.
    ``half`` and ``gradients`` say whether float16 and derivatives are tested.
    ``keep`` lists parameters that a random value would not suit.
    """

    make: Callable[[], renga.Link]
    inputs: tuple[Any, ...]
    reference: Callable[..., Any]
    call: Callable[..., Any] = lambda link, *xs: link(*xs)
    lazy: Callable[[], renga.Link] | None = None
    half: bool = True
    gradients: bool = True
    keep: tuple[str, ...] = ()


@dataclasses.dataclass
class Link:
    """All that the tests know of one link.

    Attributes:
        name: The name in ``renga.links``.
        cases: Calls with references in NumPy, by what is special about each: values,
            dtypes, gradients, files, copies and devices are tested.
        elsewhere: The tests that compare the link with another source (links of several
            ranks, with running averages, with drawn numbers), or a subclass in the
            catalogue.
        torch: A network and its input, or None for its shapes alone: PyTorch's outputs
            are in ``torch_models.json``.
        count: How many parameters the published network has.
        created: Constructor calls whose parameters and ``str`` Chainer recorded.
        edges: Calls with N samples, as ``edge_links`` explains, which Chainer recorded.
        nothing: The shapes of results for empty batches, where Chainer fails.
        averages: Chainer's running averages become NaN with an empty batch; here they
            stay.
        draws: The link draws numbers, so that only dtypes and shapes are compared.
        half: Whether Chainer has the link in float16.
        errors: Calls with odd sizes and, after ``->``, the error's or result's class.
        onnx: ``exported`` or ``reads values``: why an export is refused, if it is.
    """

    name: str
    cases: dict[str, Case]
    elsewhere: list[str]
    torch: tuple[Callable[[], renga.Link], Any] | None
    count: int | None
    created: list[str]
    edges: list[str]
    nothing: list[tuple[int, ...]]
    averages: bool
    draws: bool
    half: bool
    errors: list[str]
    onnx: str | None

    def missing(self) -> list[str]:
        """The names of the fields that the row needs and lacks."""
        lacks = []
        if not (self.cases or self.elsewhere or self.torch or self.count):
            lacks.append("cases, torch, count or elsewhere")
        for other in self.elsewhere:
            file = ROOT / "tests" / other
            if not other.endswith(".py"):
                if not issubclass(getattr(L, other), getattr(L, self.name)):
                    lacks.append(f"elsewhere (a subclass, got {other})")
            elif not re.search(rf"\b{self.name}\b", file.read_text()):
                lacks.append(f"elsewhere (tests of the link, got {other})")
        of_chainer = self.name in CHAINERS and "/vision/" not in str(self.elsewhere)
        needed = ["edges", "errors", "onnx"] if of_chainer else []
        return lacks + [name for name in needed if not getattr(self, name)]


LINKS: dict[str, Link] = {}


def link(
    name: str,
    *,
    cases: Case | dict[str, Case] | None = None,
    elsewhere: Any = (),
    torch: tuple[Callable[[], renga.Link], Any] | None = None,
    count: int | None = None,
    created: Any = (),
    edges: Any = (),
    nothing: Any = (),
    averages: bool = False,
    draws: bool = False,
    half: bool = True,
    errors: Any = (),
    onnx: str | None = None,
) -> None:
    """Adds a row. A field that holds several values takes one alone, too."""
    if name in LINKS:
        raise ValueError(f"{name} has two rows")
    LINKS[name] = Link(
        name,
        {"": cases} if isinstance(cases, Case) else cases or {},
        listed(elsewhere),
        torch,
        count,
        listed(created),
        listed(edges),
        list(nothing),
        averages,
        draws,
        half,
        listed(errors),
        onnx,
    )


def link_name(call: str) -> str:
    """The link of a constructor call or of an edge case."""
    return call.partition("L.")[2].partition("(")[0]
