"""An extension that ends training when parameters diverge."""

from __future__ import annotations

import numpy

from renga.training import extension
from renga.training.trainer import Trainer


class FailOnNonNumber(extension.Extension):
    """Raises RuntimeError as soon as a parameter holds a NaN or an infinity."""

    def __call__(self, trainer: Trainer) -> None:
        """Checks the parameters of every optimizer."""
        for name, optimizer in trainer.updater.get_all_optimizers().items():
            for path, parameter in optimizer.target.namedparams():
                array = parameter.array
                if array is not None and not numpy.isfinite(array).all():
                    raise RuntimeError(
                        f"FailOnNonNumber: parameter {path} of optimizer {name!r} is "
                        f"not finite after iteration {trainer.updater.iteration}"
                    )
