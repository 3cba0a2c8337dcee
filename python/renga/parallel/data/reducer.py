"""The interface of gradient reduction."""

from __future__ import annotations

import contextlib

from renga.core.parameter import Parameter
from renga.parallel.data.synchronization import SyncRequest


class Reducer:
    """Replaces the gradients of a model by their mean over the ranks, once a step::

        reducer.begin(request)
        with reducer.attached():  # the engine calls reducer.add(parameter)
            loss.backward()
        reducer.finalize(weight)
        if reducer.wait():
            optimizer.update()

    The kinds, each on top of a communicator:

    ==================  ==========================================================
    MeanReducer         averages after ``backward()``
    BucketedReducer     averages buckets of gradients while ``backward()`` runs
    UpdatingReducer     averages after ``backward()`` and updates in the same pass,
                        each rank a shard of the parameters
    DelayedReducer      averages during the next step (double buffering)
    ==================  ==========================================================

    Every rank calls ``finalize`` and ``wait``; ``add`` comes in any order, or not at
    all for a parameter that the loss does not depend on.
    """

    def begin(self, request: SyncRequest, loss_scale: float | None = None) -> None:
        """Starts a step.

        Args:
            request: nothing is sent before all ranks have answered it.
            loss_scale: what the gradients are multiplied by; None for nothing.
        """

    def attached(self) -> contextlib.AbstractContextManager[None]:
        """The context in which ``backward()`` runs and ``add`` is called."""
        return contextlib.nullcontext()

    def add(self, param: Parameter) -> None:
        """Takes note that ``backward()`` has completed this rank's gradient."""

    def finalize(self, weight: float) -> None:
        """Launches what has not been launched yet, once ``backward()`` has ended.

        Args:
            weight: what this rank's gradients are multiplied by.
        """
        raise NotImplementedError

    def wait(self) -> bool:
        """Blocks until the reduction is done.

        Returns:
            Whether the parameters' gradients are means, by which the caller has to
            update; False where there is nothing to do.
        """
        raise NotImplementedError
