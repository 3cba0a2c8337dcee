"""What the optimizers have in common whose ranks do not have equal parameters."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Callable, TypeVar

from renga.communicators import Communicator
from renga.core.configuration import using_config
from renga.core.link import Link
from renga.core.link.distinct_params import DistinctParam, distinct_params
from renga.core.link.own_values import floating_persistent_arrays
from renga.core.link.traces import without_traces
from renga.core.optimizer import GradientMethod
from renga.core.optimizer.update_rule import require_own_rules
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Array
from renga.core.variable import check_loss
from renga.parallel.asynchronous.packed import PackedParameters, distance, reduce
from renga.parallel.data.extensions.rounds import Rounds
from renga.parallel.data.optimizers.wrapped_optimizer import WrappedOptimizer
from renga.parallel.data.replicas.first_pass import have_no_shapes
from renga.parallel.data.replicas.shared_model import SharedModel
from renga.parallel.data.replicas.states import broadcast_states
from renga.parallel.data.sample_weighting import IgnoredLabels, number_of_samples
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.training.extension import Extension
from renga.utils.argument import check_count

_Self = TypeVar("_Self", bound="AsynchronousOptimizer")


class AsynchronousOptimizer(WrappedOptimizer):
    """Updates the parameters of each rank by its own gradients.

    The ranks begin with the parameters and optimizer states of rank 0, or each with
    what it has loaded if all have. A subclass computes an update in ``_update``, and
    ends training in ``_join``.
    """

    communicator: Communicator
    _group: Any
    _rounds: Rounds
    _model: SharedModel
    _packed: Any
    _loaded: bool
    _has_updated: bool
    _samples: int | None
    samples: int | None
    """How many samples this rank's next batches have; None: as their arguments say.

    To be set before ``update`` or by the loss function, where the arguments do not show
    it or the loss is a mean over something else, such as labels that are not ignored.
    """

    def __init__(
        self, actual_optimizer: GradientMethod, communicator: Communicator
    ) -> None:
        vars(self).update(
            actual_optimizer=actual_optimizer,
            communicator=communicator,
            _group=communicator,  # the ranks that begin together
            _rounds=Rounds("averaged, consensus_distance", communicator),
            _model=SharedModel(communicator, actual_optimizer, keeps_loaded=True),
            _packed=None,  # PackedParameters, once all ranks have begun
            _loaded=False,
            _has_updated=False,  # or has tried to
            _samples=None,  # of the present update's batch, if that is known
            samples=None,
            _ignored=IgnoredLabels(),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        is_private = name.startswith("_") and hasattr(type(self), name)
        if is_private or name in vars(self):
            vars(self)[name] = value
        else:
            super().__setattr__(name, value)

    def setup(self: _Self, link: Link) -> _Self:
        """Sets the actual optimizer up with ``link``, in which the ranks begin anew.

        What servers have of the last model comes home in the first update after.
        """
        self._leave_model()
        self._packed, self._has_updated = None, False
        self._model.has_begun = False
        return super().setup(link)

    def update(
        self,
        lossfun: Callable[..., object] | None = None,
        *args: Array,
        samples: int | None = None,
        **kwds: object,
    ) -> None:
        """Makes one update of this rank's parameters.

        A batch without samples makes none, but is counted.

        Args:
            lossfun: ``lossfun(*args, **kwds)`` is the loss; by default the gradients
                are those that the parameters have, which are dropped if rank 0's
                parameters have just replaced others.
            args, kwds: of ``lossfun``.
            samples: in the batch; by default :attr:`samples`, or else the length of the
                first axis of the arguments.

        Raises:
            RuntimeError: before ``setup``, or if a parameter is another one than in
                the first update, or has got its shape since.
            ValueError: if another optimizer was set up for a parameter since.
            TypeError: if the loss function returns no Variable.
        """
        forward = None
        if lossfun is not None:
            noted = self._ignored.noted(lossfun)
            forward = functools.partial(noted, *args, **kwds)
        self._samples = samples
        self._has_updated = True
        if self._begin(forward, has_run=forward is None) and forward is None:
            self.target.cleargrads()  # they are of other parameters
        else:
            self._update(forward)
        told = self.samples if samples is None else samples
        self._ignored.warn(self.communicator.rank, told)

    def join(self) -> None:
        """To be called on every rank after its last update; returns when all have."""
        self._rounds.end()
        self._join()

    def end_with(self, extension: Extension) -> None:
        """Has training end on this rank where an extension of it is finalized, too."""
        self._rounds.end_with(extension)

    def _join(self) -> None:
        raise NotImplementedError

    def _leave_model(self) -> None:
        """Keeps what has begun with the present model, for :meth:`_end_last`."""

    def _end_last(self) -> None:
        """Ends what had begun with the model before ``setup``; every rank calls it."""

    def _update(self, forward: Callable[[], Any] | None) -> None:
        raise NotImplementedError

    def _begin_to_join(self) -> bool:
        """Begins for the other ranks if this one has made no update; whether it has."""
        if not self._has_updated and self.target is not None:
            self._has_updated = True
            self._begin(None)
        return self._packed is not None

    def _begin(self, forward: Callable[[], Any] | None, has_run: bool = False) -> bool:
        """Gives all ranks what rank 0 has, before the first update.

        Args:
            forward: a forward pass, if there is one.
            has_run: whether the caller has run the model for gradients of its own.

        Returns:
            Whether parameters of a rank have been replaced.
        """
        if self.target is not None:
            require_own_rules("update", self.actual_optimizer)
        if self._packed is not None:
            self._require_known_params()  # before anything is sent or received
            if self._loaded:
                self._loaded = False
                self._after_load()
            return False
        self.actual_optimizer.require_target("update")
        self._end_last()
        models = self._model.beginning()
        if forward is not None and have_no_shapes(models):
            with without_traces(*models), using_config("train", False):
                forward()
        loaded = self._group.allgather_obj(self._loaded and self.t > 0)
        had_others = False
        if not all(loaded):
            had_others = self._model.share(has_run)
            optimizer = self.actual_optimizer
            broadcast_states(self._group, optimizer, self._distinct_params())
            if loaded[0]:
                self._share_saved()
        self._model.share_others(have_loaded=False)
        self._packed, self._loaded = PackedParameters(self.target), False
        for param in self.target.params():
            if param.update_rule is not None:
                param.update_rule.is_exclusive = True
        self._model.has_begun, self._model.has_loaded = True, False
        self._after_begin(resumes=loaded[0])
        return had_others

    def _share_saved(self) -> None:
        """Gives all ranks what rank 0 saves beside the parameters."""
        saved: dict[str, Any] = {}
        if self._group.rank == 0:
            self.serialize(DictionarySerializer(saved))
        saved = self._group.bcast_obj(saved)
        if self._group.rank != 0:
            self.serialize(NpzDeserializer(saved))

    def _after_begin(self, resumes: bool) -> None:
        """Called once there are parameters; ``resumes``: those that were loaded."""

    def _after_load(self) -> None:
        """Called before the first update after a file was loaded between updates.

        Other ranks need not have loaded one.
        """

    def _distinct_params(self) -> list[DistinctParam]:
        """Those that have arrays, each once, in the order of names."""
        return distinct_params(self.target, include_uninit=False)

    def _compute_gradients(self, forward: Callable[[], Any] | None) -> None:
        """Computes them, unless the caller has, and counts the samples."""
        loss = None if forward is None else forward()
        self._samples = self._count_samples(forward)
        if forward is not None:
            self._backward(loss)
        self._require_known_params()  # some may have got their shapes

    def _require_known_params(self) -> None:
        """Refuses parameters that are others than in the first update."""
        found = {id(param) for param in self.target.params(include_uninit=False)}
        expected = {id(param) for param in self._packed.params}
        if found != expected:
            raise RuntimeError(
                f"update: expected the {len(expected)} parameters that had shapes in "
                f"the first update, got {len(found)}, of which {len(found - expected)} "
                "are new: ranks begin with equal ones; call setup again on all of them"
            )

    def _update_alone(self) -> None:
        """Updates this rank's parameters by its gradients, if there were samples."""
        if self._samples == 0:
            self.actual_optimizer.t += 1
        else:
            self.actual_optimizer.update()

    def _count_samples(self, forward: Any) -> int | None:
        found = self.samples if self._samples is None else self._samples
        if found is not None:
            check_count("update: samples", found, 0)
        elif forward is not None:
            found = number_of_samples(forward.args, forward.keywords)
        return found

    def _backward(self, loss: Any) -> None:
        check_loss("update", loss)
        self.target.cleargrads()
        if self._samples == 0:
            return  # the mean of no samples is not a number
        loss.backward(loss_scale=self.actual_optimizer.loss_scale)

    def _meet_all(self) -> None:
        """Returns when every rank calls it, and no change of parameters is on its way.

        Raises:
            RuntimeError: training has ended on another rank.
        """
        self._rounds.begin()

    def _average(self) -> list[Array]:
        """What the ranks' parameters are an approximation of; all ranks call it."""
        flats = PackedParameters(self.target).pack()
        reduce(self._group, flats, "mean")
        return flats

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """A context in which the model has the average of all ranks' parameters.

        Floating persistent arrays, such as the statistics of batch normalization, are
        averaged too. All ranks enter it together. It is for evaluating and saving.

        Raises:
            RuntimeError: training has ended on another rank.
        """
        self._meet_all()
        packed = PackedParameters(self.target)
        own = packed.pack()
        with self._averaged_statistics():
            try:
                packed.unpack(self._average())
                yield
            finally:
                packed.unpack(own)

    @contextlib.contextmanager
    def _averaged_statistics(self) -> Iterator[None]:
        persistent = floating_persistent_arrays(self.target)
        kept = [x.copy() for x in persistent]
        try:
            reduce(self._group, persistent, "mean")
            yield
        finally:
            for x, y in zip(persistent, kept):
                x[...] = y

    def consensus_distance(self) -> float:
        """How far this rank's parameters are from the mean; all ranks call it.

        Raises:
            RuntimeError: training has ended on another rank.
        """
        self._meet_all()
        own = PackedParameters(self.target).pack()
        mean = [x.copy() for x in own]
        reduce(self._group, mean, "mean")
        return distance(own, mean)

    def observe(self) -> dict[str, float]:
        """Numbers about this rank's communication so far, by name."""
        traffic = self.communicator.traffic
        return {"messages": traffic.messages, "bytes": traffic.bytes}

    @property
    def _saved_optimizer(self) -> Any:
        return self.actual_optimizer

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the actual optimizer and what is kept beside it."""
        self._saved_optimizer.serialize(serializer)
        self._loaded = isinstance(serializer, Deserializer)
        self._model.has_loaded = self._loaded and self.t > 0
