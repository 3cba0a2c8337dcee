"""What a worker's optimizer says about its updates, for the copies that make them."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from renga.core.optimizer import GradientMethod, Optimizer, UpdateRule
from renga.core.optimizer.hooks import Hookable
from renga.core.parameter import Parameter

# Attributes of update rules that are no settings, or come separately.
_STATES = (
    "hyperparam",
    "is_exclusive",
    "is_of_setup",
    "t",
    "_state",
    "_state_device",
    "_awaits_shape",
    "_fp32_param",
    "_fused",
    "device_scale",
    "mask",
    "_pre_update_hooks",
    "_post_update_hooks",
)


class HookSettings(NamedTuple):
    """A hook of an optimizer or a rule.

    ``pickled`` is None if it cannot be pickled; ``identity`` is that on the worker.
    """

    timing: str
    name: str
    pickled: bytes | None
    identity: int


class RuleSettings(NamedTuple):
    """Of an update rule.

    ``kind`` is None for the type that the optimizer makes; ``hyperparameters`` are the
    rule's own, beside those of the optimizer.
    """

    kind: type | None
    attributes: dict[str, Any]
    hyperparameters: dict[str, Any]
    hooks: list[HookSettings]


class UpdateSettings(NamedTuple):
    """Of an optimizer and of the update rules of its parameters.

    Of the optimizer's hyperparameters, ``numbers`` are the names of those that come
    with each gradient, and ``others`` are the rest.
    """

    numbers: list[str]
    others: dict[str, Any]
    hooks: list[HookSettings]
    rules: list[RuleSettings]

    @property
    def all_hooks(self) -> list[HookSettings]:
        """Of the optimizer and of its rules."""
        return [*self.hooks, *(hook for rule in self.rules for hook in rule.hooks)]


class SettingsReader:
    """Reads the settings of an optimizer.

    Args:
        optimizer: whose settings they are.
        params: the parameters that it updates.
    """

    def __init__(self, optimizer: GradientMethod, params: Sequence[Parameter]) -> None:
        self._optimizer = optimizer
        self._params = list(params)
        self._rules = [param.update_rule for param in params]
        self._kind = type(optimizer.create_update_rule())
        self._disabled = RuleSettings(None, {"enabled": False}, {}, [])
        self._unpicklable: dict[int, Any] = {}  # hooks, by identity

    def read(self) -> UpdateSettings:
        """The settings as they are.

        Raises:
            ValueError: a parameter has got another rule of the class that it had.
        """
        rules = [param.update_rule for param in self._params]
        for param, rule, last in zip(self._params, rules, self._rules):
            if rule is not last and type(rule) is type(last):
                raise ValueError(
                    f"update: expected the update rule of {param.name} that it had, "
                    "whose states the parameter servers have, or one of another class, "
                    f"got another {type(rule).__name__}"
                )
        self._rules = rules
        values = _own(self._optimizer.hyperparam)
        numbers = list(numbers_of(self._optimizer))
        return UpdateSettings(
            numbers,
            {name: x for name, x in values.items() if name not in numbers},
            self._hooks(self._optimizer),
            [self._rule(rule) for rule in rules],
        )

    def _rule(self, rule: UpdateRule | None) -> RuleSettings:
        if rule is None:
            return self._disabled
        attributes = vars(rule).copy()
        for name in _STATES:
            attributes.pop(name, None)
        kind = None if type(rule) is self._kind else type(rule)
        hyperparam = rule.hyperparam
        is_of_optimizer = hyperparam.parent is self._optimizer.hyperparam
        values = _own(hyperparam) if is_of_optimizer else hyperparam.get_dict()
        return RuleSettings(kind, attributes, values, self._hooks(rule))

    def _hooks(self, owner: Hookable) -> list[HookSettings]:
        return [
            HookSettings(timing, name, self._pickled(hook), id(hook))
            for timing, name, hook in owner.timed_hooks()
        ]

    def _pickled(self, hook: Any) -> bytes | None:
        if id(hook) not in self._unpicklable:
            try:
                return pickle.dumps(hook)
            except Exception:  # pickle raises errors of many types
                self._unpicklable[id(hook)] = hook
        return None


def hook_finder(
    optimizer: Optimizer,
) -> Callable[[HookSettings], Callable[..., object]]:
    """A function that returns the hook for settings from any rank.

    Equal hooks of several ranks are one, which keeps its state when others change. One
    that cannot be pickled is that of this rank's optimizer.
    """

    @functools.lru_cache(maxsize=64)
    def load(timing: str, name: str, pickled: bytes) -> Any:
        return pickle.loads(pickled)

    def find(hook: HookSettings) -> Any:
        if hook.pickled is not None:
            return load(*hook[:3])
        own = optimizer.update_hooks(hook.timing)
        if hook.name not in own:
            raise RuntimeError(
                "parameter server: expected the hooks of the workers on every rank, "
                f"got none called {hook.name!r}"
            )
        return own[hook.name]

    return find


def use_settings(
    settings: UpdateSettings,
    optimizer: GradientMethod,
    find_hook: Callable[..., object],
) -> None:
    """Gives a copy of an optimizer, and the rules of its parameters, settings.

    Args:
        settings: with those of a rule for each parameter of the optimizer's target.
        optimizer: the copy.
        find_hook: the hook for some HookSettings.
    """
    numbers = dict.fromkeys(settings.numbers)
    _set_own(optimizer.hyperparam, {**numbers, **settings.others})
    _set_hooks(optimizer, settings.hooks, find_hook)
    for param, of_rule in zip(optimizer.target.params(), settings.rules):
        kind: Any = of_rule.kind or type(optimizer.create_update_rule())
        rule: Any = param.update_rule
        if type(rule) is not kind:
            rule = param.update_rule = kind.__new__(kind)
            UpdateRule.__init__(rule, optimizer.hyperparam)
        vars(rule).update(of_rule.attributes)
        _set_own(rule.hyperparam, of_rule.hyperparameters)
        _set_hooks(rule, of_rule.hooks, find_hook)


def numbers_of(optimizer: GradientMethod) -> dict[str, float]:
    """The numbers among the hyperparameters of an optimizer."""
    values: dict[str, Any] = optimizer.hyperparam.get_dict()
    return {
        name: values[name]
        for name in sorted(values)
        if isinstance(values[name], (int, float)) and not isinstance(values[name], bool)
    }


def _own(hyperparam: Any) -> dict[str, Any]:
    values: dict[str, Any] = vars(hyperparam).copy()
    del values["_parent"]
    return values


def _set_own(hyperparam: Any, values: dict[str, Any]) -> None:
    mine = vars(hyperparam)
    for name in mine.keys() - values.keys() - {"_parent"}:
        del mine[name]
    mine.update(values)


def _set_hooks(
    owner: Any, hooks: Sequence[HookSettings], find_hook: Callable[..., Any]
) -> None:
    owner.clear_update_hooks()
    for hook in hooks:
        owner.update_hooks(hook.timing)[hook.name] = find_hook(hook)
