"""Runs the schedule of a pipeline on this rank."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from renga.core.variable import Variable
from renga.parallel.pipeline.batches import micro_batches, results
from renga.parallel.pipeline.batches.link_states import MicroBatchStates
from renga.parallel.pipeline.batches.noted_calls import NotedCalls
from renga.parallel.pipeline.batches.reductions import EqualShares
from renga.parallel.pipeline.batches.running_statistics import RunningStatistics
from renga.parallel.pipeline.schedule import Action
from renga.parallel.pipeline.stages.messages import Kind, Route, StageMessages
from renga.parallel.pipeline.stages.outer_leaves import OuterLeaves
from renga.parallel.pipeline.stages.stage_run import Outputs, StageRun
from renga.parallel.pipeline.stages.tracing import Tracing
from renga.parallel.pipeline.weights import Flush, Weights

RECOMPUTE = ("none", "all", "except_last")

# Micro-batches reported these values, whose means are over so many samples.
Observations = list[tuple[dict[str, Any], float]]


class MicroBatch(NamedTuple):
    """One part of a batch.

    ``samples`` is how many samples its means are over, of ``total`` in the batch, None
    if that does not count; ``factor`` is what its numbers, as the loss, are multiplied
    by in those of the batch. ``shares`` compares how many of the samples count in the
    parts of one update; None where that does not matter.
    """

    program: Callable[..., Any]
    inputs: tuple[Any, ...]
    size: int  # the number of its samples
    samples: float
    total: float | None
    factor: float
    loss_scale: float | None  # of the gradients
    is_last: bool  # before an update
    shares: EqualShares | None


class Executor:
    """Computes micro-batches on the stages of this rank.

    Args:
        messages: between the stages.
        tracing: told of passes and messages.
        weights: the versions of the parameters to compute with.
        update: updates the parameters of this rank from their gradients, which come
            from so many samples; None for forward passes only.
        outer_leaves: told of what the program reads beside the model; None for forward
            passes only, and on one rank.
        states: of the model's links.
        numbers: persistent ones of the model's links.
        stages: how many stages this rank has.
        recompute: which micro-batches are computed again in their backward pass:
            ``none``, ``all`` or ``except_last``, all but the last of each batch.
        deferred_batch_norm: whether running statistics follow whole batches.
    """

    def __init__(
        self,
        messages: StageMessages,
        tracing: Tracing,
        weights: Flush,
        update: Callable[[float | None], None] | None,
        outer_leaves: OuterLeaves | None,
        states: MicroBatchStates,
        numbers: NotedCalls,
        stages: int,
        recompute: str,
        deferred_batch_norm: bool,
    ) -> None:
        self._messages = messages
        self._tracing = tracing
        self._weights = weights
        self._update = update
        self._outer_leaves = outer_leaves
        self._states = states
        self._numbers = numbers
        self._recompute = recompute
        # Each stage has its own statistics.
        self._statistics: dict[int, RunningStatistics] = {}
        self._defers_statistics = deferred_batch_norm
        self._has_several_stages = stages > 1
        self._micro_batches: dict[int, MicroBatch] = {}
        self._runs: dict[tuple[int, int], tuple[StageRun, Weights]] = {}
        self._outputs: Outputs = {}
        # The last forward pass of a stage received these, by the shapes of its inputs.
        self._received: dict[tuple[Any, ...], list[tuple[Route, Kind]]] = {}
        self._random_states: dict[int, Any] = {}
        self._observations: dict[int, dict[str, Any]] = {}
        self.results: dict[int, Any] = {}
        self.trains = update is not None
        self._updates = 0
        self._has_gradients = False  # of the present batch
        self._last: MicroBatch | None = None  # whose gradients have been added

    def add(self, first: int, batch: Sequence[MicroBatch]) -> None:
        """Takes the micro-batches of a batch, with the numbers from ``first`` on."""
        for i, micro_batch in enumerate(batch, first):
            self._micro_batches[i] = micro_batch
            self._numbers.begin(i)
        self._states.begin([micro_batch.size for micro_batch in batch])
        self._weights.begin_batch()

    def run(self, actions: Iterable[Action], last: int | None = None) -> None:
        """Runs actions in their order.

        Args:
            actions: of this rank.
            last: the last micro-batch, if none follows these actions.
        """
        self._weights.take_gradients_back()
        queue = list(actions)
        for i, action in enumerate(queue):
            start = time.perf_counter_ns()
            self._expect(queue[i : i + 3])
            if action.kind == "F":
                self._forward(action.stage, action.micro_batch)
            elif action.kind == "B":
                self._backward(action.stage, action.micro_batch, last)
            elif action.kind == "W":
                self._complete_gradients(action.stage, action.micro_batch)
            elif self._last is not None:
                self._leave_random_states()
                self._update_by(self._last.loss_scale, self._last.total)
                self._updates += 1
                self._has_gradients = False
            self._tracing.note_pass(action, start)

    def update_without_gradients(
        self, loss_scale: float | None, total: float | None
    ) -> None:
        """Updates the parameters for a batch without samples."""
        self._weights.cleargrads()
        self._update_by(loss_scale, total)

    def _update_by(self, loss_scale: float | None, total: float | None) -> None:
        assert self._update is not None  # there are no gradients without
        self._weights.set_loss_scale(loss_scale)
        self._update(total)
        self._weights.after_update()

    def _expect(self, actions: Sequence[Action]) -> None:
        """Receives ahead what the first two forward passes among these will need.

        A pass whose messages are not known ends it: those of a route keep their order.
        """
        for action in [action for action in actions if action.kind == "F"][:2]:
            if action.micro_batch not in self._micro_batches:
                return
            kinds = self._received.get(self._signature(action))
            if kinds is None:
                return
            if not any(self._messages.expected(*each) for each in kinds):
                for route, kind in kinds:
                    self._messages.expect(route, kind)

    def _signature(self, action: Action) -> tuple[Any, ...]:
        inputs = self._micro_batches[action.micro_batch].inputs
        return (action.stage, *micro_batches.signature(inputs))

    def _forward(self, stage: int, i: int) -> None:
        micro_batch = self._micro_batches[i]
        weights = self._weights.of_forward(i)
        run = StageRun(
            *(stage, self._messages, self._tracing, weights),
            *(self._outputs, self._outer_leaves),
        )
        recompute = self.trains and (
            self._recompute == "all"
            or (self._recompute == "except_last" and not micro_batch.is_last)
        )
        self._set_random_state(i)
        with (
            self._deferring_statistics(stage, micro_batch),
            self._states.of_forward(stage),
            self._numbers.of_pass(i),
        ):
            run.forward(micro_batch.program, micro_batch.inputs, recompute)
        if self._outer_leaves is not None:
            self._outer_leaves.end_forward()
        if self._has_several_stages and i + 1 not in self._random_states:
            self._random_states[i + 1] = numpy.random.get_state()
        if micro_batch.shares is not None:
            micro_batch.shares.require(stage, run.counted, micro_batch.samples)
        self._observations.setdefault(i, {}).update(run.observation)
        self._received[self._signature(Action("F", stage, i))] = run.received_kinds()
        if not self.trains:
            own = results.arrays_of(run.result)
            self.results[i] = results.merged([own, self.results.get(i, own)])
            return
        _check_loss(run.result)
        self._runs[stage, i] = (run, weights)
        # Without its graph, a pass does not know which values need gradients.
        if self._recompute == "none":
            run.expect_gradients()

    @contextlib.contextmanager
    def _deferring_statistics(
        self, stage: int, micro_batch: MicroBatch
    ) -> Iterator[None]:
        """Has running statistics updated once for a batch, if that is wanted."""
        if not self._defers_statistics:
            yield
            return
        statistics = self._statistics.setdefault(stage, RunningStatistics())
        with statistics:
            yield
        if micro_batch.is_last:
            statistics.update()

    def _set_random_state(self, i: int) -> None:
        """Lets every stage of this rank draw the same numbers for a micro-batch."""
        if not self._has_several_stages:
            return
        if i not in self._random_states:
            self._random_states = {i: numpy.random.get_state()}
        numpy.random.set_state(self._random_states[i])

    def _leave_random_states(self) -> None:
        """Continues after the random numbers of the last micro-batch."""
        if self._has_several_stages and self._random_states:
            numpy.random.set_state(self._random_states[max(self._random_states)])
            self._random_states = {}

    def _backward(self, stage: int, i: int, last: int | None) -> None:
        run, weights = self._runs[stage, i]
        if not self._has_gradients:  # those of the last update are there until now
            self._weights.cleargrads()
            self._has_gradients = True
        self._weights.before_backward(i, weights, last)
        micro_batch = self._micro_batches[i]
        self._last = micro_batch
        with self._numbers.of_pass(i, is_first=False):
            run.recompute()
        run.backward(micro_batch.factor * (micro_batch.loss_scale or 1.0))

    def _complete_gradients(self, stage: int, i: int) -> None:
        """Computes the gradients that the backward pass has left for later."""
        run, weights = self._runs.pop((stage, i))
        run.complete_gradients()
        self._weights.after_backward(weights)

    def take_updates(self) -> int:
        """The number of updates since the last call."""
        updates, self._updates = self._updates, 0
        return updates

    def finish(self, is_flushed: bool) -> Observations:
        """Ends a batch; what its micro-batches reported, and their counts.

        Args:
            is_flushed: whether all ranks have completed their passes; otherwise some
                receive what has been sent in a later batch.
        """
        self._states.end()
        if is_flushed:
            self._messages.wait()
        elif self._has_gradients:
            self._weights.set_gradients_aside()
        self._leave_random_states()
        observations, self._observations = self._observations, {}
        weighted = [
            (each, self._micro_batches[i].samples) for i, each in observations.items()
        ]
        pending = {i for _, i in self._runs}
        self._micro_batches = {
            i: each for i, each in self._micro_batches.items() if i in pending
        }
        self._numbers.end(pending)
        return weighted


def _check_loss(loss: Any) -> None:
    """Raises TypeError for what has no gradient of one number."""
    if not isinstance(loss, Variable) or loss.size != 1:
        shape = f" of shape {loss.shape}" if isinstance(loss, Variable) else ""
        raise TypeError(
            "pipeline: expected a Variable of one element from the loss function, got "
            f"{type(loss).__name__}{shape}"
        )
