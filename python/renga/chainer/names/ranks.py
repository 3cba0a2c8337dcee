"""Ranks and creators of variables that are set by hand, as tests of functions do.

A variable keeps the rank that it was given, and that it had when it was unchained; the
results of functions have the largest of their inputs' and 1. A function that was never
applied can be set as creator.
"""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.chainer.function_classes.graph_attributes import NODE
from renga.core.function import Function
from renga.core.function_node import FunctionNode

_RANK, _CREATOR = "_given_rank", "_given_creator"
_own_rank: Any = _core.VariableNode.rank  # a property
_own_creators = {
    cls: vars(cls)["creator_node"] for cls in (_core.Variable, _core.VariableNode)
}


class _Any:
    rank_was_given = False  # else the core's ranks are right


def add_to_classes() -> None:
    """Has variables and functions take ranks and creators."""
    for cls in (_core.Variable, _core.VariableNode):
        setattr(cls, "rank", property(lambda self: _rank(_node(self))))  # noqa: B010
        setter = property(_creator_node_of, _set_creator_node)
        setattr(cls, "creator_node", setter)  # noqa: B010
        setattr(cls, "unchain", _unchain)  # noqa: B010
    rank = property(lambda self: _rank(self), _give_rank)
    setattr(_core.VariableNode, "_rank", rank)  # noqa: B010
    for function in (FunctionNode, Function):
        own: Any = vars(function)["rank"]
        give = _give_rank if function is FunctionNode else None  # as in Chainer
        setattr(function, "rank", property(_rank_of_function(own.fget), give))  # noqa: B010


def _node(var: Any) -> Any:
    return var.node if isinstance(var, _core.Variable) else var


def _give_rank(node: Any, rank: int) -> None:
    _Any.rank_was_given = True
    _set(node, _RANK, rank)


def _set(node: Any, name: str, value: Any) -> None:
    """Sets an attribute, which lives as long as the variable of the node."""
    vars(node)[name] = value
    var = node.get_variable_or_none() if isinstance(node, _core.VariableNode) else None
    if var is not None:
        vars(var)[NODE] = node


def _rank(node: Any) -> int:
    """The rank of a variable's node."""
    if not _Any.rank_was_given:
        return _own_rank.fget(node)
    given = vars(node).get(_RANK)
    if given is not None:
        return given
    creator = node.creator_node
    if creator is None:
        return 0
    try:
        inputs = [_rank(x) for x in creator.inputs or ()]
    except RecursionError:
        return _own_rank.fget(node)
    return 1 + max(inputs, default=0)


def _rank_of_function(own: Any) -> Any:
    def rank(function: Any) -> int:
        if not _Any.rank_was_given:
            return own(function)
        given = vars(function).get(_RANK)
        if given is None:
            return max((_rank(x) for x in function.inputs or ()), default=0)
        return given

    return rank


def _creator_node_of(var: Any) -> Any:
    given = vars(_node(var)).get(_CREATOR)
    return _own_creators[type(_node(var))].fget(_node(var)) if given is None else given


def _set_creator_node(var: Any, function: Any) -> None:
    node = _node(var)
    vars(node).pop(_CREATOR, None)
    if function is None:
        _unchain(node)
    elif isinstance(function, FunctionNode) and function.inputs is None:
        _give_rank(node, 1 + getattr(function, "function", function).rank)
        _set(node, _CREATOR, function)
    else:
        _own_creators[_core.VariableNode].fset(node, function)


def _unchain(var: Any) -> None:
    """Forgets the creator, but not the rank."""
    node = _node(var)
    if node.creator_node is not None:
        _give_rank(node, _rank(node))
    vars(node).pop(_CREATOR, None)
    _own_creators[_core.VariableNode].fset(node, None)
