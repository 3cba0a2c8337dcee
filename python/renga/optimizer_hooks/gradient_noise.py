"""GradientNoise: adds noise that decays during training."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Callable

import numpy

from renga.backends import cuda
from renga.core.optimizer import Optimizer
from renga.core.parameter import Parameter
from renga.core.types import Array, DTypeLike
from renga.optimizer_hooks.gradient_change import scale_of
from renga.utils.argument import check_number


def exponential_decay_noise(
    xp: ModuleType,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    hook: GradientNoise,
    opt: Optimizer,
) -> Array:
    """Normal noise of variance ``eta / (1 + t)^0.55``, where ``t`` counts updates.

    NumPy draws it for every device, so that a seed gives the same training.
    """
    deviation = (hook.eta / (1 + opt.t) ** 0.55) ** 0.5
    noise = numpy.random.normal(0, deviation, shape).astype(dtype)
    return noise if xp is numpy else cuda.to_gpu(noise)


class _NoiseOfThread(threading.local):
    comm: Any = None


_thread = _NoiseOfThread()


@contextlib.contextmanager
def noise_of_rank_0(comm: Any) -> Iterator[None]:
    """A context in which the ranks of ``comm`` add what its rank 0 draws.

    Each of them makes the same update in it.
    """
    before = _thread.comm
    _thread.comm = comm if comm.size > 1 else None
    try:
        yield
    finally:
        _thread.comm = before


class GradientNoise:
    """Adds noise to the gradient.

    ``noise_func`` takes the array module, the shape, the dtype, this hook and the
    update rule. Ranks whose updates are equal add the noise that rank 0 draws.

    Source: Neelakantan et al., arXiv:1511.06807.
    """

    name = "GradientNoise"
    call_for_each_param = True
    timing = "pre"

    def __init__(
        self, eta: float, noise_func: Callable[..., object] = exponential_decay_noise
    ) -> None:
        check_number("GradientNoise: eta", eta, 0)
        self.eta = eta
        self.noise_func = noise_func

    def skip(self, rule: object, param: Parameter) -> None:
        """Draws what it would add, so that the ranks' generators stay equal."""
        param.draw(lambda shape: self._noise(numpy, shape, param.dtype, rule))

    def __call__(self, rule: object, param: Parameter) -> None:
        grad = param.grad
        if grad is None:
            return
        noise = param.draw(lambda shape: self._noise(param.xp, shape, grad.dtype, rule))
        grad += noise * grad.dtype.type(scale_of(param))

    def _noise(self, xp: Any, shape: tuple[int, ...], dtype: Any, rule: Any) -> Any:
        noise, comm = self.noise_func(xp, shape, dtype, self, rule), _thread.comm
        if comm is None:
            return noise
        noise = comm.broadcast(numpy.array(cuda.to_cpu(noise), order="C"))
        return noise if xp is numpy else cuda.to_gpu(noise)
