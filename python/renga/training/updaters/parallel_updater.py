"""An updater that divides a batch among copies of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from renga.backends.device import DeviceLike
from renga.core import backend
from renga.core.link import Link
from renga.core.optimizer import Optimizer
from renga.dataset import convert
from renga.dataset.iterator import Iterator
from renga.training.updaters.standard_updater import StandardUpdater

if TYPE_CHECKING:
    from renga.training.trainer import Trainer


class ParallelUpdater(StandardUpdater):
    """Updates a model with gradients that copies of it on several devices compute.

    Copy ``i % n`` gets example ``i`` of a batch. The gradients of all copies are summed
    in the main copy, which the optimizer updates; the others then copy its parameters.
    As the loss is a mean over a copy's examples, the sum is ``n`` times the gradient of
    one device.

    Args:
        models: the copies by name, ``"main"`` being the optimizer's target; made by
            copying unless given.
        devices: the device of each copy by name.

    The other arguments are those of ``StandardUpdater``.

    Raises:
        ValueError: neither models nor devices are given.
        KeyError: there is no ``"main"`` among them.
    """

    def __init__(
        self,
        iterator: Iterator | Mapping[str, Iterator],
        optimizer: Optimizer | Mapping[str, Optimizer],
        converter: Callable = convert.concat_examples,
        models: Mapping[str, Link] | None = None,
        devices: Mapping[str, DeviceLike] | None = None,
        loss_func: Callable | None = None,
        loss_scale: float | None = None,
        auto_new_epoch: bool = True,
    ) -> None:
        super().__init__(
            iterator,
            optimizer,
            converter,
            loss_func=loss_func,
            loss_scale=loss_scale,
            auto_new_epoch=auto_new_epoch,
        )
        if models is None and devices is None:
            raise ValueError("ParallelUpdater: expected models or devices")
        for name, given in (("models", models), ("devices", devices)):
            if given is not None and "main" not in given:
                raise KeyError(f"ParallelUpdater: {name} must contain a 'main' key")
        self._devices = {
            name: backend.get_device(device) for name, device in (devices or {}).items()
        }
        target = self._optimizers["main"].target
        if models is None:
            models = {
                name: target if name == "main" else copy.deepcopy(target)
                for name in self._devices
            }
        self._models = dict(models)
        for name, device in self._devices.items():
            self._models[name].to_device(device)

    def connect_trainer(self, trainer: Trainer) -> None:
        """Reports the values of the main copy only, under ``main``."""
        for name, model in self._models.items():
            if name != "main":
                trainer.reporter.add_links(name, model)

    def update_core(self) -> None:
        """Trains on one batch."""
        iterator, optimizer = self._iterators["main"], self._optimizers["main"]
        batch = iterator.next()
        main = self._models["main"]
        count = len(self._models)
        for i, (name, model) in enumerate(self._models.items()):
            model.cleargrads()
            with backend.using_device(self._devices.get(name, model.device)):
                loss = self._loss(name, model, batch[i::count])
                if loss is not None:
                    loss.backward(loss_scale=optimizer.loss_scale)
        others = [model for name, model in self._models.items() if name != "main"]
        for model in others:
            main.addgrads(model)
        optimizer.update()
        for model in others:
            model.copyparams(main)
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def _loss(self, name: str, model: Any, examples: list[Any]) -> Any:
        if not examples:
            return None  # fewer examples than copies
        device = self._devices.get(name, model.device)
        args, kwargs = convert.arguments_from(self.converter, examples, device)
        return (self.loss_func or model)(*args, **kwargs)
