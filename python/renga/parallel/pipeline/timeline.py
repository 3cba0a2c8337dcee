"""When the ranks of a pipeline compute what, predicted from the times of its stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from renga.parallel.pipeline.schedule import Action


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
