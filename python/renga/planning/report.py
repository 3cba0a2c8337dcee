"""What a report says about the strategies that a search has found."""

from __future__ import annotations

import random
from collections.abc import Sequence

from renga.planning.markov_chain import Found
from renga.planning.space import Space

# What is tried for the column "next best" where there are more choices.
_COMPARED = 12


def data_start(found: Sequence[Found]) -> Found:
    """Data parallelism, from which one of the searches started."""
    return next((f for f in found if f.start == "data" and not f.proposals), found[-1])


def starts(found: Sequence[Found]) -> dict[str, float]:
    """The predicted seconds of the strategies from which searches started."""
    return {f.start: f.seconds for f in found if not f.proposals}


def next_best(space: Space, found: Found, variables: Sequence[int]) -> str:
    """The best of the other choices of some variables, one changed at a time.

    Choices that take exactly as long are other names of the same strategy.
    """
    best: tuple[float, str] | None = None
    generator = random.Random(0)
    for variable in variables:
        own, options = found.choices[variable], list(space.choices(variable))
        others = [option for option in options if option != own]
        if len(others) > _COMPARED:
            others = generator.sample(others, _COMPARED)
        for other in others:
            space.change(variable, other)
            seconds = space.seconds()
            is_other = seconds != found.seconds
            if is_other and (best is None or seconds < best[0]):
                best = seconds, space.describe(variable, other)
        space.change(variable, own)
    if best is None:
        return ""
    return f"{best[1]} ({best[0] / found.seconds - 1:+.1%})"
