"""Parameters of a model whose arrays are in the same memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from renga import _core
from renga.core.link.base import Link
from renga.core.link.distinct_params import DistinctParam, distinct_params
from renga.core.parameter import Parameter


def sharing_memory(model: Link) -> list[list[DistinctParam]]:
    """Groups of parameters whose arrays overlap, as those of ``link.copy("share")`` do.

    Each has a gradient and an update of its own, and the others see the update. Code
    that copies, moves or cuts arrays one by one separates them.

    Returns:
        The groups of more than one parameter, of which the first is a largest one.
    """
    return overlapping(distinct_params(model, include_uninit=False))


def overlapping(params: Sequence[DistinctParam]) -> list[list[DistinctParam]]:
    """The same groups of parameters that have arrays."""
    found = [each for each in params if not each.param.is_meta and _bytes(each) > 0]
    begins = _core.addresses([each.param for each in found])
    groups: list[list[DistinctParam]] = []
    end = -1
    for begin, i in sorted(zip(begins, range(len(found)))):
        if begin >= end:
            groups.append([])
        groups[-1].append(found[i])
        end = max(end, begin + _bytes(found[i]))
    shared = [sorted(group, key=_order) for group in groups if len(group) > 1]
    return sorted(shared, key=lambda group: group[0].name)


def require_own_memory(operation: str, model: Link) -> None:
    """Raises ValueError if parameters share memory, which the operation separates."""
    for first, second, *_ in sharing_memory(model):
        raise ValueError(
            f"{operation}: expected parameters that share no memory, got {first.name} "
            f"and {second.name}: use one parameter or link under both names"
        )


def share_arrays(model: Link, copied: Link) -> None:
    """Has the parameters of a copy share the arrays that those of the model share.

    Raises:
        ValueError: if some share a part of an array only, or in another order.
    """
    params = dict(copied.namedparams())
    for first, *others in sharing_memory(model):
        for each in others:
            if not _have_one_array(first.param, each.param):
                raise ValueError(
                    f"copy of {type(model).__name__}: expected parameters that share "
                    f"a whole array or nothing, got {first.name} and {each.name}"
                )
            params[each.name].array = params[first.name].array


def _bytes(distinct: DistinctParam) -> int:
    return math.prod(distinct.param.shape) * distinct.param.dtype.itemsize


def _order(distinct: DistinctParam) -> tuple[int, str]:
    return -_bytes(distinct), distinct.name


def _have_one_array(a: Parameter, b: Parameter) -> bool:
    layouts = {(param.array.shape, param.array.strides) for param in (a, b)}
    return len(layouts) == 1 and len(set(_core.addresses([a, b]))) == 1
