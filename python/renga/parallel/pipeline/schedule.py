"""Schedules: in which order each rank of a pipeline computes, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Action(NamedTuple):
    """What a rank does next.

    ``kind`` is ``"F"`` or ``"B"``, the forward or backward pass of a micro-batch on a
    stage; ``"W"``, the gradients of the stage's weights, for which no other rank waits
    and which the backward pass therefore leaves for later (Qi et al., "Zero bubble
    pipeline parallelism", ICLR 2024); or ``"U"``, an update of the rank's parameters
    after that micro-batch.
    """

    kind: str
    stage: int
    micro_batch: int


def rank_of_stage(stage: int, ranks: int) -> int:
    """The rank that computes a stage: stages are assigned round-robin."""
    return stage % ranks


def flush_schedule(
    kind: str, ranks: int, micro_batches: int, chunks: int = 1
) -> list[list[Action]]:
    """The actions of each rank for one batch, which ends with an update.

    Every rank computes the backward passes in the order of the micro-batches, so that
    gradients are added in the order in which a single process adds them.

    Args:
        kind: one of ``SCHEDULES`` that flushes.
        ranks: the number of ranks.
        micro_batches: of a batch.
        chunks: stages per rank, for a schedule with several.

    Raises:
        ValueError: no such schedule, or a number below 1.
    """
    schedule = SCHEDULES.get(kind)
    if schedule is None or not schedule.flushes:
        raise ValueError(f"schedule: expected one that flushes, got {kind!r}")
    if min(ranks, micro_batches, chunks) < 1:
        raise ValueError(
            f"schedule: expected at least 1 rank, micro-batch and chunk, got "
            f"{ranks}, {micro_batches} and {chunks}"
        )
    if chunks > 1 and not schedule.has_chunks:
        raise ValueError(
            f"schedule: expected 1 stage per rank for {kind}, got {chunks}"
        )
    return [
        _with_update(_merge(schedule, rank, ranks, micro_batches, chunks))
        for rank in range(ranks)
    ]


def _merge(
    schedule: Schedule, rank: int, ranks: int, micro_batches: int, chunks: int
) -> list[Action]:
    """Forward and backward passes in one order, forward passes first by the warm-up.

    It is made for a multiple of ``ranks`` micro-batches, of which the last are left
    out: otherwise ranks of several stages would wait for each other.
    """
    groups = -(-micro_batches // ranks)
    forward = _passes("F", rank, ranks, groups, chunks)
    backward = _passes("B", rank, ranks, groups, chunks)
    warm_up = len(forward)
    if schedule.warm_up is not None:
        warm_up = min(warm_up, schedule.warm_up(rank, ranks, chunks))
    actions = forward[:warm_up]
    rest = forward[warm_up:]
    for f, b in zip(rest, backward):
        actions += [f, *_with_weights(b)]
    for b in backward[len(rest) :]:
        actions += _with_weights(b)
    return [action for action in actions if action.micro_batch < micro_batches]


def _with_weights(backward: Action) -> list[Action]:
    """Gradients of weights come at once: they need what the pass holds in memory."""
    return [backward, backward._replace(kind="W")]


def _passes(kind: str, rank: int, ranks: int, groups: int, chunks: int) -> list[Action]:
    """Of one rank: groups of as many micro-batches as ranks go through its stages."""
    order = range(chunks) if kind == "F" else reversed(range(chunks))
    stages = [chunk * ranks + rank for chunk in order]
    return [
        Action(kind, stage, group * ranks + i)
        for group in range(groups)
        for stage in stages
        for i in range(ranks)
    ]


def _with_update(actions: list[Action]) -> list[Action]:
    return [*actions, Action("U", actions[-1].stage, actions[-1].micro_batch)]


class Stream:
    """PipeDream's schedule: batches follow each other without a flush between them.

    A rank computes ``ranks - 1 - rank`` forward passes ahead, then one forward and one
    backward pass in turn, and updates its parameters after the last backward pass of
    each batch.

    Args:
        rank, ranks: this rank and their number; each has one stage.
        micro_batches: of a batch.
    """

    def __init__(self, rank: int, ranks: int, micro_batches: int) -> None:
        self._rank = rank
        self._warm_up = ranks - 1 - rank
        self._micro_batches = micro_batches
        self._forward = self._backward = 0

    def next_batch(self) -> Iterator[Action]:
        """The actions that one more batch brings."""
        for _ in range(self._micro_batches):
            yield Action("F", self._rank, self._forward)
            self._forward += 1
            if self._forward - self._backward > self._warm_up:
                yield from self._next_backward()

    def drain(self) -> Iterator[Action]:
        """The actions that complete all batches."""
        while self._backward < self._forward:
            yield from self._next_backward()

    def _next_backward(self) -> Iterator[Action]:
        i = self._backward
        self._backward += 1
        yield from _with_weights(Action("B", self._rank, i))
        if self._backward % self._micro_batches == 0:
            yield Action("U", self._rank, i)


class Schedule(NamedTuple):
    """A kind of schedule."""

    #: By rank, ranks and chunks, the forward passes before the first backward pass of
    #: a batch that is flushed; None for all.
    warm_up: Callable[[int, int, int], int] | None = None
    #: Whether a rank may have several stages.
    has_chunks: bool = False
    #: Where batches follow each other without a flush, this rank's actions.
    stream: type[Stream] | None = None

    @property
    def flushes(self) -> bool:
        """Whether a batch is completed before the next one begins."""
        return self.stream is None


SCHEDULES = {
    # All forward passes, then all backward passes (Huang et al., 2019).
    "gpipe": Schedule(),
    # One of each in turn after a warm-up, which holds the activations of at most
    # ``ranks - rank`` micro-batches (Narayanan et al., 2019).
    "1f1b": Schedule(lambda rank, ranks, _: ranks - 1 - rank),
    # This is the same with several stages per rank (Narayanan et al., 2021).
    "interleaved": Schedule(
        lambda rank, ranks, chunks: 2 * (ranks - 1 - rank) + (chunks - 1) * ranks,
        has_chunks=True,
    ),
    "pipedream": Schedule(stream=Stream),
}


def bubble(kind: str, ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """The expected idle time of a rank over its busy time, for equal stages.

    A third of the time is spent on the gradients of weights, for which no rank waits.
    """
    if not SCHEDULES[kind].flushes:
        return 0.0
    return 2 / 3 * (ranks - 1) / (micro_batches * chunks)


class TimedPass(NamedTuple):
    """An action of a rank, and when it runs, in seconds."""

    rank: int
    action: Action
    start: float
    end: float


def timeline(
    schedules: Sequence[Sequence[Action]],
    stages: int,
    seconds_of: Callable[[Action], float],
    message: float = 0.0,
) -> list[TimedPass]:
    """Runs schedules in which ranks wait for nothing but what they need.

    Args:
        schedules: the actions of each rank.
        stages: the number of stages.
        seconds_of: how long an action takes.
        message: seconds from one stage to the next.

    Raises:
        RuntimeError: the ranks wait for each other.
    """
    ends: dict[Action, float] = {}
    clocks, next_actions = [0.0] * len(schedules), [0] * len(schedules)
    passes: list[TimedPass] = []
    while any(i < len(actions) for i, actions in zip(next_actions, schedules)):
        found = len(passes)
        for rank, actions in enumerate(schedules):
            while next_actions[rank] < len(actions):
                action = actions[next_actions[rank]]
                needs = _needs(action, stages, message)
                if any(need not in ends for need, _ in needs):
                    break
                arrivals = [ends[need] + delay for need, delay in needs]
                start = max([clocks[rank], *arrivals])
                clocks[rank] = ends[action] = start + seconds_of(action)
                passes.append(TimedPass(rank, action, start, clocks[rank]))
                next_actions[rank] += 1
        if len(passes) == found:
            waiting = [a[i : i + 1] for a, i in zip(schedules, next_actions)]
            raise RuntimeError(f"timeline: the ranks wait for each other: {waiting}")
    return passes


def _needs(action: Action, stages: int, message: float) -> list[tuple[Action, float]]:
    """What has to be complete before, with the seconds until it is known here."""
    kind, stage, i = action
    if kind == "F":
        return [(Action("F", stage - 1, i), message)] if stage > 0 else []
    if kind in ("W", "U"):
        return []
    own = [(Action("F", stage, i), 0.0)]
    if stage < stages - 1:
        own.append((Action("B", stage + 1, i), message))
    return own
