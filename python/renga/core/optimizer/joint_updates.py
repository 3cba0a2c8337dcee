"""Updates of many parameters by one call of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from renga import _core
from renga.core.optimizer.fused_rule import FusedRule
from renga.core.optimizer.update_rule import DISPATCHING
from renga.core.parameter import Parameter
from renga.optimizer_hooks.gradient_change import GradientChange

_OF_RULE = (*DISPATCHING, "update_core_cpu")
_OF_PARAMETER = ("update", "array", "grad")


class JointUpdates:
    """Collects updates that run no code of the user, of parameters and rules.

    Args:
        change: what happens to each gradient before.
    """

    def __init__(self, change: GradientChange | None) -> None:
        self._change = (1.0, 0.0) if change is None else change[1:]
        # Of the last parameter and rule: their classes, whether these leave it to the
        # core what an update does, and whether rules may share their options.
        self._kind: tuple[type, type] = (object, object)
        self._is_of_core = self._shares_options = False
        # By what the options depend on: the rule of the core, parameters, states and
        # options.
        self._calls: dict[Any, tuple[Any, list[Any], list[Any], dict[str, Any]]] = {}

    def add(self, param: Any) -> bool:
        """Takes the update of a parameter, if it runs no code of the user."""
        rule = param.update_rule
        kind = type(param), type(rule)
        if kind != self._kind:
            self._kind = kind
            self._is_of_core = _is_of_core(*kind)
            self._shares_options = _shares_options(kind[1])
        if not self._is_of_core or "update" in vars(param) or not rule.begins(param):
            return False
        own = vars(rule.hyperparam)
        is_shared = self._shares_options and len(own) == 1  # the parent's alone
        key = (kind[1], own["_parent"], rule.options_key(param)) if is_shared else rule
        call = self._calls.get(key)
        if call is None:
            call = rule.entry, [], [], rule.options_of(param)
            self._calls[key] = call
        call[1].append(param)
        call[2].append(rule._state)
        return True

    def apply(self) -> None:
        """Computes the updates that were taken."""
        if not self._calls:
            return
        calls, self._calls = self._calls.values(), {}

        def update() -> None:
            for entry, params, states, options in calls:
                entry.update_all(params, states, options, *self._change)

        if len(calls) == 1:
            update()
        else:
            _core.optimizers.update_together(update)


def update_params(
    params: Iterable[Any], before_update: Callable[[Any], None] | None
) -> None:
    """Updates parameters in their order, with what a hook does before each.

    Adjoining ones that run no code of the user are computed together.
    """
    change = before_update if isinstance(before_update, GradientChange) else None
    joint = JointUpdates(change)
    can_join = before_update is None or change is not None
    try:
        for param in params:
            if can_join and joint.add(param):
                continue
            joint.apply()
            if before_update is not None:
                before_update(param)
            param.update()
    finally:
        joint.apply()


def _is_of_core(param: type, rule: type) -> bool:
    """Whether classes override nothing that a joint update leaves out."""
    return (
        issubclass(rule, FusedRule)
        and all(getattr(rule, name) is getattr(FusedRule, name) for name in _OF_RULE)
        and all(getattr(param, x) is getattr(Parameter, x) for x in _OF_PARAMETER)
    )


def _shares_options(rule: type) -> bool:
    """Whether ``options_key`` of a class is about the ``options_of`` that it has."""
    for owner in rule.__mro__:
        if "options_key" in vars(owner):
            return True
        if "options_of" in vars(owner):
            return False
    return False
