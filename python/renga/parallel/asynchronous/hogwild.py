"""Hogwild: ranks of one node that update the same memory without locks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable

import numpy

from renga import _communicators, _core
from renga.communicators import Communicator
from renga.core.link.sharing_memory import require_own_memory
from renga.core.optimizer import GradientMethod
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.optimizers.sgd import SGD, SGDRule
from renga.parallel.asynchronous.asynchronous_optimizer import AsynchronousOptimizer


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

    communicator: Communicator
    _shared: list[Array]
    _addresses: Any

    def __init__(
        self, actual_optimizer: GradientMethod, communicator: Communicator
    ) -> None:
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

    def _is_bound(self) -> bool:
        return self._packed is not None

    def _after_begin(self, resumes: bool) -> None:
        require_own_memory("create_hogwild_optimizer", self.target)
        params = self._packed.params
        for param in params:
            if param.dtype not in (numpy.float32, numpy.float64):
                raise ValueError(
                    "create_hogwild_optimizer: expected parameters in float32 or "
                    f"float64, got {param.name} in {param.dtype}"
                )
        copies = self.communicator.copy_to_window([param.array for param in params])
        self._shared = [self.communicator.window_of_peer(x, 0) for x in copies]
        for param, x in zip(params, self._shared):
            param.array = x
        self.communicator.barrier()  # rank 0 has copied
        self._addresses = _core.addresses(params)

    def _share_replaced_arrays(self) -> None:
        """Copies arrays that the caller has replaced to the memory of all ranks."""
        params = self._packed.params
        if _core.addresses(params) == self._addresses:
            return
        for param, x in zip(params, self._shared):
            x[...] = param.array
            param.array = x

    def _update(self, forward: Callable[[], Any] | None) -> None:
        rules = [param.update_rule for param in self._packed.params]
        owners = [self, *(rule for rule in rules if rule is not None)]
        if any(x.has_update_hooks for x in owners):
            raise ValueError("create_hogwild_optimizer: expected an SGD without hooks")
        for param, rule in zip(self._packed.params, rules):
            if type(rule) not in (SGDRule, type(None)):
                raise TypeError(
                    "create_hogwild_optimizer: expected the update rules of SGD, got "
                    f"{type(rule).__name__} of {param.name}"
                )
        self._share_replaced_arrays()
        self._compute_gradients(forward)
        self.actual_optimizer.check_nan_in_grads()
        if self._samples != 0 and self.actual_optimizer.is_safe_to_update():
            for param in self._packed.params:
                _subtract_gradient(param)
        self.actual_optimizer.t += 1
        self.actual_optimizer.update_loss_scale()

    def _join(self) -> None:
        self._begin_to_join()
        self.communicator.barrier()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """A context in which no rank trains; all ranks enter it together.

        They have the same parameters. Floating persistent arrays, such as the
        statistics of batch normalization, are averaged.

        Raises:
            RuntimeError: training has ended on another rank.
        """
        self._meet_all()
        with self._averaged_statistics():
            yield
        self._meet_all()


def _subtract_gradient(param: Parameter) -> None:
    rule = param.update_rule
    if rule is None or not rule.enabled:
        return
    rule.t += 1
    scale, param.loss_scale = param.loss_scale, None
    grad = param.grad
    if grad is not None:
        rate = rule.hyperparam.lr / (1.0 if scale is None else scale)
        grad = grad if grad.flags.c_contiguous else grad.copy()
        _communicators.hogwild_sgd(param.array, grad, rate)
