"""The state that a recomputed function needs from its first run."""

from __future__ import annotations

import contextlib
import pickle
import random
import threading
from collections.abc import Iterator
from typing import Any, Callable, TypeVar

import numpy

from renga.core.configuration import (
    config,
    force_backprop_mode,
    override,
    using_config,
    values_of,
)
from renga.core.variable import Variable
from renga.functions.util.link_states import LinkStates

_Result = TypeVar("_Result")


class Recomputation:
    """A function that is run, and later recomputed with the same results.

    ``again`` has the settings of the first run and draws the same random numbers
    from NumPy's and Python's global generators, whose state it restores.
    ``remembered`` values are not recomputed. Variables that links keep as
    attributes (the state of an LSTM, a loss) are further inputs and outputs.
    """

    def __init__(self, func: Callable[..., object]) -> None:
        self.function = func
        self._values: list[Any] = []
        self.states = LinkStates()

    def first(self, xs: tuple[Variable, ...]) -> Any:
        """The outputs of ``func(*xs)``, followed by the link attributes that it set."""
        self._settings = values_of(config)
        before = random_states()
        with _on_tape(_Tape(self._values, replays=False)), self.states.observed():
            ys = self.function(*xs)
        # Without draws, the backward pass need not restore generators.
        self._random = None if before == random_states() else before
        return ys

    def again(self, xs: tuple[Variable, ...], states: tuple[Variable, ...]) -> Any:
        """The same for ``xs`` and the links' attributes ``states``, with the graph."""
        with contextlib.ExitStack() as stack:
            for name, value in self._settings.items():
                if getattr(config, name, None) is not value:
                    stack.enter_context(override(name, value))
            stack.enter_context(force_backprop_mode())
            stack.enter_context(using_config("in_recomputing", True))
            stack.enter_context(_random_states_of(self._random))
            stack.enter_context(_on_tape(_Tape(self._values, replays=True)))
            written = stack.enter_context(self.states.replayed(states))
            return self.function(*xs), written()


class _Tape:
    """Values that the first run stores and later runs read in the same order."""

    def __init__(self, values: list[Any], replays: bool) -> None:
        self.values = values
        self.replays = replays
        self._next = 0

    def take(self) -> Any:
        self._next += 1
        return self.values[self._next - 1]


class _Tapes(threading.local):
    def __init__(self) -> None:
        self.open: list[_Tape] = []


_tapes = _Tapes()


def remembered(compute: Callable[[], _Result]) -> _Result:
    """``compute()``; when recomputed, its value in the first run.

    For values that do not depend on inputs alone, such as running statistics.
    """
    if not _tapes.open:
        return compute()
    replayed = [tape.take() for tape in _tapes.open if tape.replays]
    value = replayed[0] if replayed else compute()
    for tape in _tapes.open:
        if not tape.replays:
            tape.values.append(value)
    return value


def is_recomputable() -> bool:
    """Whether the running function is or will be recomputed."""
    return bool(_tapes.open)


@contextlib.contextmanager
def _on_tape(tape: _Tape) -> Iterator[None]:
    _tapes.open.append(tape)
    try:
        yield
    finally:
        _tapes.open.pop()


def random_states() -> bytes:
    """Those of NumPy's and Python's global generators."""
    return pickle.dumps((numpy.random.get_state(legacy=False), random.getstate()))


def set_random_states(states: bytes) -> None:
    """Continues from what :func:`random_states` has returned."""
    of_numpy, of_python = pickle.loads(states)
    numpy.random.set_state(of_numpy)
    random.setstate(of_python)


@contextlib.contextmanager
def _random_states_of(states: bytes | None) -> Iterator[None]:
    if states is None:
        yield
        return
    now = random_states()
    set_random_states(states)
    try:
        yield
    finally:
        set_random_states(now)
