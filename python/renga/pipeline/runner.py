"""Runs batches through a pipeline."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from renga import reporter
from renga.configuration import no_backprop_mode
from renga.pipeline import schedule, weights
from renga.pipeline.agreement import COMPLETION, CallsOnTheWay
from renga.pipeline.batches import micro_batches, results
from renga.pipeline.batches.link_states import LinkStates
from renga.pipeline.executor import Executor, MicroBatch
from renga.pipeline.schedule import Action, Stream
from renga.pipeline.stages.messages import StageMessages
from renga.pipeline.stages.tracing import Tracing

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.link import Link
    from renga.parameter import Parameter
    from renga.pipeline.preparation import Options


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
        is_sum: whether the model returns a sum over samples.
    """

    def __init__(
        self,
        model: Link,
        comm: Communicator,
        n_stages: int,
        options: Options,
        samples: Callable[..., float] | None,
        is_sum: bool,
    ) -> None:
        self._comm = comm
        self._n_stages = n_stages
        self._options = options
        self._samples = samples
        self._model, self._is_sum = model, is_sum
        self._messages = StageMessages(comm, n_stages)
        # Batches in training may be on their way while others are evaluated.
        self._evaluation_messages = StageMessages(comm, n_stages)
        self._tracing = Tracing(comm)
        self._states = LinkStates(model)
        self._optimizer: Any = None  # of the last batch
        self.restart()

    @property
    def is_streaming(self) -> bool:
        """Whether batches may be on their way."""
        return self._stream is not None

    def restart(self) -> None:
        """Has later batches start from the current parameters."""
        self._executor: Executor | None = None
        self._stream: Stream | None = None
        self._next = 0  # micro-batch of the stream
        self._calls = CallsOnTheWay(self._comm)

    def forward(self, program: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        """The program's result for a batch, on every rank."""
        (batch,) = self._micro_batches(program, [inputs], None)
        flush = weights.Flush([], None, self._comm.rank, self._comm.size, 1)
        executor = self._new_executor(flush, None, self._evaluation_messages)
        executor.add(0, batch)
        with no_backprop_mode():
            for stage in range(self._comm.rank, self._n_stages, self._comm.size):
                executor.run(Action("F", stage, i) for i in range(len(batch)))
        self._report(executor.finish(is_flushed=True))
        own = [executor.results[i] for i in range(len(batch))]
        if not all(map(results.is_complete, own)) or self._comm.size > 1:
            whole = [results.merged(ys) for ys in zip(*self._comm.allgather_obj(own))]
        else:
            whole = own
        sizes = [micro_batch.size for micro_batch in batch]
        factors = [micro_batch.factor for micro_batch in batch]
        joined = results.join(whole, sizes, factors, self._options.batch_axis)
        return results.variables_of(joined)

    def train(
        self,
        optimizer: Any,
        params: Sequence[Parameter],
        program: Callable[..., Any],
        batches: Sequence[Sequence[Any]],
    ) -> None:
        """Computes the gradient of batches, as of one, and updates the parameters.

        Args:
            optimizer: of this rank's parameters.
            params: these.
            program: computes the loss.
            batches: its arguments.
        """
        if self._optimizer is not optimizer:
            self.drain()
            self.restart()
            self._optimizer = optimizer
        self._require_reduction(program)
        if self._executor is None:
            kind = weights.KINDS[self._options.weights]
            rank, ranks = self._comm.rank, self._comm.size
            versions = kind(params, optimizer, rank, ranks, self._options.micro_batches)
            update = _update_of(optimizer, not self._adds_up)
            self._executor = self._new_executor(versions, update, self._messages)
        sizes = {self._number_of_samples(inputs) for inputs in batches}
        if sizes == {0} and hasattr(optimizer, "samples"):  # other replicas have some
            self._executor.update_without_gradients(optimizer._loss_scale)
            return
        parts = self._micro_batches(program, batches, optimizer._loss_scale)
        if self._options.schedule == "pipedream":
            self._run_stream(self._executor, parts[0])
            return
        try:
            self._run_flushed(self._executor, parts)
        except BaseException:
            self.restart()
            raise

    @property
    def _adds_up(self) -> bool:
        """Whether a batch's result is the sum of those of its micro-batches."""
        reduce = self._options.reduce
        return self._is_sum if reduce is None else reduce == "sum"

    def _require_reduction(self, program: Callable[..., Any]) -> None:
        """Raises ValueError where a loss function may return a sum or a mean."""
        is_model = getattr(program, "__wrapped__", program) is self._model
        is_unsaid = self._is_sum and self._options.reduce is None
        if is_unsaid and not is_model and self._options.micro_batches > 1:
            raise ValueError(
                "Pipeline: expected reduce='sum' or reduce='mean' for a loss function "
                "that is not the model, which returns a sum, got none"
            )

    def tell(self, call: str) -> None:
        """Checks that all ranks make one call, if batches are on their way."""
        if self._stream is not None:
            self._calls.tell(call, needs_all=True)

    def drain(self) -> None:
        """Completes all batches that are on their way; every rank calls it."""
        if self._stream is not None and self._executor is not None:
            self.tell(COMPLETION)
            self._executor.run(self._stream.drain(), last=self._next - 1)
            self._executor.finish(is_flushed=True)
            self._receive_reports(self._executor)
            self.restart()

    def _micro_batches(
        self,
        program: Callable[..., Any],
        batches: Sequence[Sequence[Any]],
        loss_scale: float | None,
    ) -> list[list[MicroBatch]]:
        """Those of batches that make one update."""
        options = self._options
        parts = [
            micro_batches.split(inputs, options.micro_batches, options.batch_axis)
            for inputs in batches
        ]
        counts = [[self._count(part, size) for size, part in batch] for batch in parts]
        total = float(sum(map(sum, counts)))
        is_known = all(
            self._number_of_samples(inputs) is not None for inputs in batches
        )
        return [
            [
                MicroBatch(
                    program,
                    part,
                    size,
                    float(count),
                    total if is_known else None,
                    1.0 if self._adds_up else float(count) / (total or 1.0),
                    loss_scale,
                    batch is parts[-1] and i == len(batch) - 1,
                )
                for i, ((size, part), count) in enumerate(zip(batch, batch_counts))
            ]
            for batch, batch_counts in zip(parts, counts)
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

    def _number_of_samples(self, inputs: Sequence[Any]) -> int | None:
        return micro_batches.number_of_samples(inputs, self._options.batch_axis)

    def _run_stream(self, executor: Executor, batch: list[MicroBatch]) -> None:
        if len(batch) != self._options.micro_batches:
            raise ValueError(
                f"Pipeline: expected batches of at least {self._options.micro_batches} "
                f"samples, one for each micro-batch, got {len(batch)}"
            )
        if self._stream is not None:
            self._calls.tell("train_batch", needs_all=False)
        else:
            self._stream = Stream(self._comm.rank, self._comm.size, len(batch))
        executor.add(self._next, batch)
        self._next += len(batch)
        executor.run(self._stream.next_batch())
        own = results.observation_of(executor.finish(is_flushed=False))
        # No rank waits for it: a rank reports what the last stage has observed when it
        # has completed the backward pass.
        reporter.report(own)
        self._messages.send_report(own)
        self._receive_reports(executor)

    def _run_flushed(self, executor: Executor, parts: list[list[MicroBatch]]) -> None:
        observations = []
        for batch in parts:
            executor.add(0, batch)
            executor.run(self._flush_actions(len(batch), batch is parts[-1]))
            observations += executor.finish(is_flushed=True)
        self._report(observations)

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
        messages: StageMessages,
    ) -> Executor:
        return Executor(
            messages,
            self._tracing,
            versions,
            update,
            self._states,
            self._n_stages // self._comm.size,
            self._options.recompute,
            self._options.deferred_batch_norm,
            None if self._is_told else self._options.batch_axis,
        )

    @property
    def _is_told(self) -> bool:
        """Whether it is known what losses are means or sums over."""
        reduce = self._options.reduce
        return self._is_sum or reduce is not None or self._samples is not None

    def _report(self, observations: list[tuple[dict[str, Any], float]]) -> None:
        """Reports, on every rank, the means of what micro-batches reported on any."""
        own = results.observation_of(observations)
        for observation in self._comm.allgather_obj(own):
            reporter.report(observation)

    def _receive_reports(self, executor: Executor) -> None:
        for _ in range(executor.take_updates()):
            reporter.report(self._messages.receive_report())


def _update_of(optimizer: Any, counts: bool) -> Callable[[float | None], None]:
    """An update; a multi-node optimizer weights gradients by the samples that count."""

    def update(samples: float | None) -> None:
        is_told = getattr(optimizer, "samples", samples) is not None
        if not counts or is_told or samples is None:
            optimizer.update()
            return
        optimizer.samples = int(samples)
        try:
            optimizer.update()
        finally:
            optimizer.samples = None

    return update
