"""GradientNoise: adds noise that decays during training."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga.backends import cuda
from renga.optimizer_hooks.loss_scale import scale_of
from renga.utils.argument import check_number


def exponential_decay_noise(
    xp: Any, shape: tuple[int, ...], dtype: Any, hook: Any, opt: Any
) -> Any:
    """Normal noise of variance ``eta / (1 + t)^0.55``, where ``t`` counts updates.

    NumPy draws it for every device, so that a seed gives the same training.
    """
    deviation = (hook.eta / (1 + opt.t) ** 0.55) ** 0.5
    noise = numpy.random.normal(0, deviation, shape).astype(dtype)
    return noise if xp is numpy else cuda.to_gpu(noise)


class GradientNoise:
    """Adds noise to the gradient.

    ``noise_func`` takes the array module, the shape, the dtype, this hook and the
    update rule.

    Source: Neelakantan et al., arXiv:1511.06807.
    """

    name = "GradientNoise"
    call_for_each_param = True
    timing = "pre"

    def __init__(
        self, eta: float, noise_func: Callable[..., Any] = exponential_decay_noise
    ) -> None:
        check_number("GradientNoise: eta", eta, 0)
        self.eta = eta
        self.noise_func = noise_func

    def skip(self, rule: Any, param: Any) -> None:
        """Draws what it would add, so that the ranks' generators stay equal."""
        param.draw(lambda shape: self.noise_func(numpy, shape, param.dtype, self, rule))

    def __call__(self, rule: Any, param: Any) -> None:
        grad = param.grad
        if grad is None:
            return
        noise = param.draw(
            lambda shape: self.noise_func(param.xp, shape, grad.dtype, self, rule)
        )
        grad += noise * grad.dtype.type(scale_of(param))
