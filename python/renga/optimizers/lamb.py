"""LAMB: Adam with steps scaled to the norm of each parameter."""

from __future__ import annotations

from renga import _core
from renga.core.optimizer import GradientMethod, UpdateRule, with_hyperparameters
from renga.core.parameter import Parameter
from renga.core.variable import as_factor
from renga.optimizer_hooks.norm import is_above, one_unless, square_root, squared_norm

_DEFAULT: dict[str, float] = _core.optimizers.entries["lamb_direction"].defaults


class LAMBRule(UpdateRule):
    """The step of LAMB for one parameter."""

    def init_state(self, param: Parameter) -> None:
        self.init_zeros(param, "m", "v")

    def update_core_cpu(self, param: Parameter) -> None:
        hp, x = self.hyperparam, param.array
        step = _core.empty(x.shape, x.dtype, param.device_name)
        options = {
            **hp.get_dict(),
            "correction1": 1 - hp.beta1**self.t,
            "correction2": 1 - hp.beta2**self.t,
        }
        _core.optimizers.lamb_direction(
            x, param.grad, {**self.state, "d": step}, options
        )
        x_norm = square_root(squared_norm(param, x))
        step_norm = square_root(squared_norm(param, step))
        trust = one_unless(is_above(x_norm * step_norm, 0), lambda: x_norm / step_norm)
        x -= as_factor(hp.alpha * trust, step) * step

    update_core_gpu = update_core_cpu


@with_hyperparameters
class LAMB(GradientMethod):
    """Adam's step, scaled for each parameter to the parameter's norm.

    ``r = m̂ / (√v̂ + eps) + weight_decay_rate x; x -= alpha |x| / |r| r`` with Adam's
    moments corrected for their bias. Where ``x`` or ``r`` is zero, the step is
    ``alpha r``. For very large batches.

    Source: You et al., ICLR 2020.
    """

    _rule = LAMBRule
    alpha: float = _DEFAULT["alpha"]
    beta1: float = _DEFAULT["beta1"]
    beta2: float = _DEFAULT["beta2"]
    eps: float = _DEFAULT["eps"]
    weight_decay_rate: float = _DEFAULT["weight_decay_rate"]
