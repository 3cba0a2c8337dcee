"""Gradients of parameters, kept from what becomes of them meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from renga.core.parameter import Parameter
from renga.core.variable import Variable


class KeptGradients:
    """The gradients that parameters have at a time, to be given back to them."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Parameter, Variable | None]] = []

    def keep(self, params: Iterable[Parameter]) -> None:
        """Keeps the gradients that the parameters have."""
        self._pairs = [(param, param.grad_var) for param in params]

    def give_back(self) -> None:
        """Gives them back, if some are kept, and keeps none."""
        for param, grad in self._pairs:
            param.grad_var = grad
        self._pairs = []
