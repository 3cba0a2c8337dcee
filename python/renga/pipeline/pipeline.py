"""A model whose stages are on different ranks."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga import reporter
from renga.configuration import no_backprop_mode, using_config
from renga.link import Link
from renga.pipeline import (
    measurement,
    micro_batches,
    results,
    schedule,
    weights,
)
from renga.pipeline.executor import RECOMPUTE, Executor, MicroBatch
from renga.pipeline.gathered_parameters import gathered_parameters
from renga.pipeline.messages import StageMessages
from renga.pipeline.partition import Partition, number_of_stages, partition
from renga.pipeline.schedule import Action, Stream
from renga.pipeline.tracing import Tracing
from renga.variable import as_number

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.parameter import Parameter

# How often a momentum update reads or writes memory as large as the parameters, and
# what versions of the weights add: a copy takes two passes, a prediction three.
_UPDATE_PASSES = 5
_MORE_PASSES = {
    "flush": 0,
    "stash": 2,
    "two_versions": 2,
    "spectrain": 6,
    "pipeoptim": 3,
}


class Pipeline(Link):
    """A model that is cut into stages, each computed by one rank.

    Every rank creates it from the same model and calls it with the same arguments. A
    :class:`~renga.pipeline.PipelineUpdater` trains it; a direct call computes the
    model's result on all ranks, without a graph.

    The model needs no changes. An operation runs on the stage of its parameters, or on
    the last stage of its inputs, and values are sent where they are needed. On other
    ranks a value has a shape and a dtype but no elements, so the model's control flow
    must not depend on elements.

    Args:
        model: the parameters of rank 0 are used. Of a ``MultiNodeChainList``, which is
            another one on each rank, its ``serial_model()``.
        comm: the ranks of the pipeline.
        inputs: example arguments of the model, with the size of a micro-batch. They
            are used to measure what each part costs.
        micro_batches: the number of micro-batches in a batch.
        schedule: ``gpipe``, ``1f1b`` or ``interleaved``, which complete the gradient of
            each batch before the next batch starts (flush); or ``pipedream``, which
            starts the next batch at once.
        weights: ``flush`` for the schedules that flush. For ``pipedream``: ``flush``
            (no correction), ``stash``, ``two_versions``, ``spectrain`` or
            ``pipeoptim``.
        stages: the paths of the links at which the second and later stages start; or
            the number of stages, which are then balanced. By default there is one for
            each rank, or two for ``interleaved``.
        recompute: the micro-batches whose forward pass is run again in the backward
            pass, instead of being kept in memory: ``none``, ``all`` or ``except_last``.
        deferred_batch_norm: whether batch normalization updates its running statistics
            once for a batch, by those of all its samples, instead of once for each
            micro-batch. It normalizes each micro-batch by its own statistics anyway.

    Raises:
        TypeError: ``model`` is no link.
        ValueError: an unknown name, or stages that do not fit the model, the ranks or
            the schedule.
    """

    model: Link
    partition: Partition

    def __init__(
        self,
        model: Link,
        comm: Communicator,
        *inputs: Any,
        micro_batches: int = 1,
        schedule: str = "1f1b",
        weights: str = "flush",
        stages: int | Sequence[str] | None = None,
        recompute: str = "none",
        deferred_batch_norm: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(model, Link):
            raise TypeError(f"Pipeline: expected a Link, got {model!r}")
        self._check_options(comm.size, micro_batches, schedule, weights, recompute)
        vars(self)["model"] = _serial_model(
            model
        )  # not a child: its names in files are the model's
        self.comm = comm
        self.micro_batches = micro_batches
        self.schedule = schedule
        self._n_stages = number_of_stages(stages, schedule, comm.size)
        self._weights_kind = weights
        self._prepare(inputs, stages)
        self._messages = StageMessages(comm, self._n_stages)
        self._tracing = Tracing(comm)
        self._recompute = recompute
        self._deferred_batch_norm = deferred_batch_norm
        self._is_gathered = False
        self._executor: Executor | None = None
        self._stream: Stream | None = None
        self._next = 0  # micro-batch of the stream

    @staticmethod
    def _check_options(
        ranks: int, micro_batches: int, kind: str, versions: str, recompute: str
    ) -> None:
        for name, value, allowed in (
            ("schedule", kind, schedule.SCHEDULES),
            ("weights", versions, tuple(weights.KINDS)),
            ("recompute", recompute, RECOMPUTE),
        ):
            if value not in allowed:
                raise ValueError(
                    f"Pipeline: expected {name} to be one of {', '.join(allowed)}, got "
                    f"{value!r}"
                )
        if micro_batches < 1:
            raise ValueError(
                f"Pipeline: expected at least 1 micro-batch, got {micro_batches}"
            )
        if versions != "flush" and kind != "pipedream":
            raise ValueError(
                f"Pipeline: expected weights='flush' for {kind}, whose weights do not "
                f"change between the passes of a micro-batch, got {versions!r}"
            )
        if versions == "two_versions" and micro_batches < ranks:
            raise ValueError(
                f"Pipeline: expected at least {ranks} micro-batches for two_versions, "
                f"one for each rank, got {micro_batches}"
            )

    def _prepare(self, inputs: Sequence[Any], stages: Any) -> None:
        """Initializes the parameters, cuts the model and frees other ranks' parts."""
        if any(not param.is_initialized for param in self.model.params()):
            with no_backprop_mode(), using_config("train", False):
                self.model(*inputs)
        self.comm.bcast_data(self.model)
        numpy.random.set_state(self.comm.bcast_obj(numpy.random.get_state()))
        costs, seconds_per_byte = self._measured(inputs)
        chunks = self._n_stages // self.comm.size
        self.partition = partition(
            costs,
            self._n_stages if stages is None else stages,
            seconds_per_byte,
            schedule.bubble(self.schedule, self.comm.size, self.micro_batches, chunks),
        )
        stage_of, owners = self.partition.stage_of, measurement.owners(self.model)
        for param in self.model.params():
            param.stage = stage_of.get(owners[id(param)], 0)
            if param.stage % self.comm.size != self.comm.rank:
                param._to_device("meta:0")

    def _measured(self, inputs: Sequence[Any]) -> tuple[measurement.Costs, float]:
        """The costs of the model and of a byte sent, equal on all ranks.

        All ranks measure at the same time, as they will compute: they share memory, and
        sharded links communicate between the replicas of a grid. Those of the first
        rank count, of the first replica, since replicas have to be cut alike.
        """
        state = numpy.random.get_state()
        sample = copy.deepcopy(self.model)
        costs = measurement.measure(sample, sample, inputs, self.micro_batches)
        passes = _UPDATE_PASSES + _MORE_PASSES[self._weights_kind]
        update = passes * measurement.memory_seconds_per_byte(self.comm.size)
        for segment in costs.segments:
            segment.update = update * segment.parameter_bytes / self.micro_batches
        numpy.random.set_state(state)
        measured = costs, measurement.seconds_per_byte(self.comm)
        if self.comm.rank == 0 and self.comm.replicas is not None:
            measured = self.comm.replicas.bcast_obj(measured)
        return self.comm.bcast_obj(measured)

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """The parameters of this rank's stages."""
        for param in self.model.params(include_uninit):
            if not param.is_meta:
                yield param

    def namedparams(
        self, include_uninit: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this rank's stages, with their paths in the model."""
        for path, param in self.model.namedparams(include_uninit):
            if not param.is_meta:
                yield path, param

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        """The links of the model, with their paths in it."""
        return self.model.namedlinks(skipself)

    def links(self, skipself: bool = False) -> Iterator[Link]:
        """The links of the model."""
        return self.model.links(skipself)

    def cleargrads(self) -> None:
        """Clears the gradients of this rank's parameters."""
        for param in self.params():
            param.cleargrad()

    def sum_over_stages(self, value: float) -> float:
        """The sum of the ranks' values; every rank calls it.

        Raises:
            RuntimeError: without a flush, where ranks update at different times.
        """
        if self.schedule == "pipedream" and self.comm.size > 1:
            raise RuntimeError(
                "Pipeline: expected a schedule that flushes for what depends on the "
                "gradients of all stages, such as GradientClipping, got pipedream"
            )
        return float(self.comm.all_reduce(numpy.array([as_number(value)]))[0])

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the whole model, as a single process does.

        Every rank has to call it, even if only one of them writes.
        """
        with self.gathered_parameters():
            self.model.serialize(serializer)

    @contextlib.contextmanager
    def gathered_parameters(self, optimizer: Any = None) -> Iterator[None]:
        """A context in which every rank has all parameters; every rank enters it.

        Args:
            optimizer: if given, every rank also has their update rules.
        """
        if self._is_gathered:
            yield
            return
        self.drain()
        with gathered_parameters(self.model, self.comm, optimizer):
            self._is_gathered = True
            try:
                yield
            finally:
                self._is_gathered = False
        # Later batches start from the current parameters.
        self._executor = self._stream = None
        self._next = 0

    def forward(self, *inputs: Any) -> Any:
        """The model's result for a batch, computed in micro-batches, on every rank."""
        self._observe_model()
        parts = micro_batches.split(inputs, self.micro_batches)
        samples = sum(size for size, _ in parts)
        executor = self._new_executor(weights.Flush, None)
        executor.add(
            0,
            [
                MicroBatch(self.model, part, size / samples, None, i == len(parts) - 1)
                for i, (size, part) in enumerate(parts)
            ],
        )
        with no_backprop_mode():
            for stage in range(self.comm.rank, self._n_stages, self.comm.size):
                executor.run(Action("F", stage, i) for i in range(len(parts)))
        sizes = [size for size, _ in parts]
        self._report(executor, sizes)
        ys = [results.arrays_of(executor.results[i]) for i in range(len(parts))]
        result = results.join(ys, sizes) if results.is_complete(ys) else None
        found = [y for y in self.comm.allgather_obj(result) if y is not None]
        if not found:
            raise RuntimeError(
                f"Pipeline: expected one rank to have the whole result of "
                f"{type(self.model).__name__}, got parts of it on several"
            )
        return results.variables_of(found[0])

    def train_batch(
        self, optimizer: Any, program: Callable[..., Any], inputs: Sequence[Any]
    ) -> None:
        """Computes the gradient of one batch and updates the parameters.

        With ``pipedream``, some of that is done by later calls, or by :meth:`drain`.

        Args:
            optimizer: of this rank's parameters.
            program: function that computes the loss: the model, or a loss function
                that calls it.
            inputs: its arguments, the same on every rank.
        """
        self._observe_model()
        if self._executor is None:
            kind = weights.KINDS[self._weights_kind]
            self._executor = self._new_executor(kind, optimizer)
        executor = self._executor
        parts = micro_batches.split(inputs, self.micro_batches)
        samples = sum(size for size, _ in parts)
        scale = optimizer._loss_scale
        batch = [
            MicroBatch(program, part, size / samples, scale, i == len(parts) - 1)
            for i, (size, part) in enumerate(parts)
        ]
        if self.schedule != "pipedream":
            executor.add(0, batch)
            executor.run(self._flush_actions(len(parts)))
        else:
            self._run_stream(executor, batch)
        self._report(executor, [size for size, _ in parts])

    def _run_stream(self, executor: Executor, batch: list[MicroBatch]) -> None:
        if len(batch) != self.micro_batches:
            raise ValueError(
                f"Pipeline: expected batches of at least {self.micro_batches} samples, "
                f"one for each micro-batch, got {len(batch)}"
            )
        if self._stream is None:
            self._stream = Stream(self.comm.rank, self.comm.size, self.micro_batches)
        executor.add(self._next, batch)
        self._next += len(batch)
        executor.run(self._stream.next_batch())

    def drain(self) -> None:
        """Completes all batches that are in flight; every rank calls it."""
        if self._stream is not None and self._executor is not None:
            self._executor.run(self._stream.drain(), last=self._next - 1)
            self._executor.finish(is_flushed=True)
            self._receive_reports(self._executor)

    def _flush_actions(self, parts: int) -> list[Action]:
        ranks = self.comm.size
        chunks = self._n_stages // ranks
        actions = schedule.flush_schedule(self.schedule, ranks, parts, chunks)
        return actions[self.comm.rank]

    def _observe_model(self) -> None:
        """Makes the model report under the name of the Pipeline."""
        with contextlib.suppress(IndexError):
            current = reporter.get_current_reporter()
            name = current._observer_names.get(id(self))
            if name is not None:
                current.add_observer(name, self.model)

    def _new_executor(self, kind: type[weights.Flush], optimizer: Any) -> Executor:
        rank, ranks = self.comm.rank, self.comm.size
        params = list(self.params())
        versions = kind(params, optimizer, rank, ranks, self.micro_batches)
        return Executor(
            self._messages,
            self._tracing,
            versions,
            None if optimizer is None else optimizer.update,
            self._n_stages // ranks,
            self._recompute,
            self._deferred_batch_norm,
        )

    def _report(self, executor: Executor, sizes: Sequence[int]) -> None:
        """Reports what the micro-batches reported, averaged by samples.

        Without a flush no rank waits for it: a rank reports what the last stage has
        observed when it has completed the backward pass.
        """
        is_flushed = self.schedule != "pipedream" or not executor.trains
        own = results.means(executor.finish(is_flushed), sizes)
        if is_flushed:
            for observation in self.comm.allgather_obj(own):
                reporter.report(observation)
            return
        reporter.report(own)
        self._messages.send_report(own)
        self._receive_reports(executor)

    def _receive_reports(self, executor: Executor) -> None:
        for _ in range(executor.take_updates()):
            reporter.report(self._messages.receive_report())


def _serial_model(model: Any) -> Link:
    """The whole model; of a MultiNodeChainList each rank has only its own links."""
    if hasattr(model, "serial_model"):
        return model.serial_model()
    for path, link in model.namedlinks():
        if hasattr(link, "serial_model"):
            raise ValueError(
                "Pipeline: expected a model of which every rank has all links, got "
                f"{type(link).__name__} at {path}: use its serial_model() there"
            )
    return model
