"""Searches that change one choice after another or try all, and what they found."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.parallel.plan.space import Choice, Space, others, take

# The probability to accept a step that is longer by a share d is exp(-beta d); beta
# grows from the first to the second value.
_BETA = (20.0, 2000.0)


class Found(NamedTuple):
    """The choices of a strategy and its predicted seconds."""

    choices: list[Any]
    seconds: float
    start: str  # from which it was found
    proposals: int


def markov_chain(
    space: Space[Choice],
    start: str,
    seconds: float,
    seed: int = 0,
    proposals: int | None = None,
    memory: float = math.inf,
) -> Found:
    """Changes one choice after another at random (Markov chain Monte Carlo).

    A change is kept if the step gets shorter, and otherwise with a probability that
    falls with the loss. It stops at the budget, or when half of it brought nothing.

    Source: Jia et al., Beyond data and model parallelism for deep neural networks,
    2019 (FlexFlow).

    Args:
        space: its current strategy is the start, and changes.
        start: its name.
        seconds: the budget, unless ``proposals`` gives it as a number of changes. With
            that, equal seeds find equal strategies on every machine.
        memory: bytes that a rank has.
    """
    generator, begun = random.Random(seed), time.perf_counter()
    choices = space.current
    current = space.seconds()
    best = Found(list(choices), current, start, 0)
    progress = last = 0.0  # shares of the budget
    count = 0
    while choices and progress < 1 and progress - last < 0.5:
        count += 1
        if proposals is not None:
            progress = count / max(1, proposals)
        else:
            progress = (time.perf_counter() - begun) / seconds
        variable = generator.randrange(len(choices))
        before, choice = choices[variable], space.draw(variable, generator)
        space.change(variable, choice)
        proposed = space.seconds()
        beta = _BETA[0] * (_BETA[1] / _BETA[0]) ** min(progress, 1.0)
        loss = (proposed - current) / current
        is_kept = loss <= 0 or generator.random() < math.exp(-beta * loss)
        if not is_kept or (memory < math.inf and space.memory() > memory):
            space.change(variable, before)
            continue
        current, choices[variable] = proposed, choice
        if current < best.seconds:
            best, last = Found(list(choices), current, start, count), progress
    return best._replace(proposals=count)


def search_space(
    space: Space[Choice],
    seconds: float,
    seed: int = 0,
    proposals: int | None = None,
    memory: float = math.inf,
) -> list[Found]:
    """Chains from each start, which share the budget; the shortest step first.

    The starts themselves are among the results.

    Raises:
        ValueError: no strategy that was found fits into the memory.
    """
    found = []
    starts = space.starts(random.Random(seed))
    for i, (name, choices) in enumerate(starts.items()):
        own = Found(choices, take(space, choices), name, 0)
        share = None if proposals is None else proposals // len(starts)
        budget = seconds / len(starts)
        found += [own, markov_chain(space, name, budget, seed + i, share, memory)]
    fitting = []
    for candidate in found:
        take(space, candidate.choices)
        if space.memory() <= memory:
            fitting.append(candidate)
    if not fitting:
        raise ValueError(
            f"search: expected a strategy that needs {memory / 1e9:.2f} GB or less on "
            f"each rank, found none"
        )
    return sorted(fitting, key=lambda f: f.seconds)


def descend(
    space: Space[Choice],
    found: Found,
    memory: float = math.inf,
    sweeps: float = math.inf,
) -> Found:
    """Changes one choice after another to the best one, until none gets better.

    Of many choices a sample is tried.

    Args:
        found: where to start.
        memory: bytes that a rank has.
        sweeps: the most times that all choices are changed.
    """
    choices, best = list(found.choices), take(space, found.choices)
    has_changed = True
    while has_changed and sweeps > 0:
        has_changed, sweeps = False, sweeps - 1
        for variable in range(len(choices)):
            for other in others(space, variable, choices[variable]):
                space.change(variable, other)
                seconds = space.seconds()
                if seconds < best and space.memory() <= memory:
                    best, choices[variable], has_changed = seconds, other, True
            space.change(variable, choices[variable])
    return found._replace(choices=choices, seconds=best)


def exhaustive(space: Space[Choice]) -> Found:
    """The best of all strategies, for small spaces."""
    best: Found | None = None
    options = [space.choices(i) for i in range(len(space.current))]
    for count, choices in enumerate(itertools.product(*options), 1):
        seconds = take(space, choices)
        if best is None or seconds < best.seconds:
            best = Found(list(choices), seconds, "exhaustive", count)
    assert best is not None  # every variable has a choice
    return best


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
