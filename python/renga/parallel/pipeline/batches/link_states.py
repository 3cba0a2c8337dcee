"""The states of recurrent links in micro-batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from renga.core.configuration import no_backprop_mode
from renga.core.link import Link
from renga.core.variable import Variable
from renga.functions import concat, get_item
from renga.functions.util.link_states import is_state

# Values of attributes, by the position of a link and the attribute's name.
States = dict[tuple[int, str], Any]
_ABSENT = object()


class MicroBatchStates:
    """Has each micro-batch begin with the states of its own samples.

    States are the Variables that links with a method ``reset_state`` keep as
    attributes. Between batches they are those of all samples, as in one process, and
    have no graph: a backward pass ends at the beginning of its batch. A rank has those
    of its own stages, and of others the shapes.

    Args:
        model: whose links are looked at.
    """

    def __init__(self, model: Link) -> None:
        self._links = [link for link in model.links() if hasattr(link, "reset_state")]
        self._sizes: Sequence[int] = ()
        self._before: list[dict[str, Any]] = []  # the attributes of each link
        self._after: dict[int, list[States]] = {}  # of each stage and micro-batch

    def begin(self, sizes: Sequence[int]) -> None:
        """Begins a batch.

        Args:
            sizes: the numbers of samples of its micro-batches.
        """
        self._sizes = sizes
        self._before = [dict(vars(link)) for link in self._links]
        self._after = {}

    @contextlib.contextmanager
    def of_forward(self, stage: int) -> Iterator[None]:
        """Around the forward pass of the next micro-batch of a stage."""
        done = self._after.setdefault(stage, [])
        i = len(done)
        start = sum(self._sizes[:i])
        own = slice(start, start + self._sizes[i])
        previous = done[-1] if done else {}
        written = [states for stage in self._after.values() for states in stage[-1:]]
        keys = {key for states in [self._states_before(), *written] for key in states}
        for key in keys:
            value = self._before[key[0]].get(key[1], _ABSENT)
            if is_state(value):
                axis = _axis_of([value], [sum(self._sizes)])
                if axis is not None:
                    value = _indexed(value, (slice(None),) * axis + (own,))
                else:
                    value = _indexed(previous.get(key, value), ...)
            self._set(key, value)
        try:
            yield
        except BaseException:
            for key in {*keys, *self._states()}:
                self._set(key, self._before[key[0]].get(key[1], _ABSENT))
            raise
        done.append(self._states())

    def end(self) -> None:
        """Sets the states of all samples, once all forward passes have been run."""
        found: dict[tuple[int, str], list[Variable]] = {}
        for stage, states in self._after.items():
            for key in states[-1]:
                values = [each[key] for each in states if key in each]
                if key not in found or values[-1].stage == stage:
                    found[key] = values
        for key, values in found.items():
            self._set(key, self._joined(values))
        self._before, self._after = [], {}

    def _joined(self, values: list[Variable]) -> Variable:
        axis = _axis_of(values, self._sizes)
        if axis is None or len(values) == 1:
            return _indexed(values[-1], ...)
        with no_backprop_mode():
            return _with_stage(concat(values, axis), values[-1])

    def _states_before(self) -> States:
        return {
            (i, name): value
            for i, attributes in enumerate(self._before)
            for name, value in attributes.items()
            if is_state(value)
        }

    def _states(self) -> States:
        return {
            (i, name): value
            for i, link in enumerate(self._links)
            for name, value in vars(link).items()
            if is_state(value)
        }

    def _set(self, key: tuple[int, str], value: Any) -> None:
        attributes = vars(self._links[key[0]])
        if value is _ABSENT:
            attributes.pop(key[1], None)
        else:
            attributes[key[1]] = value


def _axis_of(values: Sequence[Variable], sizes: Sequence[int]) -> int | None:
    """The first axis with these numbers of samples in Variables, None if none is."""
    if len(values) != len(sizes):
        return None
    for axis in range(min(value.ndim for value in values)):
        if all(value.shape[axis] == size for value, size in zip(values, sizes)):
            return axis
    return None


def _indexed(value: Any, index: Any) -> Any:
    """A part of a Variable, without a graph; a value of another type as it is."""
    if not isinstance(value, Variable):
        return value
    with no_backprop_mode():
        return _with_stage(get_item(value, index), value)


def _with_stage(value: Variable, source: Variable) -> Variable:
    value.stage = source.stage
    return value
