"""Functions that are one FunctionNode, which converters find by its name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Callable

from renga.core.function_node import FunctionNode
from renga.core.gradients import grad
from renga.core.types import Array, Grads, Indexes
from renga.core.variable import Variable
from renga.utils.containers import leaves, map_leaves
from renga.utils.experimental import experimental


class WrappedFunctionNode(FunctionNode):
    """Calls a function of Variables, whose other arguments are the node's attributes.

    Its Variables are others than the node's inputs: gradients end at them.

    Attributes:
        custom_function_node_name: the name that converters have.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Iterator[Variable]], object],
        attributes: dict[str, object],
    ) -> None:
        self.custom_function_node_name = name
        self._function = function
        vars(self).update(attributes)

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """The arrays of what the function returns, in lists and dictionaries, too."""
        self._inputs = [Variable(x, requires_grad=x.dtype.kind == "f") for x in inputs]
        self._result = self._function(iter(self._inputs))
        ys = list(leaves(self._result))
        arrays = tuple(y.array if isinstance(y, Variable) else y for y in ys)
        if not all(hasattr(y, "dtype") for y in arrays):
            kinds = [type(y).__name__ for y in arrays]
            raise ValueError(
                f"as_funcnode: expected arrays from {self.custom_function_node_name}, "
                f"got {kinds}"
            )
        return arrays

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        """The gradients of a function that returns Variables.

        Raises:
            ValueError: it returns arrays.
        """
        ys = list(leaves(self._result))
        if not all(isinstance(y, Variable) for y in ys):
            raise ValueError(
                f"as_funcnode: expected Variables from "
                f"{self.custom_function_node_name} for a gradient, got arrays"
            )
        gxs = grad(ys, self._inputs, grad_outputs)
        return tuple(gxs[i] for i in target_input_indexes)

    def with_outputs(self, outputs: Sequence[Variable]) -> object:
        """What the function returned, with these Variables in it."""
        given = iter(outputs)
        return map_leaves(lambda _: next(given), self._result)


def fake_as_funcnode(
    alt_func: Callable[..., object],
    name: str,
    rename_attributes: Sequence[tuple[int | str, str]] | None = None,
    experimental_warning: bool = True,
) -> Callable[..., object]:
    """``alt_func`` as one FunctionNode called ``name``.

    The Variables among its arguments, in lists too, are the node's inputs; the other
    arguments are attributes: by their names, or ``arg0`` for the first one. It returns
    Variables in the containers in which ``alt_func`` returns arrays or Variables.

    Args:
        alt_func: a function of one or more Variables.
        rename_attributes: pairs of the position or the name of an argument, and the
            attribute's name.

    Raises:
        ValueError: a call has no Variable, or has a list of Variables and others.
    """
    if experimental_warning:
        experimental("as_funcnode")
    names = dict(rename_attributes or ())
    signature = inspect.signature(alt_func)

    @functools.wraps(alt_func)
    def call(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = list(bound.arguments.items())[len(args) :]
        named: dict[str, Any] = {**kwargs, **dict(arguments)}
        given: list[tuple[int | str, Any]] = [*enumerate(args), *named.items()]
        inputs: list[Variable] = []
        attributes = {}
        for key, value in given:
            flat = list(leaves(value)) if isinstance(value, (tuple, list)) else [value]
            found = [x for x in flat if isinstance(x, Variable)]
            if found and len(found) < len(flat):
                raise ValueError(
                    f"{name}: expected Variables alone or no Variable in a list, got "
                    f"{len(found)} of {len(flat)}"
                )
            inputs += found
            if not found:
                default = key if isinstance(key, str) else f"arg{key}"
                attributes[names.get(key, default)] = value
        if not inputs:
            raise ValueError(f"{name}: expected a Variable among the arguments")

        def compute(xs: Iterator[Variable]) -> Any:
            def other(leaf: Any) -> Any:
                return next(xs) if isinstance(leaf, Variable) else leaf

            new, new_named = map_leaves(other, (list(args), named))
            return alt_func(*new, **new_named)

        node = WrappedFunctionNode(name, compute, attributes)
        return node.with_outputs(node.apply(inputs))

    return call


def as_funcnode(
    name: str, rename_attributes: Sequence[tuple[int | str, str]] | None = None
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Decorator for ``fake_as_funcnode``."""
    return functools.partial(
        fake_as_funcnode, name=name, rename_attributes=rename_attributes
    )
