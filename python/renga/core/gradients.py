"""Gradients of any outputs, with respect to any inputs or of all leaves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.around_call import require_own_graph
from renga.core.variable import Variable


def grad(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    grad_outputs: Sequence[Variable | None] | None = None,
    grad_inputs: Sequence[Variable | None] | None = None,
    set_grad: bool = False,
    retain_grad: bool = False,
    enable_double_backprop: bool = False,
    loss_scale: float | None = None,
) -> list[Variable]:
    """The gradients of ``inputs``, None where no output depends on one.

    Starts from ``grad_outputs`` (ones where None), adds ``grad_inputs``, and leaves
    every variable's own gradient unchanged unless ``set_grad`` or ``retain_grad``.
    That of a parameter which ranks share is whole, as functions see the parameter;
    every rank has to call this.

    >>> import numpy, renga
    >>> x = renga.Variable(numpy.array([3.0]))
    >>> (gx,) = renga.grad([x**3], [x], enable_double_backprop=True)
    >>> (ggx,) = renga.grad([gx], [x])
    >>> float(gx.array[0]), float(ggx.array[0])
    (27.0, 18.0)

    Raises:
        TypeError: outputs, inputs or their gradients are not a tuple or list, or
            outputs or inputs no Variables.
        ValueError: there are more or fewer gradients than outputs or inputs.
    """
    given = outputs, inputs, _or_empty(grad_outputs), _or_empty(grad_inputs)
    for name, value in zip(("outputs", "inputs", "grad_outputs", "grad_inputs"), given):
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"grad: expected a tuple of {name}, got {type(value)}")
    _check_variables("grad", "outputs", outputs)
    _check_variables("grad", "inputs", inputs)
    if grad_outputs is not None:
        _check_number("grad_outputs", grad_outputs, outputs)
    if grad_inputs is not None:
        _check_number("grad_inputs", grad_inputs, inputs)
    require_own_graph("grad")
    options = set_grad, retain_grad, enable_double_backprop, loss_scale
    return [_whole(x, gx) for x, gx in zip(inputs, _core.grad(*given, *options))]


def grad_of_shards(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    grad_outputs: Sequence[Variable | None],
    enable_double_backprop: bool = False,
) -> list[Variable]:
    """The gradients of ``inputs``, those of parameters of this rank's shards alone.

    For the backward passes of functions, whose inputs are shards.
    """
    require_own_graph("grad")
    options = False, False, enable_double_backprop, None
    return _core.grad(outputs, inputs, grad_outputs, (), *options)


def _or_empty(gradients: Any) -> Any:
    return () if gradients is None else gradients


def _whole(x: Any, gx: Variable | None) -> Any:
    """The gradient of the whole of a parameter for that of a shard of it."""
    is_param = gx is not None and hasattr(x, "whole_gradient")
    return x.whole_gradient(gx) if is_param else gx


def _check_variables(function: str, name: str, given: Sequence[Any]) -> None:
    for x in given:
        if not isinstance(x, Variable):
            raise TypeError(f"{function}: expected Variables as {name}, got {type(x)}")


def _check_number(name: str, gradients: Sequence[Any], xs: Sequence[Any]) -> None:
    if len(gradients) != len(xs):
        raise ValueError(f"grad: expected {len(xs)} {name}, got {len(gradients)}")


def backward(
    outputs: Sequence[Variable],
    grad_outputs: Sequence[Variable | None] | None = None,
    *,
    enable_double_backprop: bool = False,
    retain_grad: bool = False,
    loss_scale: float | None = None,
) -> None:
    """Runs the backward pass from several outputs, which adds to leaves' gradients.

    Without ``grad_outputs`` it starts from the outputs' own gradients, which it takes
    from them. As in Chainer there is no default, not even for a loss: outputs without
    a gradient are left out, with a RuntimeWarning, and an output that comes twice has
    none the second time.

    Raises:
        TypeError: outputs or gradients are no tuple or list, or outputs no Variables.
        ValueError: there are more or fewer gradients than outputs.
    """
    given = (("outputs", outputs), ("grad_outputs", _or_empty(grad_outputs)))
    for name, value in given:
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"backward: expected a tuple of {name}, got {type(value)}")
    if grad_outputs is not None and len(grad_outputs) != len(outputs):
        raise ValueError(
            f"backward: expected {len(outputs)} grad_outputs, got {len(grad_outputs)}"
        )
    _check_variables("backward", "outputs", outputs)
    if any(y.stage >= 0 for y in outputs):
        require_own_graph("backward")
    if grad_outputs is None:
        grad_outputs = list(map(_taken_gradient, outputs))
    roots: dict[int, Variable] = {}
    for y, gy in zip(outputs, grad_outputs):
        if gy is not None:
            y.grad_var = sum_of_known(y.grad_var if id(y) in roots else None, gy)
            roots[id(y)] = y
    found = list(roots.values())
    _core.backward(found, retain_grad, enable_double_backprop, loss_scale)
    for y in found:
        y.grad_var = None


def _taken_gradient(y: Variable) -> Variable | None:
    gy = y.grad_var
    if gy is None:
        warnings.warn(
            "backward: an output has no gradient, or comes twice; it is left out",
            RuntimeWarning,
            stacklevel=3,
        )
    y.grad_var = None
    return gy


def sum_of_known(a: Variable | None, b: Variable | None) -> Variable | None:
    """The sum; what is None counts as zeros, and two of them give None."""
    if a is None or b is None:
        return b if a is None else a
    return _core.ops.add(a, b)
