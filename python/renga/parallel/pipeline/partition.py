"""Where a model is cut into the stages of a pipeline."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from renga.parallel.pipeline.measurement import SegmentCosts
from renga.parallel.pipeline.schedule import SCHEDULES
from renga.utils.table import aligned


@dataclass(frozen=True)
class Stage:
    """A stage: its links, and what it costs for one micro-batch.

    ``forward``, ``backward`` without the gradients of ``weights``, these, and
    ``update``, its part of an update, are seconds; ``parameters`` and ``received`` are
    bytes.
    """

    links: tuple[str, ...]
    forward: float
    backward: float
    update: float
    parameters: int
    received: int
    weights: float = 0.0

    @property
    def seconds(self) -> float:
        """Of both passes and the update."""
        return self.forward + self.backward + self.weights + self.update


@dataclass(frozen=True)
class Partition:
    """The stages of a model in order; ``str`` of it is a table."""

    stages: tuple[Stage, ...]
    bubble: float  # expected idle over busy time of a rank, for equal stages

    @property
    def stage_of(self) -> dict[str, int]:
        """The stage of each link."""
        return {link: i for i, stage in enumerate(self.stages) for link in stage.links}

    def __str__(self) -> str:
        times = ("forward", "backward", "weights", "update")
        rows: list[tuple[str, ...]] = [
            ("stage", "links", "parameters", *times, "received")
        ]
        for i, stage in enumerate(self.stages):
            first, last = stage.links[0], stage.links[-1]
            links = first if first == last else f"{first} to {last}"
            seconds = [f"{getattr(stage, name) * 1e3:.2f} ms" for name in times]
            held, received = stage.parameters / 1e6, stage.received / 1e6
            cells = f"{held:.2f} MB", *seconds, f"{received:.2f} MB"
            rows.append((str(i), links, *cells))
        lines = aligned(rows)
        slowest = max(stage.seconds for stage in self.stages)
        mean = sum(stage.seconds for stage in self.stages) / len(self.stages)
        lines.append(
            f"slowest stage: {slowest / max(mean, 1e-12):.2f} times the mean; expected "
            f"bubble: {self.bubble:.0%} of the busy time"
        )
        return "\n".join(lines)


def partition(
    costs: SegmentCosts,
    stages: int | Sequence[str],
    seconds_per_byte: float,
    bubble: float,
) -> Partition:
    """Cuts a model so that micro-batches follow each other as fast as possible.

    Args:
        costs: measured.
        stages: their number, or the paths of the links that start the second and later
            stages.
        seconds_per_byte: of a message.
        bubble: of the schedule.

    Raises:
        ValueError: fewer links with parameters than stages; or a cut that is no link
            with parameters that the program uses, or is out of order.
    """
    if isinstance(stages, int):
        cuts = _balanced(costs, stages, seconds_per_byte)
    else:
        cuts = _given(costs, stages)
    edges = [0, *cuts, len(costs.segments)]
    return Partition(
        tuple(_stage(costs, first, end) for first, end in zip(edges, edges[1:])), bubble
    )


def _stage(costs: SegmentCosts, first: int, end: int) -> Stage:
    segments = costs.segments[first:end]
    return Stage(
        tuple(segment.link for segment in segments),
        sum(segment.forward for segment in segments),
        sum(segment.backward for segment in segments),
        sum(segment.update for segment in segments),
        sum(segment.parameter_bytes for segment in segments),
        costs.bytes_at(first),
        sum(segment.weights for segment in segments),
    )


def _given(costs: SegmentCosts, links: Sequence[str]) -> list[int]:
    paths = [segment.link for segment in costs.segments]
    for span, (first, last) in costs.spans.items():
        if any(first < paths.index(link) <= last for link in links if link in paths):
            raise ValueError(
                f"pipeline: expected no cut between the calls of {span}, whose "
                "persistent arrays belong to one stage, got stages that start at "
                f"{', '.join(links)}"
            )
    for link in links:
        if link not in paths[1:]:
            raise ValueError(
                f"pipeline: expected stages to start at links with parameters, one of "
                f"{', '.join(paths[1:])}, got {link!r}"
            )
    cuts = [paths.index(link) for link in links]
    if sorted(set(cuts)) != cuts:
        raise ValueError(
            f"pipeline: expected stages in the order in which the model uses them, "
            f"{', '.join(paths)}, got {', '.join(links)}"
        )
    return cuts


# Some last stages of a partition: the period that they allow, the seconds from
# receiving a value until its gradient has been sent back, and the stages' first
# segments.
_Partial = tuple[float, float, tuple[int, ...]]


def _balanced(costs: SegmentCosts, stages: int, seconds_per_byte: float) -> list[int]:
    """The cuts with the shortest time from one micro-batch to the next.

    Messages travel while ranks compute, activations and gradients at once. Of p stages,
    stage k begins p - k micro-batches before the gradient of the first one is back, on
    whose way are the later stages and all messages between them.

    By dynamic programming over (stages up to the end, first segment of these).
    """
    n = len(costs.segments)
    uncut = {i for a, b in costs.spans.values() for i in range(a + 1, b + 1)}
    if not 1 <= stages <= n - len(uncut):
        raise ValueError(
            f"pipeline: expected at most as many stages as the {n - len(uncut)} links "
            f"with parameters that the model uses apart, got {stages}"
        )
    passes = _sums([segment.forward + segment.backward for segment in costs.segments])
    seconds = _sums([segment.seconds for segment in costs.segments])
    messages = [seconds_per_byte * costs.bytes_at(first) for first in range(n)]
    best: dict[int, list[_Partial]] = {n: [(0.0, 0.0, ())]}
    for count in range(1, stages + 1):
        later, best = best, {}
        for first in range(stages - count, n - count + 1 if count < stages else 1):
            if first in uncut:
                continue
            options = []
            for end in range(first + 1, n + 1):
                least = max(seconds[end] - seconds[first], messages[first])
                for period, way, edges in later.get(end, ()):
                    way += passes[end] - passes[first]
                    period = max(period, least, way / count)
                    options.append((period, way + 2 * messages[first], (first, *edges)))
            best[first] = _undominated(options)
    return list(min(best[0])[2][1:])


def _sums(values: list[float]) -> list[float]:
    """Of the first 0, 1, … values."""
    return list(itertools.accumulate(values, initial=0.0))


def _undominated(options: list[_Partial]) -> list[_Partial]:
    """Those that are not worse than another one in both times."""
    kept: list[_Partial] = []
    for option in sorted(options):
        if not kept or option[1] < kept[-1][1]:
            kept.append(option)
    return kept


def number_of_stages(
    stages: int | Sequence[str] | None, kind: str, ranks: int, links: int
) -> int:
    """How many stages a schedule has on so many ranks.

    Args:
        stages: the number, the links at which the second and later ones start, or None.
        kind: the schedule.
        ranks: the number of ranks.
        links: the number of links with parameters, of which each stage needs one.

    Raises:
        ValueError: the schedule cannot have them.
    """
    has_chunks = SCHEDULES[kind].has_chunks
    if stages is None:
        has_two = has_chunks and ranks > 1 and links >= 2 * ranks
        return 2 * ranks if has_two else ranks
    number = stages if isinstance(stages, int) else len(stages) + 1
    if number % ranks or (number != ranks and not has_chunks):
        expected = f"a multiple of {ranks}" if has_chunks else str(ranks)
        raise ValueError(
            f"Pipeline: expected {expected} stages for {kind} on {ranks} ranks, got "
            f"{number}"
        )
    return number
