"""Work and depth of a model: how much there is to compute, and how much in sequence.

Work W is the number of arithmetic operations of a forward pass, depth D the longest
chain of operations that need each other, where sums are binary trees. No number of
processors computes it in fewer steps than D, and W / D of them are busy on average.

Source: Ben-Nun and Hoefler, Demystifying parallel and distributed deep learning, 2019.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.configuration import using_config
from renga.core.link import Link
from renga.core.link.own_values import own_params
from renga.core.types import ArrayLike, Path
from renga.parallel.plan.analysis.strategy_volumes import (
    AnalyzedLayer,
    Recorded,
    layers_of,
)
from renga.parallel.plan.drawing import empty_figure, metadata
from renga.profiling.operation_cost import HasShape, forward_flops
from renga.program import Program, Value, record
from renga.utils.table import aligned

STRATEGIES = ("data", "channel", "spatial", "pipeline")


@dataclasses.dataclass(frozen=True)
class WorkDepth:
    """Work, depth, communication and memory of a model; ``str`` of it is a table."""

    model: str
    ranks: int
    layers: list[AnalyzedLayer]

    @property
    def work(self) -> int:
        """Of the forward pass: sequences and branches add."""
        return sum(layer.work for layer in self.layers)

    @property
    def depth(self) -> int:
        """Of the forward pass: sequences add, of branches the deepest counts."""
        return max((layer.finished for layer in self.layers), default=0)

    def volume(self, strategy: str) -> float:
        """Bytes that a rank sends in a step."""
        return sum(layer.volume[strategy] for layer in self.layers)

    def memory(self, strategy: str) -> float:
        """Bytes of the parameters and activations of a rank."""
        return sum(layer.memory[strategy] for layer in self.layers)

    def __str__(self) -> str:
        strategies = list(self.layers[0].volume) if self.layers else []
        rows = [["layer", "W", "D", "W/D"]]
        rows[0] += [f"{s} {what}" for s in strategies for what in ("sends", "holds")]
        for layer in self.layers:
            row = [layer.name, _count(layer.work), str(layer.depth)]
            row.append(_count(layer.work / max(1, layer.depth)))
            for s in strategies:
                row += [_count(layer.volume[s]) + "B", _count(layer.memory[s]) + "B"]
            rows.append(row)
        total = [f"{self.model}, {self.ranks} ranks", _count(self.work)]
        total += [str(self.depth), _count(self.work / max(1, self.depth))]
        for s in strategies:
            total += [_count(self.volume(s)) + "B", _count(self.memory(s)) + "B"]
        rows.append(total)
        return "\n".join(aligned(rows, right=range(1, len(rows[0]))))

    def draw(self, path: Path) -> None:
        """Draws work and depth of each layer, and the volumes, with matplotlib."""
        layers = [
            layer for layer in self.layers if layer.work or any(layer.volume.values())
        ]
        drawing = empty_figure(max(6, 0.34 * len(layers) + 2), 6)
        above, below = drawing.subplots(2, 1, sharex=True)
        positions = range(len(layers))
        above.bar(
            positions,
            [layer.work / max(1, layer.depth) for layer in layers],
            color="#4c78a8",
        )
        above.set_yscale("log")
        above.set_ylabel("W / D")
        strategies = list(layers[0].volume) if layers else []
        width = 0.8 / max(1, len(strategies))
        colors = ["#4c78a8", "#f58518", "#54a24b", "#e45756"]
        for i, (strategy, color) in enumerate(zip(strategies, colors)):
            left = [
                position + (i - (len(strategies) - 1) / 2) * width
                for position in positions
            ]
            sent = [layer.volume[strategy] / 1e6 for layer in layers]
            below.bar(left, sent, width, color=color, label=strategy)
        below.set_ylabel(f"MB sent by each of {self.ranks} ranks")
        below.legend(
            frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0)
        )
        below.set_xticks(list(positions), [layer.name for layer in layers], rotation=90)
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
        above.set_title(f"{self.model}: work over depth, and communication", loc="left")
        drawing.savefig(path, metadata=metadata(path))


def work_depth(
    model: Link, x: ArrayLike, strategies: Sequence[str] = STRATEGIES, ranks: int = 4
) -> WorkDepth:
    """Analyses one forward pass of a model, in test mode.

    What a bias, a mean's division or random numbers take is not counted, as in the
    traits of operations; functions that the core does not list count as nothing.
    Strategies are those of parallel links on ``ranks`` ranks, and a pipeline whose
    stages have about the same work.

    Args:
        x: an example of the input, or a tuple of several.
        strategies: some of ``data``, ``channel``, ``spatial`` and ``pipeline``.

    Raises:
        ValueError: there is no such strategy.
    """
    unknown = [s for s in strategies if s not in STRATEGIES]
    if unknown:
        raise ValueError(
            f"work_depth: expected strategies among {', '.join(STRATEGIES)}, got "
            f"{unknown[0]!r}"
        )
    inputs = x if isinstance(x, tuple) else (x,)
    with using_config("train", False):
        functions = _functions_of(record(model, *inputs), model)
    layers = layers_of(model, inputs, functions, strategies, ranks)
    return WorkDepth(type(model).__name__, ranks, layers)


def function_depth(
    operation: _core.Operation, arguments: Sequence[Any], y: HasShape
) -> int:
    """The depth of a call of a listed operation, by its traits."""
    flops, names = operation.flops, operation.arguments
    depth = flops.per_output
    if flops.per_input:
        terms = math.prod(arguments[0].shape) / max(1, math.prod(y.shape))
        # The first of the operations on each element may be a sum's addition.
        depth += flops.per_input - (terms > 1) + _tree(terms)
    if flops.per_window:
        ksize, *_ = arguments[names.index("window")]
        depth += _tree(math.prod(ksize))
    products = products_of(operation, arguments, y)
    if products:
        has_bias = "b" in names and arguments[names.index("b")] is not None
        depth += 1 + _tree(products + has_bias)
    return depth


def products_of(
    operation: _core.Operation, arguments: Sequence[object], y: HasShape
) -> int:
    """How many products are summed for an element of the result."""
    flops = operation.flops
    if flops.products == _core.Products.none:
        return 0
    only_products = forward_flops(operation, arguments, y)
    only_products -= flops.per_output * math.prod(y.shape)
    return math.ceil(only_products / 2 / max(1, math.prod(y.shape)))


def _tree(terms: float) -> int:
    """The depth of a sum of so many terms."""
    return math.ceil(math.log2(terms)) if terms > 1 else 0


def _count(number: float) -> str:
    """Three digits and a decimal prefix."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.3g}{prefix}"
    return f"{number:.3g}"


def _functions_of(program: Program, model: Link) -> list[Recorded]:
    """Work, and depth along the values; paths are those of links with parameters."""
    owners = {path for path, link in model.namedlinks() if own_params(link)}
    found: list[Recorded] = []
    depths: dict[Value, int] = {}
    for call in program.calls:
        if not call.results:
            continue
        depth = 0
        if call.traits is not None:
            depth = function_depth(call.traits, call.arguments, call.results[0])
        finished = depth + max((depths.get(x, 0) for x in call.operands), default=0)
        depths.update(dict.fromkeys(call.results, finished))
        path = next((link for link in reversed(call.links) if link in owners), "")
        size = sum(y.nbytes for y in call.results)
        work = call.flops or 0
        found.append(Recorded(path, call.operation, work, depth, finished, size))
    return found
