"""Settings of an optimizer, which have to be equal on all ranks."""

from __future__ import annotations

import functools
import numbers
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from renga.communicators import Communicator
from renga.core.link.distinct_params import DistinctParam
from renga.core.optimizer import Optimizer
from renga.core.optimizer.hooks import Hookable
from renga.core.optimizer.update_rule import UpdateRule
from renga.core.parameter import Parameter

_HYPERPARAMETER = "hyperparameter"
_ENABLED = "enabled"
_HOOKS = "renga.optimizer_hooks"  # a user's hook may well be on one rank alone


class RankSetting(NamedTuple):
    """The name of a value: of a parameter's update rule, or of the optimizer."""

    param: str  # empty for the optimizer
    kind: str
    name: str = ""

    def __str__(self) -> str:
        where = f"{self.param}: " if self.param else ""
        return f"{where}{self.name or self.kind}"


def fingerprint_of(optimizer: Optimizer, params: Iterable[Parameter]) -> int:
    """A number that differs, mostly, where settings do; cheap enough for every step.

    It covers numbers among the hyperparameters, hooks of this library, and which
    parameters are frozen.
    """
    values: list[Any] = []
    hyperparam = getattr(optimizer, "hyperparam", None)
    if hyperparam is not None:
        _append_numbers(values, vars(hyperparam))
    _append_hooks(values, optimizer)
    for param in params:
        rule = param.update_rule
        if not isinstance(rule, UpdateRule):
            values.append(-1)
            continue
        values.append(rule.enabled)
        own = vars(rule.hyperparam)
        if len(own) > 1:  # besides the parent
            _append_numbers(values, own)
        if rule.has_update_hooks:
            _append_hooks(values, rule)
    return hash(tuple(values))


def _append_numbers(values: list[Any], found: Mapping[str, Any]) -> None:
    for name in sorted(found):
        value = found[name]
        # The hashes of other objects, and of NaN, differ between processes.
        if type(value) in (float, int, bool) and value == value:
            values.append(value)


def _append_hooks(values: list[Any], hookable: Any) -> None:
    for timing in ("pre", "post"):
        for hook in hookable.update_hooks(timing).values():
            cls = type(hook)
            if cls.__module__.startswith(_HOOKS):
                values.append(_number_of(cls.__name__))
                _append_numbers(values, vars(hook))
        values.append(-2)


@functools.cache
def _number_of(name: str) -> int:
    return zlib.crc32(name.encode())


def settings_of(
    optimizer: Optimizer, params: Sequence[DistinctParam]
) -> dict[RankSetting, object]:
    """All settings of an optimizer and of the update rules of parameters."""
    found: dict[RankSetting, Any] = {
        RankSetting("", "optimizer"): type(optimizer).__name__
    }
    hyperparam = getattr(optimizer, "hyperparam", None)
    if hyperparam is not None:
        found.update(_named("", hyperparam.get_dict()))
    found.update(_hooks_of("", optimizer))
    is_dynamic = getattr(optimizer, "has_dynamic_loss_scale", False)
    scale = "dynamic" if is_dynamic else getattr(optimizer, "loss_scale", None)
    found[RankSetting("", "loss scale")] = scale
    for distinct in params:
        name, rule = distinct.name, distinct.param.update_rule
        found[RankSetting(name, "update rule")] = type(rule).__name__
        if isinstance(rule, UpdateRule):
            found[RankSetting(name, _ENABLED)] = rule.enabled
            found[RankSetting(name, "updates in float32")] = rule.has_fp32_update
            own = vars(rule.hyperparam)
            found.update(_named(name, {k: v for k, v in own.items() if k[0] != "_"}))
            found.update(_hooks_of(name, rule))
    return found


def _named(param: str, values: Mapping[str, Any]) -> Iterator[tuple[RankSetting, Any]]:
    for name, value in values.items():
        if _is_plain(value):
            yield RankSetting(param, _HYPERPARAMETER, name), value


def _hooks_of(param: str, hookable: Hookable) -> Iterator[tuple[RankSetting, Any]]:
    for timing, name, hook in hookable.timed_hooks():
        if type(hook).__module__.startswith(_HOOKS):
            plain = {k: v for k, v in vars(hook).items() if _is_plain(v)}
            kind = type(hook).__name__
            yield RankSetting(param, "hook", name), (kind, timing, plain)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (numbers.Number, str))


def require_equal_settings(
    comm: Communicator,
    optimizer: Optimizer,
    params: Sequence[DistinctParam],
    joined: Sequence[bool],
) -> None:
    """Checks that the ranks' settings are equal; every rank calls it.

    A rank that has joined takes over the hyperparameters of the others, and which
    parameters are frozen: nothing changes them there any more.

    Args:
        comm: the ranks.
        optimizer: of which the settings are.
        params: its parameters.
        joined: by rank, whether it has no more data.

    Raises:
        ValueError: names a setting that differs, and the values of the ranks.
    """
    found = comm.allgather_obj(settings_of(optimizer, params))
    active = [r for r in range(comm.size) if not joined[r]] or [0]
    first = found[active[0]]
    for setting in sorted({key for settings in found for key in settings}):
        values = [settings.get(setting) for settings in found]
        differing = [r for r in active if repr(values[r]) != repr(values[active[0]])]
        if differing:
            rank = differing[0]
            raise ValueError(
                "update: expected the same settings of the optimizer on all ranks, got "
                f"{setting} = {_text(values[active[0]])} on rank {active[0]} and "
                f"{_text(values[rank])} on rank {rank}"
            )
    if joined[comm.rank]:
        _take_over(first, optimizer, params)


def _text(value: Any) -> str:
    return "nothing" if value is None else repr(value)


def _take_over(
    settings: Mapping[RankSetting, Any], optimizer: Any, params: Sequence[DistinctParam]
) -> None:
    targets: dict[str, Any] = {d.name: d.param.update_rule for d in params}
    targets[""] = optimizer
    for (param, kind, name), value in settings.items():
        if kind == _HYPERPARAMETER:
            setattr(targets[param].hyperparam, name, value)
        elif kind == _ENABLED:
            targets[param].enabled = value
