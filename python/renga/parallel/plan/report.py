"""What a report says about the strategies that a search has found."""

from __future__ import annotations

from collections.abc import Sequence

from renga.parallel.plan.markov_chain import Found
from renga.parallel.plan.space import Choice, Space, others


def data_start(found: Sequence[Found]) -> Found:
    """Data parallelism, from which one of the searches started."""
    return next((f for f in found if f.start == "data" and not f.proposals), found[-1])


def starts(found: Sequence[Found]) -> dict[str, float]:
    """The predicted seconds of the strategies from which searches started."""
    return {f.start: f.seconds for f in found if not f.proposals}


def next_best(space: Space[Choice], found: Found, variables: Sequence[int]) -> str:
    """The best of the other choices of some variables, one changed at a time.

    Choices that take exactly as long are other names of the same strategy.
    """
    best: tuple[float, str] | None = None
    for variable in variables:
        own = found.choices[variable]
        for other in others(space, variable, own):
            space.change(variable, other)
            seconds = space.seconds()
            is_other = seconds != found.seconds
            if is_other and (best is None or seconds < best[0]):
                best = seconds, space.describe(variable, other)
        space.change(variable, own)
    if best is None:
        return ""
    return f"{best[1]} ({best[0] / found.seconds - 1:+.1%})"
