"""What a multi-node optimizer is told by a caller that computes gradients itself."""

from __future__ import annotations

from typing import Any

from renga.parallel.data.accumulation import Accumulation
from renga.parallel.data.optimizers.wrapped_optimizer import WrappedOptimizer
from renga.parallel.data.replicas.replicas import Replicas
from renga.parallel.data.synchronization import GradientSource
from renga.utils.argument import check_count


class CallerGradients(WrappedOptimizer):
    """The number of samples of gradients, and a preparation of the ranks for them."""

    _replicas: Replicas
    _accumulation: Accumulation

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "samples":
            super().__setattr__(name, value)
            return
        if value is not None:
            check_count("samples", value, 0)
        vars(self)["_samples"] = value

    @property
    def samples(self) -> int | None:
        """How many samples this rank's next batches have; None: as their arguments say.

        To be set before ``update`` or by the loss function, where the arguments do not
        show it or where the loss is a mean over something else, such as the labels that
        are not ignored.
        """
        samples: int | None = vars(self)["_samples"]
        return samples

    def prepare(self, has_loaded: bool = False) -> None:
        """Has all ranks begin with the parameters and states of rank 0.

        Every rank calls it before gradients are computed, which would otherwise be
        those of other parameters in the first step.

        Args:
            has_loaded: whether all ranks have got what one of them has loaded.

        Raises:
            ValueError: if gradients are accumulated, which only those of losses are.
        """
        if not self._accumulation.is_last:
            raise ValueError(
                "accumulate: expected a count of 1 for gradients that the caller "
                "computes, as a pipeline does, which takes several batches for an "
                "update itself (PipelineUpdater(..., accumulate=count))"
            )
        self._replicas.has_loaded |= has_loaded
        self._prepare_first_update(lambda: None, None, GradientSource.EXTERNAL)

    def _prepare_first_update(
        self, forward: Any, samples: int | None, source: GradientSource
    ) -> bool:
        raise NotImplementedError
