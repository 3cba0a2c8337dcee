"""What the optimizers have in common whose ranks do not have equal parameters."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import numpy

from renga.configuration import no_backprop_mode, using_config
from renga.distributed.asynchronous.packed import PackedParameters, distance, reduce
from renga.distributed.optimizers.wrapped_optimizer import WrappedOptimizer
from renga.serializer import Deserializer

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.communicators.communicator import Array


_Self = TypeVar("_Self", bound="AsynchronousOptimizer")


class AsynchronousOptimizer(WrappedOptimizer):
    """Updates the parameters of each rank by its own gradients.

    The ranks begin with the parameters of rank 0. A subclass computes an update in
    ``_update``. After loading, each rank goes on with what it has loaded if all have.
    """

    communicator: Communicator
    _group: Any
    _packed: Any
    _loaded: bool

    def __init__(self, actual_optimizer: Any, communicator: Communicator) -> None:
        vars(self).update(
            actual_optimizer=actual_optimizer,
            communicator=communicator,
            _group=communicator,  # the ranks that begin together
            _packed=None,  # PackedParameters, once all ranks have begun
            _loaded=False,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        is_private = name.startswith("_") and hasattr(type(self), name)
        if is_private or name in vars(self):
            vars(self)[name] = value
        else:
            super().__setattr__(name, value)

    def setup(self: _Self, link: Any) -> _Self:
        """Sets the actual optimizer up with ``link``, in which the ranks begin anew."""
        vars(self)["_packed"] = None
        return super().setup(link)

    def update(
        self, lossfun: Callable[..., Any] | None = None, *args: Any, **kwds: Any
    ) -> None:
        """Makes one update of this rank's parameters.

        Args:
            lossfun: ``lossfun(*args, **kwds)`` is the loss; by default the gradients
                are those that the parameters have.

        Raises:
            RuntimeError: before ``setup``, or if a parameter has got its shape after
                the first update.
            TypeError: if the loss function returns no Variable.
        """
        forward = None if lossfun is None else functools.partial(lossfun, *args, **kwds)
        self._begin(forward)
        self._update(forward)

    def join(self) -> None:
        """To be called on every rank after its last update."""

    def _update(self, forward: Callable[[], Any] | None) -> None:
        raise NotImplementedError

    def _begin(self, forward: Callable[[], Any] | None) -> None:
        """Gives all ranks the parameters of rank 0, before the first update."""
        if self._packed is not None and not self._loaded:
            return
        self.actual_optimizer._require_target("update")
        if forward is not None and not all(p.is_initialized for p in self._params()):
            with no_backprop_mode(), using_config("train", False):
                forward()
        resumes = all(self._group.allgather_obj(self._loaded))
        if not resumes:
            self._group.bcast_data(self.target)
        self._packed, self._loaded = PackedParameters(self.target), False
        self._after_begin(resumes)

    def _after_begin(self, resumes: bool) -> None:
        """Called once there are parameters; ``resumes``: those that were loaded."""

    def _require_constant_loss_scale(self, function: str) -> None:
        """Raises ValueError: a rank cannot skip updates that others have made."""
        if self.actual_optimizer._loss_scaling_is_dynamic:
            raise ValueError(
                f"{function}: expected a constant loss scale, got a dynamic one"
            )

    def _params(self) -> list[Any]:
        return list(self.target.params())

    def _compute_gradients(self, forward: Callable[[], Any] | None) -> None:
        if forward is not None:
            self._backward(forward())
        found = sum(1 for _ in self.target.params(include_uninit=False))
        if found != self._packed.count:
            raise RuntimeError(
                f"update: expected the {self._packed.count} parameters that had shapes "
                f"in the first update, got {found}: ranks begin with equal ones"
            )

    def _backward(self, loss: Any) -> None:
        if not hasattr(loss, "backward"):
            raise TypeError(
                "update: expected a Variable from the loss function, got "
                f"{type(loss).__name__}"
            )
        self.target.cleargrads()
        loss.backward(loss_scale=self.actual_optimizer._loss_scale)

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
        """
        packed = PackedParameters(self.target)
        own = packed.pack()
        persistent = _persistent_arrays(self.target)
        kept = [x.copy() for x in persistent]
        try:
            packed.unpack(self._average())
            reduce(self._group, persistent, "mean")
            yield
        finally:
            packed.unpack(own)
            for x, y in zip(persistent, kept):
                x[...] = y

    def consensus_distance(self) -> float:
        """How far this rank's parameters are from the mean; all ranks call it."""
        own = PackedParameters(self.target).pack()
        mean = [x.copy() for x in own]
        reduce(self._group, mean, "mean")
        return distance(own, mean)

    def observe(self) -> dict[str, float]:
        """Numbers about this rank's communication so far, by name."""
        traffic = self.communicator.traffic
        return {"messages": traffic.messages, "bytes": traffic.bytes}

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the actual optimizer and what is kept beside it."""
        self.actual_optimizer.serialize(serializer)
        self._loaded = isinstance(serializer, Deserializer)


def seconds(comm: Communicator) -> float:
    """A clock: the virtual one of virtual ranks."""
    clock: float = comm.clock if hasattr(comm, "clock") else time.monotonic()
    return clock


def _persistent_arrays(model: Any) -> list[Array]:
    values = (
        getattr(link, name)
        for _, link in sorted(model.namedlinks())
        for name in sorted(link._persistent)
    )
    return [x for x in values if isinstance(x, numpy.ndarray) and x.dtype.kind == "f"]
