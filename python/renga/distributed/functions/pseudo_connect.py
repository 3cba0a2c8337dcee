"""Joins what computes nothing for this rank to what its loss comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga.distributed.functions.chain import token_for
from renga.distributed.functions.communication import Communication, Result
from renga.variable import Variable


class PseudoConnect(Communication):
    def communicate(self, xs: Sequence[Any], delegate: Any = None) -> Result:
        token, *ys = self.apply((token_for(delegate), *xs))
        return token, ys

    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        return xs

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return PseudoConnect().communicate(gys, token)


def pseudo_connect(delegate_variable: Any, *actual_variables: Any) -> Any:
    """``actual_variables`` as they are, through which the way back meets a delegate.

    Args:
        delegate_variable: what ``send`` or, off the root, ``gather`` returned; None
            for nothing to join.
        actual_variables: variables that the loss is computed from. Without any, the
            result is the delegate.
    """
    if not actual_variables:
        return delegate_variable
    ys: Sequence[Any] = actual_variables
    if delegate_variable is not None:
        _, ys = PseudoConnect().communicate(actual_variables, delegate_variable)
    return tuple(ys) if len(ys) > 1 else ys[0]
