"""Pictures of plans, drawn with matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from renga.core.types import Path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = {
    "forward": "#4c78a8",
    "backward": "#54a24b",
    "update": "#9d755d",
    "send": "#f58518",
    "send gradient": "#eeca3b",
    "sync": "#e45756",
}
_MOST_LANES = 32


class Bar(NamedTuple):
    """A task of the simulated step, in the picture."""

    kind: str
    layer: str
    resource: int
    start: float
    end: float


def empty_figure(width: float, height: float) -> Figure:
    """A figure without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing


def figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure and its axes."""
    drawing = empty_figure(width, height)
    axes = drawing.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return drawing, axes


def metadata(path: Path) -> dict[str, None]:
    """Of a file that is the same every time."""
    return {"Date": None} if os.fspath(path).endswith(".svg") else {}


def draw_timeline(path: Path, bars: Sequence[Bar], ranks: int, title: str) -> None:
    """A lane for each rank and, where messages overlap with it, for its network."""
    from matplotlib.patches import Patch

    own = {b.resource for b in bars}
    shown = sorted(own, key=lambda r: (r % ranks, r // ranks))[:_MOST_LANES]
    lanes = {resource: i for i, resource in enumerate(shown)}
    drawing, axes = figure(9, 1.2 + 0.32 * len(lanes))
    end = max((b.end for b in bars), default=1e-3)
    for kind, color in _COLORS.items():
        for resource, lane in lanes.items():
            spans = [
                (b.start * 1e3, (b.end - b.start) * 1e3)
                for b in bars
                if b.kind == kind and b.resource == resource and b.end - b.start > 2e-9
            ]
            if spans:
                axes.broken_barh(
                    spans,
                    (lane - 0.4, 0.8),
                    facecolors=color,
                    edgecolor="white",
                    lw=0.3,
                )
    present = {b.kind for b in bars if b.end - b.start > 2e-9}
    kinds = [
        Patch(color=c, label=kind) for kind, c in _COLORS.items() if kind in present
    ]
    ports = ["", ": messages in its node", ": gradients and other nodes"]
    axes.set_yticks(
        range(len(lanes)), [f"rank {r % ranks}{ports[r // ranks]}" for r in lanes]
    )
    axes.invert_yaxis()
    axes.set_xlim(0, end * 1e3)
    axes.set_xlabel("ms")
    axes.set_title(title, loc="left", fontsize=10)
    drawing.legend(handles=kinds, ncols=6, loc="outside upper center", frameon=False)
    drawing.savefig(path, metadata=metadata(path))
