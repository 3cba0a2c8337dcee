"""Each way of parallel training on more and more ranks: throughput, limits, dollars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from renga.core.link import Link
from renga.core.types import Path
from renga.parallel.elastic.intervals import expected_seconds, interval
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.drawing import figure
from renga.parallel.plan.graph import Graph
from renga.parallel.plan.networks import alexnet, inception_v3, resnet, vgg16
from renga.parallel.plan.sample_layers import Layer, layers_of, transformer
from renga.parallel.plan.scaling import Job, Step, predict
from renga.parallel.plan.strategies.traced_model import TracedModel
from renga.utils.argument import check_count, check_number
from renga.utils.table import aligned

# A rank of a pipeline has so many micro-batches: the bubble is then about a fifth.
_MICRO_BATCHES = 4
_MOST_SPATIAL_RANKS = 16

MODELS: dict[str, Callable[[], Sequence[Layer]]] = {
    "alexnet": lambda: layers_of(alexnet(1)),
    "vgg16": lambda: layers_of(vgg16(1)),
    "inception-v3": lambda: layers_of(inception_v3(1)),
    "resnet50": lambda: layers_of(resnet(1, (3, 4, 6, 3))),
    "resnet101": lambda: layers_of(resnet(1)),
    "resnet152": lambda: layers_of(resnet(1, (3, 8, 36, 3))),
    "bert-base": lambda: transformer(12, 768, 128, 30522, 12, itemsize=4),
    "bert-large": lambda: transformer(24, 1024, 128, 30522, 16, itemsize=4),
    "gpt2": lambda: transformer(12, 768, 1024, 50257, 12, itemsize=4),
}


class ScalingRow(NamedTuple):
    """A way of training on some ranks."""

    way: str
    ranks: int
    step: Step
    efficiency: float  # of the ranks, beside one
    useful: float  # the part of the time that failures and checkpoints leave
    dollars: float  # of an epoch, with them


class ScalingTable(NamedTuple):
    """The predictions of :func:`scale`; ``str`` makes a table of them."""

    title: str
    rows: list[ScalingRow]

    def __str__(self) -> str:
        parts = list(self.rows[0].step.parts)
        has_price = any(row.dollars for row in self.rows)
        has_failures = any(row.useful < 1 for row in self.rows)
        lines = [
            ("way", "ranks", "samples/s", "efficiency", "memory")
            + ("useful",) * has_failures
            + ("dollars",) * has_price
            + tuple(parts)
        ]
        for row in self.rows:
            step = row.step
            shares = (f"{part / step.seconds:.0%}" for part in step.parts.values())
            lines.append(
                (
                    row.way,
                    str(row.ranks),
                    f"{step.throughput:.4g}",
                    f"{row.efficiency:.0%}",
                    f"{step.memory / 1e9:.2f} GB",
                    *[f"{row.useful:.1%}"] * has_failures,
                    *[_money(row.dollars)] * has_price,
                    *shares,
                )
            )
        right = range(1, len(lines[0]))
        return "\n".join([self.title, *aligned(lines, right=list(right))])

    def draw(self, path: Path) -> None:
        """Draws the efficiency of each way over the ranks, with matplotlib."""
        drawing, axes = figure(7, 4)
        for way in dict.fromkeys(row.way for row in self.rows):
            own = [row for row in self.rows if row.way == way]
            ranks, heights = zip(*((row.ranks, 100 * row.efficiency) for row in own))
            axes.plot(ranks, heights, marker="o", label=way)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="ranks", ylabel="% of ideal", title=self.title, ylim=(0, None))
        axes.legend(frameon=False)
        drawing.savefig(path)


def scale(
    model: str | Link | Graph,
    batch: int,
    cluster: Cluster,
    x: object = None,
    epoch: int = 0,
    save: float = 30.0,
    restart: float = 60.0,
) -> ScalingTable:
    """Predicts the steps of each way on 1, 2, 4, … ranks of a cluster.

    Args:
        model: the name of one of ``MODELS``, a described network, or a model.
        batch: samples for each rank.
        cluster: with a device, and a price if dollars are to be known.
        x: with what a model is called.
        epoch: its samples.
        save, restart: seconds of a checkpoint, and from a failure until training goes
            on, if the cluster says how often its ranks fail.

    Raises:
        ValueError: there is no such model, the cluster has no device, the batch is not
            above 0, or the samples or seconds are negative.
    """
    check_count("scale: batch", batch)
    check_count("scale: epoch", epoch, 0)
    check_number("scale: save", save, 0, is_above=True)
    check_number("scale: restart", restart, 0)
    if isinstance(model, str):
        if model not in MODELS:
            raise ValueError(f"scale: expected one of {', '.join(MODELS)}, got {model}")
        name, layers = model, MODELS[model]()
    elif isinstance(model, Graph):
        name, layers = model.name, layers_of(model)
    else:
        inputs = x if isinstance(x, tuple) else (x,)
        name, layers = type(model).__name__, layers_of(TracedModel(model, inputs).graph)
    numbers = [1]
    while 2 * numbers[-1] <= cluster.ranks:
        numbers.append(2 * numbers[-1])
    found: list[tuple[str, int, Step]] = []
    for ranks in numbers:
        own = cluster.with_ranks(ranks)
        for way, job in _jobs(layers, batch, ranks, cluster.machine.intra_size).items():
            found.append((way, ranks, predict(job, own)))
    alone = found[0][2].throughput
    found.sort(key=lambda row: (_WAYS.index(row[0]), row[1]))
    rows = []
    for way, ranks, step in found:
        useful = _useful(3600 * cluster.hours_between_failures / ranks, save, restart)
        hours = epoch / step.throughput / useful / 3600 if useful else math.inf
        efficiency = step.throughput / ranks / alone
        dollars = cluster.price * ranks * hours
        rows.append(ScalingRow(way, ranks, step, efficiency, useful, dollars))
    return ScalingTable(f"{name}, {batch} samples a rank, {cluster}", rows)


def _money(dollars: float) -> str:
    return f"{dollars:.2f}" if dollars < 1e9 else f"{dollars:.1e}"


def _useful(between_failures: float, save: float, restart: float) -> float:
    """The part of the time that is left with the best interval of checkpoints."""
    if math.isinf(between_failures):
        return 1.0
    best = interval(save, between_failures)
    return 1 / expected_seconds(1.0, best, save, restart, between_failures)


_WAYS = ("data", "channel", "spatial", "pipeline", "hybrid", "asynchronous")


def _jobs(
    layers: Sequence[Layer], batch: int, ranks: int, width: int
) -> dict[str, Job]:
    """The ways that there are for so many ranks."""
    total = batch * ranks
    found = {"data": Job(layers, total, data=ranks)}
    if ranks == 1:
        return found
    found["channel"] = Job(layers, total, tensor=ranks)
    found["asynchronous"] = Job(layers, total, data=ranks, gradients="asynchronous")
    if any(layer.halo for layer in layers) and ranks <= _MOST_SPATIAL_RANKS:
        found["spatial"] = Job(layers, total, tensor=ranks, is_spatial=True)
    if ranks <= len(layers):
        micro_batches = min(_MICRO_BATCHES * ranks, total)
        found["pipeline"] = Job(
            layers, total, stages=ranks, micro_batches=micro_batches
        )
    inner = min(width, ranks // 2)
    if inner > 1 and ranks % inner == 0:
        found["hybrid"] = Job(layers, total, data=ranks // inner, tensor=inner)
    return found
