"""Functions that keep nothing for the way back."""

from __future__ import annotations

from typing import Any, Callable

from renga.configuration import (
    config,
    force_backprop_mode,
    no_backprop_mode,
    using_config,
)
from renga.function_node import FunctionNode, grad
from renga.variable import Variable, as_variable


def forget(func: Callable[..., Any], *xs: Any) -> Any:
    """``func(*xs)``, computed again on the way back instead of kept in memory.

    ``func`` must compute the same twice and return a Variable or a tuple of them.

    Raises:
        TypeError: ``func`` is not callable.
        RuntimeError: it returns something else.
    """
    if not callable(func):
        raise TypeError(f"forget: expected a function, got {type(func)}")
    function = _Forgetful(func)
    ys = function.apply(tuple(as_variable(x) for x in xs))
    return ys[0] if function.is_single else ys


class _Forgetful(FunctionNode):
    label = "Forget"

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def _call(self, xs: tuple[Variable, ...]) -> tuple[Variable, ...]:
        ys = self.func(*xs)
        self.is_single = isinstance(ys, Variable)
        if self.is_single:
            return (ys,)
        if not isinstance(ys, tuple) or not all(isinstance(y, Variable) for y in ys):
            raise RuntimeError(
                f"forget: expected a Variable or a tuple of them, got {type(ys)}"
            )
        return ys

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        self.retain_inputs(tuple(range(len(inputs))))
        with no_backprop_mode():
            ys = self._call(tuple(Variable(x) for x in inputs))
        return tuple(y.array for y in ys)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        again = config.enable_backprop
        xs = self.get_retained_inputs()
        if not again:  # nothing may reach the graph before this
            xs = tuple(Variable(x.array) for x in xs)
        # What the first call did once, such as running averages, is not done twice.
        with force_backprop_mode(), using_config("in_recomputing", True):
            ys = self._call(xs)
        known = [(y, gy) for y, gy in zip(ys, grad_outputs) if gy is not None]
        wanted = [xs[i] for i in target_input_indexes]
        return tuple(
            grad(
                [y for y, _ in known],
                wanted,
                [gy for _, gy in known],
                enable_double_backprop=again,
            )
        )
