"""Averaging after the backward pass."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.core.link import Link
from renga.parallel.data.gradients import take_gradient
from renga.parallel.data.reducer import Reducer
from renga.parallel.data.tracing import span


class MeanReducer(Reducer):
    """Averages by the communicator's own ``multi_node_mean_grad``.

    It averages whatever gradients the parameters have.

    Args:
        comm: the communicator.
        model: whose gradients are averaged.
        zero_fill: whether a parameter without a gradient on all ranks gets zeros.
    """

    def __init__(self, comm: Communicator, model: Link, zero_fill: bool) -> None:
        self._comm = comm
        self._model = model
        self._zero_fill = zero_fill

    def finalize(self, weight: float) -> None:
        if weight != 1:
            for param in self._model.params(include_uninit=False):
                if param.grad_var is not None:
                    param.grad = take_gradient(param, weight)
        with span("average gradients", "communication"):
            self._comm.multi_node_mean_grad(self._model, self._zero_fill)

    def wait(self) -> bool:
        return True
