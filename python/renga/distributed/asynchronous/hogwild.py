"""Hogwild: ranks of one node that update the same memory without locks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

from renga import _communicators
from renga.distributed.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.optimizers.sgd import SGD

if TYPE_CHECKING:
    from renga.communicators import NativeCommunicator


class HogwildOptimizer(AsynchronousOptimizer):
    """SGD on parameters in memory that the ranks share.

    Each rank computes gradients of the parameters as they are and subtracts them, an
    element at a time, where they are not zero; no update of an element is lost. It pays
    where gradients are sparse, so that ranks seldom write to the same element.

    Args:
        actual_optimizer: an SGD without hooks.
        communicator: of ranks that share memory.

    Raises:
        TypeError: for another optimizer.
        ValueError: if the ranks do not share memory.

    Source: Recht et al., Hogwild!: A lock-free approach to parallelizing stochastic
    gradient descent, NIPS 2011.
    """

    communicator: NativeCommunicator

    def __init__(self, actual_optimizer: Any, communicator: NativeCommunicator) -> None:
        if type(actual_optimizer) is not SGD:
            raise TypeError(
                "create_hogwild_optimizer: expected an SGD, got "
                f"{type(actual_optimizer).__name__}"
            )
        if not communicator.shares_memory() or communicator.inter_size > 1:
            raise ValueError(
                "create_hogwild_optimizer: expected ranks that share memory, got "
                f"{communicator.size} on {communicator.inter_size} nodes that do not"
            )
        super().__init__(actual_optimizer, communicator)

    def _after_begin(self, resumes: bool) -> None:
        params = [param for param in self._params() if param.is_initialized]
        copies = self.communicator.copy_to_window([param.array for param in params])
        for param, copy in zip(params, copies):
            param.array = self.communicator.window_of_peer(copy, 0)
        self.communicator.barrier()  # rank 0 has copied

    def _update(self, forward: Callable[[], Any] | None) -> None:
        self._require_constant_loss_scale("create_hogwild_optimizer")
        rules = [p.update_rule for p in self._params() if p.update_rule is not None]
        if any(x._hooks("pre") or x._hooks("post") for x in (self, *rules)):
            raise ValueError("create_hogwild_optimizer: expected an SGD without hooks")
        self._compute_gradients(forward)
        for param in self._params():
            rule = param.update_rule
            if param.grad is None or rule is None or not rule.enabled:
                continue
            scale, param._loss_scale = param._loss_scale, None
            rate = rule.hyperparam.lr / (1.0 if scale is None else scale)
            _communicators.hogwild_sgd(param.array, param.grad, rate)
        self.actual_optimizer.t += 1

    def join(self) -> None:
        """Returns when every rank has made its last update."""
        self.communicator.barrier()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """A context in which nothing changes: all ranks have the same parameters."""
        yield
