"""A strategy that was found, with what it is expected to take."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.core.link import Link
from renga.core.types import Path
from renga.links.parallel.channel.link import LinkChoice
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.parallel.channel.strategy import ChannelStrategy
from renga.parallel.conversion.strategy import Applied, LinkStrategy, Strategy
from renga.parallel.pipeline.batches import micro_batches
from renga.parallel.pipeline.pipeline import Pipeline
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.drawing import Bar, draw_timeline
from renga.parallel.plan.json_file import read_json, write_json
from renga.parallel.samples.strategy import SampleStrategy
from renga.parallel.spatial.strategy import SpatialStrategy
from renga.utils.table import aligned

_FORMAT = "renga plan 3"
# The name of data parallelism without a plan among measured steps.
MULTI_NODE_OPTIMIZER = "create_multi_node_optimizer"


class PlanRow(NamedTuple):
    """What a layer does in a step. Seconds and bytes are those of a rank."""

    layer: str
    choice: str
    computed: float
    sent: float
    waited: float
    next_best: str  # another choice, and how much longer a step takes with it


class Stages(NamedTuple):
    """Of a pipeline."""

    starts: tuple[str, ...]  # the links that the second and later ones start with
    micro_batches: int


@dataclasses.dataclass
class Plan(Strategy):
    """A strategy for a model on a cluster.

    ``parallelize(model, comm, plan, x)`` applies it, if it was found for a model and
    not for a described network.

    Args:
        model: the name of the model or network.
        seconds: of the predicted step.
        data_seconds: of the predicted step with data parallelism; for a model, that of
            a multi-node optimizer.
        rows: one for each layer.
        links: how each link is computed, by its path; None for a described network.
        timeline: of the simulated step.
        grid: rows and columns of ranks that share images, if they do; then no link
            has a choice of its own.
        stages: of a pipeline, if it is one; likewise.
        groups: of ranks with samples of their own, which share the model by ``links``.
        stacked: of each output, whether time steps are stacked along axis 0.
        predicted: the seconds of hand-made strategies and other candidates by name.
        measured: the timed seconds of candidates by name, if they were timed.
    """

    model: str
    cluster: Cluster
    seconds: float
    data_seconds: float
    rows: list[PlanRow]
    links: dict[str, LinkChoice] | None = None
    timeline: list[Bar] = dataclasses.field(default_factory=list)
    grid: tuple[int, int] | None = None
    stages: Stages | None = None
    groups: int = 1
    stacked: tuple[bool, ...] = ()
    predicted: dict[str, float] = dataclasses.field(default_factory=dict)
    measured: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def ranks(self) -> int:  # type: ignore[override]
        """The number of ranks that it is for."""
        return self.cluster.ranks

    @property
    def bytes_sent(self) -> float:
        """By each rank in a step."""
        return sum(row.sent for row in self.rows)

    @property
    def is_slower_than_data_parallelism(self) -> bool:
        """Whether a step of a multi-node optimizer is faster, as measured if it was.

        Links give the serial model's outputs on every rank, which some models, such as
        recurrent ones, cannot do with samples of their own.
        """
        if MULTI_NODE_OPTIMIZER in self.measured:
            least = min(self.measured, key=self.measured.__getitem__)
            return least == MULTI_NODE_OPTIMIZER
        return self.data_seconds < self.seconds

    @property
    def name(self) -> str:  # type: ignore[override]
        """Equal for equal choices."""
        chosen = [self.links, self.grid, self.stages, self.groups]
        text = json.dumps(chosen, sort_keys=True)
        return f"plan {hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def takes_options(self) -> bool:  # type: ignore[override]
        """Whether it makes a pipeline, whose options these are."""
        return self.stages is not None

    def apply(
        self, model: Link, comm: Any, example: Sequence[object], **options: Any
    ) -> Applied | None:
        """What ``parallelize`` makes of a model.

        Raises:
            ValueError: the plan is for a described network, or for another model.
        """
        if self.stages is not None:
            starts, number = self.stages
            axis = options.get("batch_axis", 0)
            _, parts = micro_batches.split(example, number, axis)[0]
            options |= {"micro_batches": number, "stages": starts}
            pipeline = Pipeline(model, comm, *parts, **options)
            return Applied(pipeline, f"parallelize: {self.name}, {pipeline}")
        if self.links is None:
            raise ValueError(
                f"parallelize: expected a plan of a model, got one of the described "
                f"network {self.model}"
            )
        missing = set(self.links) - {path for path, _ in model.namedlinks()}
        if missing:
            raise ValueError(
                f"parallelize: expected a model with the links of the plan, got "
                f"{type(model).__name__} without {', '.join(sorted(missing))}"
            )
        strategy: LinkStrategy = ChannelStrategy(self.links)
        if self.grid is not None:
            strategy, comm = SpatialStrategy(), SpatialGrid(comm, self.grid)
        elif self.groups > 1:
            strategy = SampleStrategy(strategy, self.groups, self.stacked)
        strategy.name = self.name
        return strategy.apply(model, comm, example)

    def table(self) -> str:
        """A line for each layer: what it does, what that takes, and the next best."""
        headings = ("layer", "split", "computes", "sends", "waits", "next best")
        lines = [headings]
        for row in self.rows:
            times = f"{row.computed * 1e3:.3f} ms", f"{row.sent / 1e6:.3f} MB"
            waits = f"{row.waited * 1e3:.3f} ms"
            lines.append((row.layer, row.choice, *times, waits, row.next_best))
        total = f"{self.model} on {self.cluster}: {self.seconds * 1e3:.3f} ms predicted"
        if self.seconds > 0:
            ratio = self.data_seconds / self.seconds
            total += (
                f", data parallelism {self.data_seconds * 1e3:.3f} ms ({ratio:.2f}x)"
            )
        for name, seconds in sorted(self.predicted.items(), key=lambda item: item[1]):
            total += f"\n{name}: {seconds * 1e3:.3f} ms predicted"
        for name, seconds in sorted(self.measured.items(), key=lambda item: item[1]):
            total += f"\n{name}: {seconds * 1e3:.3f} ms measured"
        if self.is_slower_than_data_parallelism:
            total += f"\nexpect a step of {MULTI_NODE_OPTIMIZER} to be faster"
        return "\n".join([*aligned(lines, right=[2, 3, 4]), total])

    __str__ = table

    def draw(self, path: Path) -> None:
        """Draws the simulated timeline into an SVG or PNG file, with matplotlib."""
        title = f"{self.model}, {self.cluster}"
        draw_timeline(path, self.timeline, self.ranks, title)

    def save(self, path: Path) -> None:
        """Writes the plan as JSON, atomically."""
        fields = dataclasses.fields(self)
        own = {field.name: getattr(self, field.name) for field in fields}
        own["cluster"] = self.cluster.to_json()
        write_json(path, {"format": _FORMAT, **own})

    @classmethod
    def load(cls, path: Path) -> Plan:
        """The plan that ``save`` wrote.

        Raises:
            ValueError: the file is none.
        """
        fields = read_json("Plan", path)
        if fields.pop("format", None) != _FORMAT:
            raise ValueError(f"Plan: expected {_FORMAT!r} in {path}")
        plan = cls(**fields)
        plan.cluster = Cluster.from_json(fields["cluster"])
        plan.rows = [PlanRow(*row) for row in plan.rows]
        plan.timeline = [Bar(*bar) for bar in plan.timeline]
        plan.stacked = tuple(plan.stacked)
        if plan.links is not None:
            plan.links = {
                key: LinkChoice((layouts[0], layouts[1]), *rest)
                for key, (layouts, *rest) in fields["links"].items()
            }
        if plan.grid is not None:
            plan.grid = plan.grid[0], plan.grid[1]
        if plan.stages is not None:
            starts, number = plan.stages
            plan.stages = Stages(tuple(starts), number)
        return plan
