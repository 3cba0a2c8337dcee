"""Updates of many parameters by one call of the core."""

from __future__ import annotations

from collections.abc import Callable
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
        # The last parameter and rule have these: their classes, whether these leave it
        # to the core what an update does, and whether rules may share their options.
        self._kind: tuple[type, type] = (object, object)
        self._is_of_core = self._shares_options = False
        # The rule of the core, parameters, states and options.
        self._calls: list[tuple[Any, list[Any], list[Any], dict[str, Any]]] = []
        # The parameters and states of those that others may join.
        self._groups: list[tuple[list[Any], list[Any]]] = []

    def take(self, params: list[Parameter], begin: int) -> int:
        """Takes the updates from a position on that run no code of the user.

        Returns:
            the position of the first one that does, or the end.
        """
        begin = _core.optimizers.join(params, begin, self._groups)
        while begin < len(params) and self._add(params[begin]):
            begin = _core.optimizers.join(params, begin + 1, self._groups)
        return begin

    def _add(self, param: Any) -> bool:
        """Takes the update of a parameter, if it runs no code of the user."""
        rule = param.update_rule
        kind = type(param), type(rule)
        if kind != self._kind:
            self._kind = kind
            self._is_of_core = _is_of_core(*kind)
            self._shares_options = _shares_options(kind[1])
        if not self._is_of_core or "update" in vars(param) or not rule.begins(param):
            return False
        params, states = [param], [rule.state]
        self._calls.append((rule.entry, params, states, rule.options_of(param)))
        if self._shares_options:
            self._groups.append((params, states))
        return True

    def apply(self) -> None:
        """Computes the updates that were taken."""
        if not self._calls:
            return
        calls, self._calls, self._groups = self._calls, [], []

        def update() -> None:
            for entry, params, states, options in calls:
                entry.update_all(params, states, options, *self._change)

        if len(calls) == 1:
            update()
        else:
            _core.optimizers.update_together(update)


def update_params(
    params: list[Parameter], before_update: Callable[[Parameter], object] | None
) -> None:
    """Updates parameters in their order, with what a hook does before each.

    Adjoining ones that run no code of the user are computed together.
    """
    change = before_update if isinstance(before_update, GradientChange) else None
    joint = JointUpdates(change)
    can_join = before_update is None or change is not None
    begin = 0
    try:
        while True:
            if can_join:
                begin = joint.take(params, begin)
            joint.apply()
            if begin == len(params):
                return
            if before_update is not None:
                before_update(params[begin])
            params[begin].update()
            begin += 1
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
    """Whether what a class says of its options is about the ``options_of`` it has."""
    for owner in rule.__mro__:
        if "shares_options" in vars(owner):
            return bool(vars(owner)["shares_options"])
        if "options_of" in vars(owner):
            return False
    return False
