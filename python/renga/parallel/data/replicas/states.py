"""The states of an optimizer, which ranks get from rank 0 and compare."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.backend import get_array_types
from renga.core.link.distinct_params import DistinctParam
from renga.core.optimizer import Optimizer
from renga.core.optimizer.update_rule import MASTER, RuleValues, UpdateRule
from renga.core.parameter import Parameter
from renga.core.types import Array

_COUNTS = ("t", "epoch")
_LOSS_SCALING = ("loss_scale", "_loss_scaling_isnan_ever")


def broadcast_states(
    comm: Communicator, optimizer: Optimizer, params: Sequence[DistinctParam]
) -> None:
    """Overwrites counts, a dynamic loss scale and states by those of rank 0.

    Every rank calls it, with the same parameters. What is neither an array nor a
    number stays as it is, and so does a user's rule that is no ``UpdateRule``.
    """
    is_dynamic = getattr(optimizer, "has_dynamic_loss_scale", False)
    names = (*_COUNTS, *(_LOSS_SCALING if is_dynamic else ()))
    own = {name: getattr(optimizer, name) for name in names}
    counts, described = comm.bcast_obj((own, [_describe(d.param) for d in params]))
    for name, value in counts.items():
        setattr(optimizer, name, value)
    for distinct, description in zip(params, described):
        if description is not None and distinct.param.update_rule is not None:
            _broadcast_state(comm, distinct.param, *description)


def checksum_of(arrays: Iterable[object]) -> int:
    """The CRC-32 of the elements of arrays, in row-major order."""
    value = 0
    for x in arrays:
        value = zlib.crc32(numpy.ascontiguousarray(cuda.to_cpu(x)).data, value)
    return value


def states_checksum(optimizer: Optimizer, params: Sequence[DistinctParam]) -> int:
    """A checksum of counts and states, by which ranks compare what they loaded."""
    counts = repr([getattr(optimizer, name) for name in _COUNTS])
    described = repr([_describe(d.param) for d in params])
    arrays = [
        x for d in params for _, x in sorted(_arrays_of(d.param.update_rule).items())
    ]
    return zlib.crc32((counts + described).encode(), checksum_of(arrays))


def _arrays_of(rule: Any) -> dict[str, Array]:
    if not isinstance(rule, UpdateRule):
        return {}
    array_types: Any = get_array_types()
    values = rule.get_values().named()
    return {key: x for key, x in values.items() if isinstance(x, array_types)}


def _describe(param: Parameter) -> tuple[int, bool, dict[str, Any]] | None:
    """The count of updates, whether there is a state, and what its values are.

    Of an array it is the pair of shape and dtype.
    """
    rule = param.update_rule
    if not isinstance(rule, UpdateRule):
        return None
    values: dict[str, Any] = {
        key: (x.shape, x.dtype) for key, x in sorted(_arrays_of(rule).items())
    }
    numbers = (bool, int, float, complex, numpy.generic)
    state = sorted((rule.state or {}).items())
    values.update((key, x) for key, x in state if isinstance(x, numbers))
    return rule.t, rule.state is not None, values


def _broadcast_state(
    comm: Communicator,
    param: Parameter,
    t: int,
    has_state: bool,
    values: dict[str, Any],
) -> None:
    rule: Any = param.update_rule
    state = rule.get_values().named() if has_state else {}
    arrays = _arrays_of(rule)
    if MASTER not in values:
        state.pop(MASTER, None)
    for key, value in values.items():
        if not isinstance(value, tuple):
            state[key] = value
            continue
        x = arrays.get(key)
        if x is None or (x.shape, x.dtype) != value:
            x = param.xp.empty(*value)
        comm.broadcast(x)
        state[key] = x
    rule.set_values(RuleValues(t, {} if has_state else None).with_named(state))


def require_equal_arrays(
    comm: Communicator, params: Sequence[DistinctParam], with_states: bool
) -> None:
    """Checks that parameters, and states, are the same on all ranks.

    Every rank calls it, with the same parameters.

    Raises:
        ValueError: names an array that differs.
    """
    found: dict[str, int] = {}
    for distinct in params:
        name, param = distinct.name, distinct.param
        found[name] = checksum_of([param.array])
        states = _arrays_of(param.update_rule) if with_states else {}
        for key, x in states.items():
            found[f"{name}/{key}"] = checksum_of([x])
    first, *others = comm.allgather_obj(found)
    for rank, other in enumerate(others, 1):
        for name in sorted(first.keys() | other.keys()):
            if first.get(name) != other.get(name):
                raise ValueError(
                    f"update: expected the same arrays on all ranks, but {name} of "
                    f"rank {rank} differs from that of rank 0"
                )
