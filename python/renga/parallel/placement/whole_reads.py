"""Functions that read a shard of a parameter outside of its link get the whole array.

A program may use the parameter of a link by other functions, too::

    loss = F.mean_squared_error(model(x), t) + 0.01 * F.sum(model.fc.W**2)

Each rank has a block of ``model.fc.W``. A :class:`WholeReads` around the calls of the
thread gathers the blocks, so that the sum is that of the whole.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from renga.core.around_call import (
    FunctionCall,
    HandledCall,
    inner_handler,
    set_inner_handler,
    surrounding,
)
from renga.core.function_node import FunctionNode
from renga.core.types import Array, Grads, Indexes, Variables
from renga.core.variable import Variable

# Modules of functions that compute with shapes, before they call operations.
_ASKING = ("renga.functions.", "renga.core.numpy_functions", "renga.distributions.")

Function = TypeVar("Function", bound=Callable[..., Any])


class OwnReads:
    """Calls the functions of a thread with variables in the place of parameters.

    Args:
        replaced: the variables, by the ``id`` of their parameters.
    """

    def __init__(self, replaced: Mapping[int, Variable]) -> None:
        self._replaced = replaced

    def __call__(self, call: HandledCall) -> None:
        """Runs a call with what it reads."""
        call.operands = [self._read(x) for x in call.operands]
        call.run()

    def prepare_unchain(self, x: Variable, is_backward: bool) -> None:
        """Raises RuntimeError if a graph has variables in the place of parameters.

        They would be cut off from the parameters, elsewhere in the graph, too.
        """
        if is_backward and self._replaced:
            raise RuntimeError(
                "unchain_backward: expected a graph that begins with parameters, got "
                "that of a model whose ranks add up gradients in it: use unchain(), or "
                "compute what has no gradient in a context of no_backprop_mode()"
            )

    def _read(self, x: Any) -> Any:
        return self._replaced.get(id(x), x)


class WholeReads(OwnReads):
    """The same, but with whole parameters in the place of shards.

    Every rank has to call these functions, as gathering takes all of them. ``own`` is
    for functions of links that know that they have shards; None where nothing is
    replaced. A function that is recomputed leaves it to those that it calls how they
    read its leaves.
    """

    def __init__(self, replaced: Mapping[int, Variable]) -> None:
        super().__init__(replaced)
        self.own = OwnReads(replaced) if replaced else None

    def __call__(self, call: HandledCall) -> None:
        if isinstance(call, FunctionCall) and getattr(call.node, "recomputes", False):
            call.run()
        else:
            super().__call__(call)

    def _read(self, x: Any) -> Any:
        x = self._replaced.get(id(x), x)
        param = getattr(x, "shard_of", None)
        return x if param is None else GatherBlocks(param).gathered(x)


_whole_reads = WholeReads({})


def gather_shards_for_functions() -> None:
    """Has functions of this thread read whole parameters, outside of sharded links."""
    handler = inner_handler()
    if handler is None:
        set_inner_handler(_whole_reads)
    elif _reads_of(handler) is None:
        handler.inner = _whole_reads


def _reads_of(handler: Any) -> Any:
    """The handler that a handler calls in turn, if it does, or itself."""
    return getattr(handler, "inner", handler)


def is_function_asking() -> bool:
    """Whether the caller of a property is a function that will get whole parameters."""
    if not isinstance(_reads_of(inner_handler()), WholeReads):
        return False
    caller: str = sys._getframe(2).f_globals.get("__name__", "")
    return caller.startswith(_ASKING)


def reads_own_shards(function: Function) -> Function:
    """Declares that a function knows that parameters are shards, and wants these."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        reads = _reads_of(inner_handler())
        if not isinstance(reads, WholeReads):
            return function(*args, **kwargs)
        with surrounding(reads.own):
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


class GatherBlocks(FunctionNode):
    """The whole array of which each rank has a block. All ranks compute the same of it.

    Args:
        param: the ShardedParameter that has the blocks.
    """

    random_stream = 0  # the same random numbers on every rank

    def __init__(self, param: Any) -> None:
        self.param, self.random_comm = param, param.comm

    def gathered(self, block: Variable) -> Variable:
        """The whole array for this rank's block; handlers of calls are not asked."""
        return self._apply((block,))[0]

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.param.whole(inputs[0]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return TakeBlock(self.param).apply(grad_outputs)


class TakeBlock(FunctionNode):
    """This rank's block of a whole array that every rank has."""

    def __init__(self, param: Any) -> None:
        self.param, self.random_comm = param, param.comm
        self.random_stream = param.comm.rank + 1

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.param.block_of(inputs[0]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return GatherBlocks(self.param).apply(grad_outputs)
