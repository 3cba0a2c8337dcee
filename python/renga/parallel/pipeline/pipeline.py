"""A model whose stages are on different ranks."""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core import reporter
from renga.core.link import Link
from renga.core.link.parallel_models import note_parallel_model, require_own_parts
from renga.core.optimizer import GradientMethod, Optimizer
from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.variable import as_number
from renga.parallel.pipeline import measurement, preparation
from renga.parallel.pipeline.agreement import (
    Settings,
    agree,
    hyperparameters_of,
    require_known_to_owners,
    settings_of,
)
from renga.parallel.pipeline.batches import micro_batches
from renga.parallel.pipeline.batches.kept_variables import KeptVariables
from renga.parallel.pipeline.partition import Partition, number_of_stages
from renga.parallel.pipeline.runner import Runner
from renga.parallel.pipeline.stages.stage_parameters import StageParameters

# These flags say what a rank has loaded and others may not have.
_MODEL, _OPTIMIZER = 1, 2


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
            each rank, or two for ``interleaved`` if there are as many links.
        recompute: the micro-batches whose forward pass is run again in the backward
            pass, instead of being kept in memory: ``none``, ``all`` or ``except_last``.
        deferred_batch_norm: whether batch normalization updates its running statistics
            once for a batch, by those of all its samples, instead of once for each
            micro-batch. It normalizes each micro-batch by its own statistics anyway.
        reduce: how losses, and other numbers that the model returns, are put together
            from those of micro-batches: ``mean`` over the samples, or ``sum``. By
            default each function is also called for parts of its first batch, and of
            later ones with values of a new kind, in test mode, which shows what its
            loss and its reported values are; one that is neither is refused.
        samples: a function of the model's arguments, for a micro-batch, that returns
            how many samples its mean is over, such as the labels that are not ignored.
            By default all count.
        batch_axis: the axis of the samples in arguments and results, such as 1 for
            time-major sequences. Arrays with fewer axes have them in their last one.

    Raises:
        TypeError: ``model`` is no link.
        ValueError: an unknown name, stages that do not fit the model, the ranks or the
            schedule.
    """

    model: Link
    partition: Partition

    def __init__(
        self,
        model: Link,
        comm: Communicator,
        *inputs: object,
        micro_batches: int = 1,
        schedule: str = "1f1b",
        weights: str = "flush",
        stages: int | Sequence[str] | None = None,
        recompute: str = "none",
        deferred_batch_norm: bool = False,
        reduce: str | None = None,
        samples: Callable[..., float] | None = None,
        batch_axis: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(model, Link):
            raise TypeError(f"Pipeline: expected a Link, got {model!r}")
        self._options = options = preparation.Options(
            *(schedule, weights, micro_batches, recompute, reduce, batch_axis),
            deferred_batch_norm,
        )
        options.check(comm.size)
        # Not a child: its names in files are the model's.
        vars(self)["model"] = whole = preparation.serial_model(model)
        require_own_parts("Pipeline", whole)
        self.comm = comm
        self.micro_batches = micro_batches
        self.schedule = schedule
        self._samples = samples
        links = len(set(measurement.owners(whole).values()))
        self._n_stages = n = number_of_stages(stages, schedule, comm.size, links)
        cuts = n if stages is None else stages
        cut = preparation.cut(whole, comm, inputs, n, cuts, options)
        self.partition, homes = cut
        self._parameters = StageParameters(whole, comm, homes)
        note_parallel_model(whole, self)
        self._start()

    def _start(self) -> None:
        """Makes what runs batches; every rank calls it."""
        options = self._options, self._samples
        self.note_stages(self.model.links())
        self._kept = KeptVariables(self.model)
        self._runner = Runner(self.model, self.comm, self._n_stages, *options)
        self._has_all = self._has_all_states = False
        self._loaded = 0  # _MODEL, _OPTIMIZER
        # Update rules have set these for themselves on each rank; the digests are
        # checksums.
        self._settings: list[Settings] = [{}] * self.comm.size
        self._digests: list[int] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Pipeline:
        """A pipeline with copies of the parameters; every rank makes it."""
        self.drain()
        self._synchronize("deepcopy")
        new: Pipeline = copy.copy(self)
        memo[id(self)] = new
        new._parameters = self._parameters.deepcopy(memo)
        vars(new)["model"] = new._parameters.model
        new._params, new._persistent = set(), set()
        new._start()
        return new

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        """Copies the parameters of a model, or of a pipeline of one.

        Where only some ranks copy those of a model, the others get these. Of a pipeline
        every rank has to copy.
        """
        self.drain()
        with contextlib.ExitStack() as scope:
            if not isinstance(link, Pipeline):
                if not self._has_all:
                    self._parameters.allocate_others()
                self._loaded |= _MODEL
            elif link.partition != self.partition:
                scope.enter_context(link.gathered_parameters())
            source = link.model if isinstance(link, Pipeline) else link
            self._parameters.copy(source, copy_persistent)

    def copied_link(self) -> Link:
        """The model.

        Raises:
            RuntimeError: this rank has only the parameters of its own stages.
        """
        self.require_all_stages("copyparams")
        return self.model

    def require_all_stages(self, operation: str) -> None:
        """Refuses what needs all parameters of the model, or of a link in it.

        Raises:
            RuntimeError: this rank has only the parameters of its own stages.
        """
        if self.comm.size > 1 and not self._has_all:
            raise RuntimeError(
                f"{operation}: expected all parameters of a Pipeline, got those of "
                "this rank's stages: call it in a context of its "
                "gathered_parameters(), which every rank enters"
            )

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """The parameters of this rank's stages."""
        for param in self.model.params(include_uninit):
            if self._has_all or self._parameters.is_own(param):
                yield param

    def params_of_all_stages(self) -> Iterator[Parameter]:
        """The parameters of the model, also those of other ranks."""
        return self.model.params()

    def namedparams(
        self, include_uninit: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this rank's stages, with their paths in the model."""
        for path, param in self.model.namedparams(include_uninit):
            if self._has_all or self._parameters.is_own(param):
                yield path, param

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        """The links of the model, with their paths in it."""
        return self.model.namedlinks(skipself)

    def links(self, skipself: bool = False) -> Iterator[Link]:
        """The links of the model."""
        return self.model.links(skipself)

    def _set_update_enabled(self, enabled: bool) -> None:
        for param in self.params_of_all_stages():
            if param.update_rule is not None:
                param.update_rule.enabled = enabled

    def cleargrads(self) -> None:
        """Clears the gradients of this rank's parameters."""
        for param in self.params():
            param.cleargrad()

    def require_all_params(self, hook: str) -> None:
        """Refuses a hook of the program that reads all parameters at once.

        Raises:
            ValueError: this rank has the parameters of some stages.
        """
        if self.comm.size > 1:
            raise ValueError(
                "Pipeline: expected hooks of renga.optimizer_hooks, or with "
                "call_for_each_param = True, as each rank has the parameters of its "
                f"own stages, got {hook}"
            )

    def sum_over_stages(self, value: float) -> float:
        """The sum of the ranks' values; every rank calls it.

        Raises:
            RuntimeError: without a flush, where ranks update at different times.
        """
        if not self._options.flushes and self.comm.size > 1:
            raise RuntimeError(
                "Pipeline: expected a schedule that flushes for what depends on the "
                "gradients of all stages, such as GradientClipping, got "
                f"{self.schedule}"
            )
        return float(self.comm.all_reduce(numpy.array([as_number(value)]))[0])

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the whole model, as a single process does.

        Every rank has to call it to save, even if only one of them writes. Where some
        ranks load, the others get what the first of these has loaded.
        """
        with self.serialized_parameters(serializer):
            self.model.serialize(serializer)

    @contextlib.contextmanager
    def serialized_parameters(
        self, serializer: AbstractSerializer, optimizer: object = None
    ) -> Iterator[None]:
        """A context in which this rank has all parameters, to save or to load them.

        Args:
            serializer: saves or loads in it.
            optimizer: that does so, if it is not the model.
        """
        if not isinstance(serializer, Deserializer):
            with self.gathered_parameters(optimizer):
                yield
            return
        self.drain()
        if not self._has_all:
            self._parameters.allocate_others()
        before, self._has_all = self._has_all, True
        self._loaded |= _MODEL if optimizer is None else _OPTIMIZER
        try:
            yield
        finally:
            self._has_all = before

    @contextlib.contextmanager
    def gathered_parameters(self, optimizer: object = None) -> Iterator[None]:
        """A context in which every rank has all parameters; every rank enters it.

        What one rank alone changes in it, only that rank's stages keep; what it loads,
        all ranks do.

        Args:
            optimizer: if given, every rank also has the states of its update rules.
        """
        is_outer = not self._has_all
        if is_outer:
            self.drain()
            self._synchronize("gathered_parameters", optimizer)
            self._parameters.gather()
        # Replicas of this pipeline may have shards of the states.
        with getattr(optimizer, "whole_states", contextlib.nullcontext)():
            if optimizer is not None and not self._has_all_states:
                self._parameters.gather_states()
                self._has_all_states = True
            self._has_all = True
            try:
                yield
            finally:
                if is_outer:
                    self._has_all = self._has_all_states = False
            if is_outer:
                self._synchronize("the end of gathered_parameters", optimizer)
                self._parameters.free_others()
                self._runner.restart()

    def _synchronize(self, call: str, optimizer: Any = None, text: str = "") -> None:
        """Checks that all ranks make one call, and spreads what some have loaded.

        Raises:
            RuntimeError: on every rank, if they make different ones, or if a rank has
                set what only another one uses.
        """
        params = list(self.model.params())
        settings = settings_of(params)
        failures = self._runner.failures
        own = self._loaded, zlib.crc32(repr(settings).encode()), failures.has_failed
        flags, digests, failed = agree(self.comm, call, text, own, failures)
        if any(failed):
            self._runner.renew_messages()
        if len({*digests}) == 1:
            self._settings = [settings] * self.comm.size
        elif digests != self._digests:
            self._settings = require_known_to_owners(
                self.comm, settings, self._settings, params
            )
        self._digests = digests
        found = functools.reduce(operator.or_, flags)
        self._take(flags, optimizer, None)
        replicas = getattr(optimizer, "communicator", None)
        if replicas is not None and hasattr(optimizer, "prepare"):
            flags = [int(each) for each in replicas.all_gather(numpy.array(found))]
            self._take(flags, optimizer, replicas)
            optimizer.prepare(has_loaded=any(flags))
        self._loaded = 0
        if found and not self._has_all:
            self._parameters.free_others()
            self._runner.restart()

    def _take(self, flags: Sequence[int], optimizer: Any, replicas: Any) -> None:
        """Spreads what some of the ranks have loaded."""
        loaders = [rank for rank, each in enumerate(flags) if each & _MODEL]
        if 0 < len(loaders) < len(flags):
            self._parameters.take_from(loaders[0], replicas)
        loaders = [rank for rank, each in enumerate(flags) if each & _OPTIMIZER]
        if 0 < len(loaders) < len(flags):
            self._parameters.take_states_from(loaders[0], optimizer, replicas)

    def forward(self, *inputs: object, **named_inputs: object) -> Any:
        """The model's result for a batch, computed in micro-batches, on every rank."""
        program, values = _positional(self.model, inputs, named_inputs)
        shapes = micro_batches.signature(values)
        look = self._runner.look(program, [values])
        self._runner.tell("the model")
        text = f"arrays of {shapes}, values of new kinds in {len(look.parts)} parts"
        self._synchronize("the model", text=text)
        self._observe_model()
        with self._kept_in_call():
            return self._runner.forward(program, values, look)

    def train_batch(
        self,
        optimizer: GradientMethod,
        program: Callable[..., object],
        inputs: Sequence[object] | Mapping[str, object],
    ) -> None:
        """Computes the gradient of one batch and updates the parameters.

        With ``pipedream``, some of that is done by later calls, or by :meth:`drain`.

        Args:
            optimizer: of this rank's parameters.
            program: function that computes the loss: the model, or a loss function
                that calls it.
            inputs: its arguments, or keyword arguments, the same on every rank.
        """
        self.train_batches(optimizer, program, [inputs])

    def train_batches(
        self,
        optimizer: Optimizer,
        program: Callable[..., object],
        batches: Sequence[Sequence[object] | Mapping[str, object]],
    ) -> None:
        """:meth:`train_batch` with the gradient of several batches, as of one."""
        if not self._options.flushes and len(batches) != 1:
            raise ValueError(
                f"Pipeline: expected one batch for an update by {self.schedule}, which "
                f"has more micro-batches instead, got {len(batches)}"
            )
        values = []
        for batch in batches:
            if isinstance(batch, Mapping):
                call, each = _positional(program, (), batch)
            else:
                call, each = _positional(program, batch, {})
            values.append(each)
        look = self._runner.look(call, values)
        if not self._runner.is_streaming:
            text = (
                f"arrays of {micro_batches.signature(values)}, values of new kinds in "
                f"{len(look.parts)} parts, and {hyperparameters_of(optimizer)}"
            )
            self._synchronize("train_batch", optimizer, text)
        self._observe_model()
        with self._kept_in_call():
            self._runner.train(optimizer, list(self.params()), call, values, look)

    def _kept_in_call(self) -> contextlib.AbstractContextManager[None]:
        """The scope of a call, outside of which no rank has all that links keep."""
        is_whole = self.comm.size == 1 and self.micro_batches == 1
        return contextlib.nullcontext() if is_whole else self._kept.shown()

    def drain(self) -> None:
        """Completes all batches that are on their way; every rank calls it."""
        self._runner.drain()

    def _observe_model(self) -> None:
        """Makes the model report under the name of the Pipeline."""
        with contextlib.suppress(IndexError):
            current = reporter.get_current_reporter()
            name = current.name_of(self)
            if name is not None:
                current.add_observer(name, self.model)


def _positional(
    program: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of positional arguments only, and these."""
    if not named:
        return program, tuple(args)
    names, n = list(named), len(args)

    @functools.wraps(program, updated=())
    def call(*values: object) -> Any:
        return program(*values[:n], **dict(zip(names, values[n:])))

    return call, (*args, *named.values())
