"""Gradient checkpointing: functions recomputed in the backward pass."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

from renga import _core
from renga.core.around_call import inner_handler
from renga.core.function_node import FunctionNode
from renga.core.gradients import grad_of_shards
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_arrays
from renga.functions.util.link_states import detached
from renga.functions.util.recomputation import Recomputation

_Result = TypeVar("_Result")


def forget(func: Callable[..., _Result], *xs: ArrayLike) -> _Result:
    """``func(*xs)``, recomputed in the backward pass instead of kept in memory.

    Gradients reach ``xs`` and all other leaves that ``func`` uses, such as a link's
    parameters. The recomputation has the settings and the random numbers of the first
    run; running statistics are updated once. ``func`` returns a Variable or a tuple of
    them, which is not a tuple any more if it has one; it must not depend on anything
    else that changes.

    Raises:
        TypeError: ``func`` is not callable.
        RuntimeError: it returns something else, or another number of outputs when
            recomputed.
    """
    if not callable(func):
        raise TypeError(f"forget: expected a function, got {type(func)}")
    # A pipeline recomputes whole stages.
    if getattr(inner_handler(), "is_divided", False):
        return func(*map(as_variable, xs))
    if not _core.backprop_enabled():
        ys = func(*xs)
        return ys[0] if isinstance(ys, tuple) and len(ys) == 1 else ys
    check_arrays("forget", *xs)
    return _Checkpoint(func).run(tuple(map(_whole, xs)))


class _Checkpoint(FunctionNode):
    """Its inputs are the arguments, the state of links, and the leaves found."""

    label = "Forget"
    recomputes = True  # so handlers of calls see what it does with its leaves

    def __init__(self, func: Callable[..., object]) -> None:
        self._func = func
        self._recomputation = Recomputation(func)

    def run(self, xs: tuple[Variable, ...]) -> Any:
        states = self._recomputation.states
        leaves = tuple(map(detached, xs))
        ys = self._recomputation.first(leaves)
        results = _checked(ys)
        n_results = len(results)
        outputs = (*results, *states.outputs)
        found = _core.leaves_before(outputs) if _core.backprop_enabled() else []
        used = states.inputs(set(found))
        given = {x.node for x in (*leaves, *(stand_in for _, stand_in in used))}
        others = [x.get_variable_or_none() for x in found if x not in given]
        self._n_args, self._n_states = len(xs), len(used)
        self._others = tuple([x for x in others if x is not None])
        self._outputs = tuple([y.array for y in outputs])
        states.outputs.clear()
        del ys, results, outputs, leaves  # and with them the first run's graph
        results = self.apply((*xs, *(value for value, _ in used), *self._others))
        states.put(results[n_results:])
        return results[0] if n_results == 1 else results[:n_results]

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        self.retain_inputs(range(self._n_args + self._n_states))
        outputs, self._outputs = self._outputs, ()
        self._signature = [(y.shape, y.dtype) for y in outputs]
        return outputs

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        inputs = self.get_retained_inputs()
        used = [i for i, gy in enumerate(grad_outputs) if gy is not None]
        gys = [grad_outputs[i] for i in used]
        found: list[int] = []

        def gradients(*args: Variable) -> tuple[Variable, ...]:
            xs, gys = args[: len(inputs)], args[len(inputs) :]
            ys = self._run_again(xs)
            ends = [*xs, *self._others]
            gxs = grad_of_shards(
                [ys[i] for i in used],
                [ends[i] for i in target_input_indexes],
                gys,
                enable_double_backprop=_core.backprop_enabled(),
            )
            found[:] = [i for i, gx in enumerate(gxs) if gx is not None]
            return tuple([gxs[i] for i in found])

        # The inputs are leaves: the outer graph propagates to their creators.
        if _core.backprop_enabled():
            gxs = forget(gradients, *inputs, *gys)
            gxs = gxs if isinstance(gxs, tuple) else (gxs,)
        else:
            gxs = gradients(*map(detached, inputs), *gys)
        by_position = dict(zip(found, gxs))
        return tuple([by_position.get(i) for i in range(len(target_input_indexes))])

    def _run_again(self, inputs: tuple[Variable, ...]) -> tuple[Variable, ...]:
        xs, states = inputs[: self._n_args], inputs[self._n_args :]
        ys, written = self._recomputation.again(xs, states)
        outputs = (*_checked(ys), *written)
        signature = [(y.shape, y.dtype) for y in outputs]
        if signature != self._signature:
            raise RuntimeError(
                f"forget: expected the outputs {self._signature} of the first run again"
                f", got {signature}"
            )
        return outputs


def _whole(x: ArrayLike) -> Variable:
    """The argument; of a parameter of which this rank has a shard, what functions read.

    The function gets a leaf over the array, which is no parameter any more.
    """
    x = as_variable(x)
    return x if getattr(x, "shard_of", None) is None else _core.ops.identity(x)


def _checked(ys: Any) -> tuple[Variable, ...]:
    if isinstance(ys, Variable):
        return (ys,)
    if not isinstance(ys, tuple):
        raise RuntimeError(
            f"forget: expected a Variable or a tuple of them, got {type(ys)}"
        )
    for i, y in enumerate(ys, 1):
        if not isinstance(y, Variable):
            raise RuntimeError(
                f"forget: expected a Variable as {_ordinal(i)} element of what the "
                f"function returns, got {type(y)}"
            )
    return ys


def _ordinal(n: int) -> str:
    last = n % 10 if n % 100 not in (11, 12, 13) else 0
    return str(n) + {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
