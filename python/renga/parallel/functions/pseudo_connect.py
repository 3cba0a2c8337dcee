"""Makes a loss depend on communications that compute nothing for it."""

from __future__ import annotations

from collections.abc import Sequence

from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.parallel.functions.communication import Communication, Result, token_for


class PseudoConnect(Communication):
    def communicate(
        self, xs: Sequence[ArrayLike], delegate: Variable | None = None
    ) -> Result:
        token, *ys = self.apply((token_for(delegate), *xs))
        return token, ys

    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        return xs

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return PseudoConnect().communicate(gys, token)


def pseudo_connect(
    delegate_variable: Variable | None, *actual_variables: Variable
) -> tuple[Variable, ...]:
    """``actual_variables`` unchanged, but dependent on a delegate: always a tuple.

    Args:
        delegate_variable: the result of ``send`` or, on other ranks than the root, of
            ``gather``; None for no dependence.
        actual_variables: variables that the loss depends on.
    """
    if delegate_variable is None:
        return actual_variables
    _, ys = PseudoConnect().communicate(actual_variables, delegate_variable)
    return tuple(ys)
