"""A step of training whose forward and backward passes are recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from renga.core.optimizer import Optimizer
from renga.core.variable import Variable
from renga.graph_optimizations.recorded_calls import RecordedCalls


def static_step(
    loss: Callable[..., Variable], optimizer: Optimizer
) -> Callable[..., Variable]:
    """A function that trains for one step, on a CUDA device by recorded graphs.

    ``step(*args)`` does what ``optimizer.update(loss, *args)`` does, bit for bit, and
    returns the loss::

        step = renga.static_step(model, optimizer)
        for x, t in batches:
            loss = step(x, t)

    The third step with arguments of the same shapes and dtypes records the forward and
    the backward pass as graphs of CUDA, which later steps launch; random numbers are
    drawn anew for each. Hooks, loss scaling, communication and updates run as they do
    without. Reports, and Variables that links keep as attributes, are those of each
    step. Gradients are in the memory of the graph, which the next step overwrites.
    Nothing is recorded on the CPU, with ``config.train`` off, in debug mode, and while
    function hooks or another handler see each operation.

    Args:
        loss: the model, or a function of it, that returns the loss.
        optimizer: set up with the model.

    Raises:
        RuntimeError: by a step that cannot be recorded, with the reason and the line:
            it reads numbers on the host, draws NumPy's random numbers, sets attributes
            other than Variables, reads a Variable that the step before has set, or
            depends on a parameter that is not the optimizer's.
    """
    return StaticStep(loss, optimizer)


class StaticStep:
    """What :func:`static_step` returns."""

    def __init__(self, loss: Callable[..., Variable], optimizer: Optimizer) -> None:
        if not hasattr(optimizer, "require_target"):
            raise TypeError(
                f"static_step: expected an optimizer, got {type(optimizer).__name__}"
            )
        optimizer.require_target("static_step")
        self._loss, self._optimizer = loss, optimizer
        self._recorded = RecordedCalls(are_steps=True)
        # The same keywords have the same object, as calls are known by their method.
        self._methods: dict[tuple[str, ...], Callable[..., Variable]] = {}

    def __call__(self, *args: object, **kwargs: object) -> Variable:
        names = tuple(kwargs)
        method = self._methods.setdefault(names, partial(self._call, names))
        losses: list[Variable] = []

        def loss(*inputs: Any) -> Variable:
            y = self._recorded.call(method, self._optimizer.target, inputs)
            if isinstance(y, Variable):  # update() refuses others
                losses.append(Variable(y.array, requires_grad=False))
            return y

        self._optimizer.update(loss, *args, *kwargs.values())
        return losses[-1]

    def _call(self, names: tuple[str, ...], model: Any, *inputs: Any) -> Variable:
        first = len(inputs) - len(names)
        return self._loss(*inputs[:first], **dict(zip(names, inputs[first:])))
