"""FusedRule: an update that is one pass of the core."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from renga.core import backend
from renga.core.optimizer.hyperparameter import (
    DefaultHyperparameter,
    Hyperparameter,
)
from renga.core.optimizer.update_rule import DISPATCHING, UpdateRule
from renga.core.parameter import Parameter
from renga.utils.meta import is_method_of

_OVERRIDABLE = {*DISPATCHING, "update_core_cpu", "options_of", "entry"}


class FusedRule(UpdateRule):
    """Updates by a rule of the core's list, in one pass over parameter and state.

    The states are those of the list entry. Its options are the hyperparameters of the
    same names, unless ``options_of`` computes some.

    Args:
        parent_hyperparam: those of the optimizer; the defaults of the rule unless
            given, for a rule that is assigned to ``param.update_rule``.
        values: hyperparameters of this rule alone, in the order of the optimizer's
            arguments, or by their names.
    """

    entry: Any
    """The rule, one of ``_core.optimizers.entries``."""
    is_elementwise = True
    shares_options = True
    """Whether ``options_of`` gives the same for rules that differ in states alone.

    Their parameters have one dtype and device. A class that overrides ``options_of``
    overrides this, too, where it is so.
    """

    default_values: Mapping[str, float] | None = None
    """The hyperparameters with their defaults; those of the entry unless given."""

    def __init__(
        self,
        parent_hyperparam: Hyperparameter | None = None,
        *values: float | None,
        **named: float | None,
    ) -> None:
        super().__init__(parent_hyperparam or default_hyperparam(type(self)))
        if not values and not named:
            return
        names = list(default_values_of(type(self)))
        if len(values) > len(names) or not named.keys() <= set(names[len(values) :]):
            raise TypeError(
                f"{type(self).__name__}: expected hyperparameters {', '.join(names)}, "
                f"got {len(values)} and {', '.join(named) or 'none'} by name"
            )
        for name, value in {**dict(zip(names, values)), **named}.items():
            if value is not None:
                setattr(self.hyperparam, name, value)

    # The next update takes these: two numbers by which a device decides whether it
    # changes anything, and the scale and decay of its gradient.
    mask: Any = None
    _fused: tuple[float, float] | None = None

    def init_state(self, param: Parameter) -> None:
        self.init_zeros(param, *self.entry.states)

    def options_of(self, param: Parameter) -> dict[str, float | bool]:
        """The options of the next update by their names, and other hyperparameters."""
        return self.hyperparam.get_dict()

    def update_core_cpu(self, param: Parameter) -> None:
        grad: Any = param.grad
        if self._fused is not None or self.mask is not None:
            fused, self._fused = self._fused or (1.0, 0.0), None
            mask = () if self.mask is None else (self.mask, self.t)
            grad = (grad, *fused, *mask)
        self.entry.update(param.array, grad, self.state, self.options_of(param))

    def update_core_gpu(self, param: Parameter) -> None:
        if not is_method_of(self, FusedRule, "update_core_cpu"):
            raise NotImplementedError
        self.update_core_cpu(param)

    def is_one_pass(self, param: Parameter) -> bool:
        return (
            self._is_rule_of_core()
            and not self._use_fp32_update
            and isinstance(param.array, backend.get_array_types())
            and param.loss_scale is None
        )

    def is_maskable(self) -> bool:
        return self._is_rule_of_core()

    def fuse(self, param: Parameter, scale: float = 1.0, decay: float = 0.0) -> bool:
        can = param.grad is not None and self.is_one_pass(param)
        self._fused = (scale, decay) if can else None
        return can

    def begins(self, param: Parameter) -> bool:
        """Whether an update begins that is computed together with others.

        It does not where the user, a mask or a loss scale takes part. The caller has
        seen that the classes override nothing that updates.
        """
        if (
            not self.enabled
            or self.has_update_hooks
            or self._use_fp32_update
            or self.mask is not None
            or param.loss_scale is not None
            or not param.is_initialized
            or not _OVERRIDABLE.isdisjoint(vars(self))
        ):
            return False
        if self._state is None or self._state_device != param.device_name:
            self.prepare_state(param)
        self.t += 1
        return True

    def _is_rule_of_core(self) -> bool:
        return (
            is_method_of(self, FusedRule, *DISPATCHING, "update_core_cpu")
            and self.enabled
            and not self.has_update_hooks
        )


def default_hyperparam(rule: type[FusedRule]) -> Hyperparameter:
    """The hyperparameters of rules of a class that no optimizer has made."""
    owners = (c for c in rule.__mro__ if {"entry", "default_values"} & vars(c).keys())
    return _defaults_of(next(owners, rule))


@functools.cache
def _defaults_of(rule: type[FusedRule]) -> Hyperparameter:
    hyperparam = DefaultHyperparameter()
    for name, value in default_values_of(rule).items():
        setattr(hyperparam, name, value)
    return hyperparam


def default_values_of(rule: type[FusedRule]) -> Mapping[str, float]:
    """The hyperparameters of a rule with their defaults."""
    values = rule.default_values
    return getattr(rule.entry, "defaults", {}) if values is None else values
