"""Runs batches through a pipeline."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from renga.communicators import Communicator
from renga.core import reporter
from renga.core.configuration import config, no_backprop_mode, using_config
from renga.core.dtypes import mixed_bfloat16
from renga.core.link import Link
from renga.core.link.traces import traces_of
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.core.variable import Variable
from renga.functions.util.recomputation import random_states, set_random_states
from renga.parallel.pipeline import schedule, weights
from renga.parallel.pipeline.agreement import (
    COMPLETION,
    CallsOnTheWay,
    Failures,
    completes,
)
from renga.parallel.pipeline.batches import micro_batches, results
from renga.parallel.pipeline.batches.link_states import MicroBatchStates
from renga.parallel.pipeline.batches.noted_calls import NotedCalls
from renga.parallel.pipeline.batches.reductions import (
    RESULT,
    EqualShares,
    Reductions,
    reductions_of,
    weights_of,
)
from renga.parallel.pipeline.batches.seen_programs import SeenProgram, SeenPrograms
from renga.parallel.pipeline.executor import Executor, MicroBatch, Observations
from renga.parallel.pipeline.preparation import Options
from renga.parallel.pipeline.schedule import Action, Stream
from renga.parallel.pipeline.stages.messages import StageMessages
from renga.parallel.pipeline.stages.outer_leaves import OuterLeaves
from renga.parallel.pipeline.stages.tracing import Tracing
from renga.utils.exceptions import describe
from renga.utils.type_check import InvalidType


class Look(NamedTuple):
    """What is known of a program, and what is not, before it is run.

    Attributes:
        known: of the program; None if it is told how batches are put together, or if
            they are not divided.
        parts: of the batches, of two micro-batches each, with values of kinds that the
            program was not seen with.
    """

    known: SeenProgram | None
    parts: Sequence[tuple[Any, ...]]


class Runner:
    """Runs batches forward, or forward and backward with an update.

    Every rank makes it, and makes the same calls.

    Args:
        model: the whole model.
        comm: the ranks of the pipeline.
        n_stages: the number of stages.
        options: of the pipeline.
        samples: how many samples a mean is over, of the arguments of a micro-batch;
            None if all count.
    """

    def __init__(
        self,
        model: Link,
        comm: Communicator,
        n_stages: int,
        options: Options,
        samples: Callable[..., float] | None,
    ) -> None:
        self._comm = comm
        self._n_stages = n_stages
        self._options = options
        self._samples = samples
        self._model = model
        self.failures = Failures()
        self._stream: Stream | None = None
        self.renew_messages()
        self._outer_leaves = (
            OuterLeaves(comm, options.flushes) if comm.size > 1 else None
        )
        self._tracing = Tracing(comm)
        self._states = MicroBatchStates(model)
        self._optimizer: Any = None  # of the last batch
        self._programs = SeenPrograms()
        self.restart()

    @property
    def is_streaming(self) -> bool:
        """Whether batches may be on their way."""
        return self._stream is not None

    def renew_messages(self) -> None:
        """Leaves behind the messages of batches that have failed; every rank calls it.

        Nobody receives them: others would be taken for those of later batches.
        """
        options = self._comm, self._n_stages, self.failures
        # Batches in training may be on their way while others are evaluated.
        self._evaluation_messages = StageMessages(*options)
        if not self.is_streaming:
            self._messages = StageMessages(*options)
        self.failures.has_failed = False

    @contextlib.contextmanager
    def _noting_failure(self, messages: StageMessages) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.failures.has_failed = self.failures.may_be_alone = True
            if self.is_streaming and messages is self._messages:
                self.failures.refuse(
                    "Pipeline: expected no error while batches are on their way, which "
                    f"are lost by it, got {describe(error)}: make the pipeline again"
                )
            messages.tell_failure(error)
            raise

    def restart(self) -> None:
        """Has later batches start from the current parameters."""
        self._executor: Executor | None = None
        self._stream = None
        self._next = 0  # micro-batch of the stream
        told = self._messages.told_failure
        self._calls = CallsOnTheWay(self._comm, self.failures, told)

    def forward(
        self, program: Callable[..., object], inputs: Sequence[object], look: Look
    ) -> Any:
        """The program's result for a batch, on every rank.

        A batch is not divided where its numbers are not known from those of parts.

        Args:
            program: the model.
            inputs: its arguments.
            look: at these, from :meth:`look`.
        """
        with no_backprop_mode():
            found = self._reductions_of(program, [inputs], look)
            parts = 1 if found.unknown() else self._options.micro_batches
            (batch,) = self._micro_batches(program, [inputs], found.of_result, parts)
            ys, observations = self._computed(batch)
        self._report(observations, found)
        sizes = [micro_batch.size for micro_batch in batch]
        factors = [micro_batch.factor for micro_batch in batch]
        joined = results.join(ys, sizes, factors, self._options.batch_axis)
        return results.variables_of(joined)

    def _computed(self, batch: Sequence[MicroBatch]) -> tuple[list[Any], Observations]:
        """The results of micro-batches, and what they reported on this rank."""
        flush = weights.Flush([], None, self._comm.rank, self._comm.size, 1)
        messages = self._evaluation_messages
        executor = self._new_executor(flush, None, None, messages)
        executor.add(0, batch)
        with self._noting_failure(messages):
            for stage in range(self._comm.rank, self._n_stages, self._comm.size):
                executor.run(Action("F", stage, i) for i in range(len(batch)))
            observations = executor.finish(is_flushed=True)
            self._meet(messages)
        own = [executor.results[i] for i in range(len(batch))]
        if not all(map(results.is_complete, own)) or self._comm.size > 1:
            own = [results.merged(ys) for ys in zip(*self._comm.allgather_obj(own))]
        return own, observations

    def _meet(self, messages: StageMessages) -> None:
        """Returns when all ranks have computed their parts of a batch."""
        if self._comm.size > 1:
            work = self._comm.all_gather(numpy.zeros(0), wait=False)
            is_there = functools.partial(completes, work)
            self.failures.wait_for_others(is_there, messages.told_failure)

    def train(
        self,
        optimizer: Optimizer,
        params: Sequence[Parameter],
        program: Callable[..., object],
        batches: Sequence[Sequence[object]],
        look: Look,
    ) -> None:
        """Computes the gradient of batches, as of one, and updates the parameters.

        Args:
            optimizer: of this rank's parameters.
            params: these.
            program: computes the loss.
            batches: its arguments.
            look: at these, from :meth:`look`.
        """
        if self._optimizer is not optimizer:
            self.drain()
            self.restart()
            self._optimizer = optimizer
        found = self._reductions_of(program, batches, look)
        if found.unknown():
            raise ValueError(
                f"Pipeline: expected {found.unknown()} that is the mean or the sum of "
                "those of micro-batches, got neither, or only zeros: pass "
                "reduce='mean' or 'sum', or samples= where some samples do not count"
            )
        if self._executor is None:
            kind = weights.KINDS[self._options.weights]
            rank, ranks = self._comm.rank, self._comm.size
            versions = kind(params, optimizer, rank, ranks, self._options.micro_batches)
            update = _update_of(optimizer)
            self._executor = self._new_executor(
                versions, update, self._outer_leaves, self._messages
            )
        sizes = {self._number_of_samples(inputs) for inputs in batches}
        if sizes == {0} and hasattr(optimizer, "samples"):  # other replicas have some
            total = 0.0 if found.of_result == "mean" else None
            self._executor.update_without_gradients(optimizer.loss_scale, total)
            return
        n, scale = self._options.micro_batches, optimizer.loss_scale
        parts = self._micro_batches(program, batches, found.of_result, n, scale)
        if not self._options.flushes:
            self._run_stream(self._executor, parts[0], found)
            return
        try:
            with self._noting_failure(self._messages):
                self._run_flushed(self._executor, parts, found)
        except BaseException:
            self.restart()
            if self._outer_leaves is not None:
                self._outer_leaves.restore()
            raise

    def look(
        self, program: Callable[..., object], batches: Sequence[Sequence[object]]
    ) -> Look:
        """What has to be looked at before batches are computed in micro-batches."""
        options = self._options
        is_divided = options.micro_batches > 1 or len(batches) > 1
        is_alone = self._comm.replicas is None
        if options.reduce is not None or (is_alone and not is_divided):
            return Look(None, ())
        by_size = sorted(batches, key=self._size, reverse=True)
        known = self._programs.of(program, by_size[0])
        n, axis = options.micro_batches, options.batch_axis
        pairs = [micro_batches.pairs(inputs, n, axis) for inputs in by_size]
        new = [pair for pair in itertools.chain(*pairs) if known.values.take(pair)]
        return Look(known, new)

    def _reductions_of(
        self, program: Callable[..., Any], batches: Sequence[Sequence[Any]], look: Look
    ) -> Reductions:
        """How what is computed for micro-batches makes that for a batch.

        Replicas of a grid agree on what the program's first batch tells.
        """
        known, replicas = look.known, self._comm.replicas
        if known is None:
            return Reductions({RESULT: frozenset([self._options.reduce or "mean"])})
        before, known.reductions = known.reductions, None
        own = Reductions.common([self._measured(program, part) for part in look.parts])
        if before is not None:
            common = Reductions.common([before, own])
        else:
            if own.is_open:
                largest = max(batches, key=self._size)
                whole = self._measured(program, tuple(largest))
                own = Reductions.common([own, whole])
            found = [own] if replicas is None else replicas.allgather_obj(own)
            common = Reductions.common(found)
        if common.of_result is None:
            known.forget()
        else:
            known.reductions = common
        return common

    def _measured(
        self, program: Callable[..., Any], pair: tuple[Any, ...]
    ) -> Reductions:
        """The same from two micro-batches and from both as one, in test mode."""
        axis, samples = self._options.batch_axis, self._number_of_samples(pair)
        if samples is None:  # the batch is not divided
            return Reductions({RESULT: frozenset(["mean"])})
        if samples < 2:
            return Reductions.common([])
        try:
            halves, parts = self._tried(program, pair, 2)
        except InvalidType as error:
            raise InvalidType(
                "Pipeline: expected a function that takes a part of a batch, got "
                f"{error}; arrays that it closes over are not divided: pass them as "
                "arguments, too"
            ) from error
        try:
            _, (whole,) = self._tried(program, pair, 1)
        except (InvalidType, ValueError, TypeError) as error:
            raise ValueError(
                f"Pipeline: expected a function that takes {samples} samples as it "
                f"takes {halves[0].size}, as a single process does not divide batches, "
                f"got {type(error).__name__}: {error}; pass reduce='mean' or 'sum'"
            ) from error
        is_rounded = config.dtype is mixed_bfloat16
        sizes_of_floats = [param.dtype.itemsize for param in self._model.params()]
        return reductions_of(
            *(whole, parts, [half.size for half in halves]),
            *([half.samples for half in halves], axis),
            2 if is_rounded else min(sizes_of_floats, default=8),
        )

    def _tried(
        self, program: Callable[..., Any], inputs: Sequence[Any], parts: int
    ) -> tuple[list[MicroBatch], list[dict[str, Any]]]:
        """Micro-batches, and by names what they return and report; nothing changes."""
        (batch,) = self._micro_batches(program, [inputs], None, parts)
        undo, numbers = traces_of(self._model), random_states()
        keeps_graphs = self._options.recompute == "none"
        memory = contextlib.nullcontext() if keeps_graphs else no_backprop_mode()
        try:
            with using_config("train", False), memory:
                for link in self._model.links():
                    if hasattr(link, "reset_state"):
                        link.reset_state()
                ys, observations = self._computed(batch)
        finally:
            set_random_states(numbers)
            undo()
        own = [
            {name: x.array for name, x in each.items() if isinstance(x, Variable)}
            for each, _ in observations
        ]
        reports = zip(*self._comm.allgather_obj(own))
        return batch, [{RESULT: y, **ChainMap(*x)} for y, x in zip(ys, reports)]

    def tell(self, call: str) -> None:
        """Checks that all ranks make one call, if batches are on their way."""
        if self._stream is not None:
            self._calls.tell(call, needs_all=True)

    def drain(self) -> None:
        """Completes all batches that are on their way; every rank calls it."""
        if self._stream is not None and self._executor is not None:
            self.tell(COMPLETION)
            with self._noting_failure(self._messages):
                self._executor.run(self._stream.drain(), last=self._next - 1)
                self._executor.finish(is_flushed=True)
                self._receive_reports(self._executor)
            self.restart()

    def _micro_batches(
        self,
        program: Callable[..., Any],
        batches: Sequence[Sequence[Any]],
        reduction: str | None,
        parts: int,
        loss_scale: float | None = None,
    ) -> list[list[MicroBatch]]:
        """Those of batches that make one update, each in so many parts."""
        axis = self._options.batch_axis
        divided = [micro_batches.split(inputs, parts, axis) for inputs in batches]
        counts = [[self._count(part, size) for size, part in b] for b in divided]
        factors = iter(weights_of(reduction, list(itertools.chain(*counts))))
        are_told = all(self._number_of_samples(x) is not None for x in batches)
        is_weighted = are_told and reduction == "mean"
        total = float(sum(map(sum, counts))) if is_weighted else None
        shares = EqualShares() if is_weighted else None
        return [
            [
                MicroBatch(
                    program,
                    part,
                    size,
                    float(count),
                    total,
                    next(factors),
                    loss_scale,
                    batch is divided[-1] and i == len(batch) - 1,
                    shares,
                )
                for i, ((size, part), count) in enumerate(zip(batch, batch_counts))
            ]
            for batch, batch_counts in zip(divided, counts)
        ]

    def _count(self, part: tuple[Any, ...], size: int) -> float:
        """How many samples the means of a micro-batch are over."""
        if self._samples is None or not part:
            return size
        try:
            inspect.signature(self._samples).bind(*part)
        except TypeError:  # not the loss function's arguments: a result, not a mean
            return size
        return self._samples(*part)

    def _size(self, inputs: Sequence[Any]) -> int:
        return self._number_of_samples(inputs) or 0

    def _number_of_samples(self, inputs: Sequence[Any]) -> int | None:
        return micro_batches.number_of_samples(inputs, self._options.batch_axis)

    def _run_stream(
        self, executor: Executor, batch: list[MicroBatch], found: Reductions
    ) -> None:
        if len(batch) != self._options.micro_batches:
            raise ValueError(
                f"Pipeline: expected batches of at least {self._options.micro_batches} "
                f"samples, one for each micro-batch, got {len(batch)}"
            )
        if self._stream is not None:
            self._calls.tell("train_batch", needs_all=False)
        else:
            make = schedule.SCHEDULES[self._options.schedule].stream
            assert make is not None
            self._stream = make(self._comm.rank, self._comm.size, len(batch))
        executor.add(self._next, batch)
        self._next += len(batch)
        with self._noting_failure(self._messages):
            executor.run(self._stream.next_batch())
        own = results.observation_of(executor.finish(is_flushed=False), found.is_sum)
        # No rank waits for it: a rank reports what the last stage has observed when it
        # has completed the backward pass.
        reporter.report(own)
        self._messages.send_report(own)
        self._receive_reports(executor)

    def _run_flushed(
        self, executor: Executor, parts: list[list[MicroBatch]], found: Reductions
    ) -> None:
        observations = []
        for batch in parts:
            executor.add(0, batch)
            executor.run(self._flush_actions(len(batch), batch is parts[-1]))
            observations += executor.finish(is_flushed=True)
        self._meet(self._messages)
        if self._outer_leaves is not None:
            self._outer_leaves.add_up()
        self._report(observations, found)

    def _flush_actions(self, parts: int, updates: bool) -> list[Action]:
        ranks = self._comm.size
        chunks = self._n_stages // ranks
        kind = self._options.schedule
        actions = schedule.flush_schedule(kind, ranks, parts, chunks)[self._comm.rank]
        return [action for action in actions if updates or action.kind != "U"]

    def _new_executor(
        self,
        versions: weights.Flush,
        update: Callable[[float | None], None] | None,
        outer_leaves: OuterLeaves | None,
        messages: StageMessages,
    ) -> Executor:
        own_stages = self._n_stages // self._comm.size
        has_several_passes = own_stages > 1 or self._options.recompute != "none"
        return Executor(
            messages,
            self._tracing,
            versions,
            update,
            outer_leaves,
            self._states,
            NotedCalls(self._model.links() if has_several_passes else ()),
            own_stages,
            self._options.recompute,
            self._options.deferred_batch_norm,
        )

    def _report(self, observations: Observations, found: Reductions) -> None:
        """Reports, on every rank, what micro-batches reported on any, put together."""
        own = results.observation_of(observations, found.is_sum)
        for observation in self._comm.allgather_obj(own):
            reporter.report(observation)

    def _receive_reports(self, executor: Executor) -> None:
        for _ in range(executor.take_updates()):
            reporter.report(self._messages.receive_report())


def _update_of(optimizer: Any) -> Callable[[float | None], None]:
    """An update; a multi-node optimizer weights gradients by the samples that count."""

    def update(samples: float | None) -> None:
        if samples is None or getattr(optimizer, "samples", samples) is not None:
            optimizer.update()
            return
        optimizer.samples = int(samples)
        try:
            optimizer.update()
        finally:
            optimizer.samples = None

    return update
