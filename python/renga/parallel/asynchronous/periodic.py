"""What the optimizers have in common whose ranks meet every few updates."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy

from renga.communicators import Communicator
from renga.core.optimizer import GradientMethod
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Array
from renga.parallel.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.parallel.asynchronous.parameter_watch import ParameterWatch
from renga.parallel.data.sample_weighting import UNKNOWN_SAMPLES


class Meeting(NamedTuple):
    """What the ranks say about themselves when they meet, each an array by rank."""

    updates: Array  # since the last meeting
    samples: Array  # of these updates, or UNKNOWN_SAMPLES
    joined: Array  # whether the rank has called join()
    changed: Array  # whether its caller has written into parameters
    trained: Array  # of each parameter, whether one with its array was not frozen


class PeriodicOptimizer(AsynchronousOptimizer):
    """Updates this rank's parameters; every few updates, all ranks meet.

    A rank that has no more data takes part in ``join()``. What the caller has written
    into parameters, of the first rank where this was done, holds for all ranks from the
    next meeting on. A subclass meets in ``_meet``.
    """

    _name: str  # of what is saved beside the actual optimizer

    _updates: int
    _total_samples: int
    _has_changed: bool
    _trained: Array
    _watch: ParameterWatch
    _left: list[Array]

    def __init__(
        self, actual_optimizer: GradientMethod, communicator: Communicator, every: int
    ) -> None:
        super().__init__(actual_optimizer, communicator)
        vars(self).update(
            _every=every,
            _updates=0,  # since the last meeting, as is what follows
            _total_samples=0,
            _has_changed=False,
            _trained=numpy.zeros(0, numpy.bool_),
            _watch=None,  # once all ranks have begun
            _left=[],  # in the parameters by the last update, if a file has it
        )

    def _after_begin(self, resumes: bool) -> None:
        params = self._packed.params
        if not (resumes and len(self._trained) == len(params)):
            self._updates = self._total_samples = 0
            self._trained = numpy.zeros(len(params), numpy.bool_)
        self._watch = ParameterWatch(params)
        if resumes:
            self._watch.expect(self._left)
        self._left = []

    def _update(self, forward: Callable[[], Any] | None) -> None:
        self._note_changes()
        self._compute_gradients(forward)
        self._update_alone()
        self._updates += 1
        if self._samples is None or self._total_samples == UNKNOWN_SAMPLES:
            self._total_samples = UNKNOWN_SAMPLES
        else:
            self._total_samples += self._samples
        self._trained |= self._packed.are_trained()
        if self._updates >= self._every:
            self._exchange(has_joined=False)
        self._watch.record()

    def _note_changes(self) -> None:
        """Makes the changes that the caller has made to parameters, elsewhere too."""
        masks = self._watch.changes()
        if masks:
            self._has_changed = True
            self._change([param.array for param in self._packed.params], masks)
            self._watch.record()

    def _after_load(self) -> None:
        self._has_changed = True
        self._after_begin(resumes=True)  # what else is kept has been loaded, too

    def _exchange(self, has_joined: bool) -> bool:
        """Has the ranks meet; whether all of them have joined."""
        own = [self._updates, self._total_samples, has_joined, self._has_changed]
        said = self.communicator.all_gather(numpy.array([*own, *self._trained]))
        updates, samples, joined, changed = said.T[:4]
        trained = said[:, 4:].any(axis=0)
        meeting = Meeting(updates, samples, joined, changed, trained)
        if meeting.updates.any() or meeting.changed.any() or not meeting.joined.all():
            self._meet(meeting)
            self._watch.record()
        self._updates = self._total_samples = 0
        self._has_changed = False
        self._trained[:] = False
        return bool(meeting.joined.all())

    def _join(self) -> None:
        """Meets the other ranks until all of them call this."""
        if not self._begin_to_join():
            return
        self._note_changes()
        while not self._exchange(has_joined=True):
            pass

    def _change(self, arrays: list[Array], masks: list[Array]) -> None:
        """Copies what masks choose of the parameters' arrays to where it is kept."""
        raise NotImplementedError

    def _meet(self, meeting: Meeting) -> None:
        """Exchanges parameters; every rank calls it."""
        raise NotImplementedError

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and what counts for the next meeting."""
        super().serialize(serializer)
        own = serializer[self._name]
        self._updates = own("updates", self._updates)
        self._total_samples = own("samples", self._total_samples)
        self._has_changed = own("changed", self._has_changed)
        is_loading = isinstance(serializer, Deserializer)
        self._trained = own("trained", None if is_loading else self._trained)
        left = [] if self._watch is None else self._watch.expected
        found = serialize_arrays(own, "left", left)
        if is_loading:
            self._left = found


def serialize_arrays(
    serializer: AbstractSerializer, name: str, arrays: list[Array]
) -> list[Array]:
    """Saves or loads any number of arrays; those that are in the file then."""
    count = serializer(f"{name}s", len(arrays))
    if isinstance(serializer, Deserializer):
        return [serializer(f"{name}_{i}", None) for i in range(count)]
    for i, x in enumerate(arrays):
        serializer(f"{name}_{i}", x)
    return arrays
