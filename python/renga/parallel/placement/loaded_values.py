"""What rank 0 alone has loaded, as all ranks need it: whole arrays."""

from __future__ import annotations

import copy
import functools
import hashlib
from typing import Any

import numpy

from renga.backends import cuda
from renga.core.backend import get_array_types
from renga.core.link import Link
from renga.core.link.own_values import own_params, own_persistent
from renga.core.optimizer import GradientMethod, Optimizer
from renga.core.optimizer.update_rule import RuleValues
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.utils.containers import map_leaves


class UnknownWhole(Exception):
    """A whole array is needed of which only this rank's block is known."""


def values_of_link(link: Link) -> dict[str, Array | None]:
    """Parameters and persistent values of a link by their names.

    Raises:
        UnknownWhole: of some only this rank's shard is known.
    """
    values = {name: x.loaded_array() for name, x in own_params(link).items()}
    for name in own_persistent(link):
        values[name] = _on_host(link.loaded_persistent(name))
    return values


def digest_of(link: Link) -> bytes | None:
    """Of a link's parameters and persistent arrays; None if some are shards."""
    digest = hashlib.blake2b(digest_size=8)
    for _, value in sorted({**own_params(link), **own_persistent(link)}.items()):
        if getattr(value, "shard_of", None) is not None:
            return None
        array = _on_host(getattr(value, "array", value))
        if isinstance(array, numpy.ndarray):
            digest.update(array.tobytes())
    return digest.digest()


def set_link(link: Link, values: dict[str, Array | None]) -> None:
    """Sets what :func:`values_of_link` returned on rank 0; None stays as it is."""
    mine = vars(link)
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(mine[name], Parameter):
            param = mine[name]
            if not param.is_initialized:
                param.allocate(value.shape)
            param.array[...] = param.device.send(param.part_of(value))
        elif isinstance(mine[name], get_array_types()):
            mine[name][...] = link.device.send(link.own_part_of(name, value))
        else:
            mine[name] = copy.deepcopy(value)


def values_of_optimizer(optimizer: Optimizer) -> tuple[int, int, dict[str, RuleValues]]:
    """The counts of an optimizer, and its update rules' by the names of parameters.

    Raises:
        UnknownWhole: of some states only this rank's shard is known.
    """
    rules = {
        name: _values_of_rule(param)
        for name, param in optimizer.target.namedparams()
        if param.update_rule is not None
    }
    return optimizer.t, optimizer.epoch, rules


def _values_of_rule(param: Parameter) -> RuleValues:
    rule: Any = param.update_rule
    values: RuleValues = rule.get_values()
    loaded = {k: param.loaded_state(k, _on_host(x)) for k, x in values.named().items()}
    return values.with_named(loaded)


def set_optimizer(
    optimizer: GradientMethod, values: tuple[int, int, dict[str, RuleValues]]
) -> None:
    """Sets what :func:`values_of_optimizer` returned on rank 0."""
    optimizer.t, optimizer.epoch, rules = values
    for name, param in optimizer.target.namedparams():
        if name in rules:
            own = map_leaves(functools.partial(_own, param), rules[name])
            param.update_rule.set_values(own)


def _own(param: Parameter, x: Any) -> Any:
    is_array = isinstance(x, get_array_types())
    if is_array and not param.update_rule.sees_whole:
        x = param.part_of(x)
    return param.device.send(x) if is_array else x


def _on_host(x: Any) -> Any:
    return cuda.to_cpu(x) if isinstance(x, get_array_types()) else x
