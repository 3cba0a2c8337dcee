"""The updater for one model, one optimizer and one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from renga.backends.device import Device, DeviceLike
from renga.core import backend
from renga.core.optimizer import Optimizer
from renga.core.optimizer.base import check_optimizer
from renga.core.serializer import AbstractSerializer
from renga.dataset import convert
from renga.dataset.iterator import Iterator
from renga.graph_optimizations.static_step import static_step
from renga.training.updaters.accumulation import (
    accumulate_gradients,
    for_each_share,
    next_batches,
)
from renga.training.updaters.updater import Updater
from renga.utils import argument

if TYPE_CHECKING:
    from renga.training.trainer import Trainer


class StandardUpdater(Updater):
    """Updates a model with the loss of one batch per iteration, or of several.

    With ``accumulate=k`` an iteration adds up the gradients of k batches, weighted by
    their numbers of examples. For a loss that is a mean over examples, this gives the
    gradient of all k batches as one, with the memory of a single one. Observations are
    weighted likewise. Statistics of a batch, such as those of batch normalization, are
    still those of each small batch.

    Args:
        iterator: yields the batches; or a dictionary of iterators, in which
            ``"main"`` does.
        optimizer: an optimizer set up with the model, or a dictionary of optimizers.
        converter: function of (batch, device) that returns the input arrays.
        device: models and arrays are moved there.
        loss_func: function of the arrays; by default the optimizer's target.
        loss_scale: factor on the loss in the backward pass.
        auto_new_epoch: whether ``new_epoch`` of the optimizers is called.
        input_device: device of the arrays if it differs from ``device``.
        accumulate: number of batches in an iteration; the last iteration may have
            fewer if the iterator does not repeat.
        static: whether steps are those of :func:`renga.static_step`, which is for CUDA
            devices. Each iteration has one batch then.
    """

    # Subclasses that were written for Chainer may leave out the constructor.
    accumulate: Any = 1
    # epoch_detail before the last iteration, if it had several batches.
    _epoch_before: float | None = None

    def __init__(
        self,
        iterator: Iterator | Mapping[str, Iterator],
        optimizer: Optimizer | Mapping[str, Optimizer],
        converter: Callable = convert.concat_examples,
        device: DeviceLike | None = None,
        loss_func: Callable | None = None,
        loss_scale: float | None = None,
        auto_new_epoch: bool = True,
        **kwargs: object,
    ) -> None:
        input_device, self.accumulate, static = argument.parse_kwargs(
            kwargs, ("input_device", None), ("accumulate", 1), ("static", False)
        )
        argument.check_count("StandardUpdater: accumulate", self.accumulate)
        if static and self.accumulate > 1:
            raise ValueError(
                "StandardUpdater: expected static=False for several batches in an "
                f"iteration, got accumulate={self.accumulate}"
            )
        self._iterators = argument.by_name(iterator)
        self._optimizers = argument.by_name(optimizer)
        _check_parts(self._iterators, self._optimizers)
        self.converter = converter
        self.loss_func = loss_func
        self.iteration = 0
        self._device = None if device is None else backend.get_device(device)
        self._input_device = self._device
        if input_device is not None:
            self._input_device = backend.get_device(input_device)
        self.loss_scale = loss_scale
        self.auto_new_epoch = auto_new_epoch
        for each in self._optimizers.values():
            if self._device is not None:
                each.target.to_device(self._device)
            if loss_scale is not None:
                each.set_loss_scale(loss_scale)
            if auto_new_epoch:
                each.use_auto_new_epoch = True
        self._step: Callable[..., Any] | None = None
        if static:
            main = self._optimizers["main"]
            self._step = static_step(loss_func or main.target, main)

    @property
    def device(self) -> Device | None:
        """The device of the models, or None: they stay where they are."""
        return self._device

    @property
    def input_device(self) -> Device | None:
        """The device of the arrays, or None: they stay where they are."""
        return self._input_device

    @property
    def epoch(self) -> int:
        """Epochs the main iterator has completed."""
        return self._iterators["main"].epoch

    @property
    def epoch_detail(self) -> float:
        """Epochs of the main iterator, with the fraction of the current one."""
        return self._iterators["main"].epoch_detail

    @property
    def previous_epoch_detail(self) -> float:
        """``epoch_detail`` before the last iteration."""
        if self._epoch_before is not None:
            return self._epoch_before
        return self._iterators["main"].previous_epoch_detail

    @property
    def is_new_epoch(self) -> bool:
        """Whether the last iteration completed an epoch."""
        if self._epoch_before is not None:
            return int(self._epoch_before) != self.epoch
        return self._iterators["main"].is_new_epoch

    def connect_trainer(self, trainer: Trainer) -> None:
        """Does nothing: this updater does not use its trainer."""

    def get_optimizer(self, name: str) -> Optimizer:
        """The optimizer called ``name``; the only one is ``"main"``."""
        return self._optimizers[name]

    def get_all_optimizers(self) -> dict[str, Optimizer]:
        """All optimizers by name."""
        return dict(self._optimizers)

    def get_iterator(self, name: str) -> Iterator:
        """The iterator called ``name``; the only one is ``"main"``."""
        return self._iterators[name]

    def update(self) -> None:
        """Runs one iteration and counts it."""
        self.update_core()
        self.iteration += 1

    def update_core(self) -> None:
        """Trains on the batches of one iteration; subclasses may override it."""
        iterator, optimizer = self._iterators["main"], self._optimizers["main"]
        loss_func = self.loss_func or optimizer.target
        if self.accumulate > 1:
            before = iterator.epoch_detail
            batches = next_batches(iterator, self.accumulate)
            self._epoch_before = before
            self._accumulate(optimizer, loss_func, batches)
        else:
            self._update_by(optimizer, loss_func, iterator.next())
        if self.auto_new_epoch and self.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def _accumulate(self, optimizer: Any, loss_func: Callable, batches: Any) -> None:
        if hasattr(optimizer, "accumulate"):  # it weights and reduces gradients itself
            optimizer.accumulate(len(batches))
            for_each_share(
                batches, lambda batch, _: self._update_by(optimizer, loss_func, batch)
            )
            return
        optimizer.target.cleargrads()
        accumulate_gradients(
            batches, lambda batch: self._call(loss_func, batch), optimizer.loss_scale
        )
        optimizer.update()

    def _update_by(self, optimizer: Any, loss_func: Callable, batch: Any) -> None:
        args, kwargs = self._arguments(batch)
        if self._step is not None:
            self._step(*args, **kwargs)
        else:
            optimizer.update(loss_func, *args, **kwargs)

    def _arguments(self, batch: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        return convert.arguments_from(self.converter, batch, self.input_device)

    def _call(self, loss_func: Callable, batch: Any) -> Any:
        args, kwargs = self._arguments(batch)
        return loss_func(*args, **kwargs)

    def finalize(self) -> None:
        """Ends the iterators."""
        for iterator in self._iterators.values():
            iterator.finalize()

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores iterators, optimizers and the models they train."""
        for name, iterator in self._iterators.items():
            iterator.serialize(serializer[f"iterator:{name}"])
        for name, optimizer in self._optimizers.items():
            optimizer.serialize(serializer[f"optimizer:{name}"])
            optimizer.target.serialize(serializer[f"model:{name}"])
        self.iteration = serializer("iteration", self.iteration)
        if self.accumulate > 1:
            try:
                before = serializer("epoch_before", self._epoch_before or 0.0)
            except KeyError:  # saved by an updater with a batch in an iteration
                before = self._iterators["main"].previous_epoch_detail
            self._epoch_before = None if self.iteration == 0 else before


def _check_parts(iterators: dict[str, Any], optimizers: dict[str, Any]) -> None:
    """Raises TypeError for iterators or optimizers of a wrong type."""
    for name, iterator in iterators.items():
        if not hasattr(iterator, "__next__") and not hasattr(iterator, "finalize"):
            raise TypeError(
                f"StandardUpdater: expected an iterator as {name!r}, got "
                f"{type(iterator).__name__}"
            )
    for name, optimizer in optimizers.items():
        # Another library's has a target, and an update_core of the program.
        if not hasattr(optimizer, "target"):
            check_optimizer("StandardUpdater", optimizer, name)
