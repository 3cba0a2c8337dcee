"""An extension that ends training when parameters diverge."""

from __future__ import annotations

from renga.core.optimizer.loss_scaling import are_finite
from renga.training import extension
from renga.training.trainer import Trainer


class FailOnNonNumber(extension.Extension):
    """Raises RuntimeError as soon as a parameter holds a NaN or an infinity."""

    def __call__(self, trainer: Trainer) -> None:
        """Checks the parameters of every optimizer; waits once for a device."""
        arrays = [
            (name, path, parameter.array)
            for name, optimizer in trainer.updater.get_all_optimizers().items()
            for path, parameter in optimizer.target.namedparams()
            if parameter.array is not None
        ]
        if are_finite(array for _, _, array in arrays):
            return
        for name, path, array in arrays:
            if not are_finite([array]):
                raise RuntimeError(
                    f"FailOnNonNumber: parameter {path} of optimizer {name!r} is "
                    f"not finite after iteration {trainer.updater.iteration}"
                )
