"""What differentiable communications have in common, and their order in a thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core, functions as F
from renga.core.backend import get_array_module
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike, Grads, Indexes
from renga.core.variable import Variable, as_variable
from renga.functions.util.recomputation import is_recomputable

_NAME = "communications"  # of the extra root


class CommunicationChain(threading.local):
    """The communications since the last backward pass, each depending on the last one.

    They depend on each other through tokens. The token of the last communication is an
    extra root of the next ``backward()`` or ``grad()`` of this thread, and the token
    that the first one depends on is an extra leaf. So every communication takes part
    in the backward pass once, in reverse order, whatever the loss depends on.
    """

    def __init__(self) -> None:
        self._first = Variable(empty_token())
        self._nodes: list[weakref.ref[Any]] = []

    def join(self, delegate: Variable | None) -> Variable:
        """A token that depends on the last communication and on ``delegate``.

        Raises:
            RuntimeError: in a function that is computed again in the backward pass.
        """
        if is_recomputable():
            raise RuntimeError(
                "forget: expected a function without communications, whose other ranks "
                "do not communicate again in the backward pass"
            )
        waiting = _core.extra_root(_NAME)
        if waiting is not None:
            before = waiting[0]
        elif _core.backprop_enabled():
            self._first = before = Variable(empty_token())
            self._nodes = []
        else:
            return token_for(delegate)
        return before if delegate is None else F.add(before, token_for(delegate))

    def append(self, node: FunctionNode, token: Variable) -> None:
        """Makes a communication the last one, if it is recorded in the graph."""
        if token.creator_node is not None:
            _core.set_extra_root(_NAME, token, self._first)
            self._nodes.append(weakref.ref(node))

    def report(self) -> str:
        """For an error: communications that no backward pass has reached yet."""
        is_waiting = _core.extra_root(_NAME) is not None
        nodes = [node() for node in self._nodes] if is_waiting else []
        waiting = [f"{node.label} called at {node.call_site}" for node in nodes if node]
        if not waiting:
            return ""
        return (
            f"; on this rank no backward() has reached {len(waiting)} communications "
            f"yet, for whose gradients other ranks may wait: {waiting[-1]}"
        )


def token_for(delegate: Variable | None) -> Variable:
    """An empty variable that depends on ``delegate``, if that requires a gradient."""
    if delegate is None or not as_variable(delegate).requires_grad:
        return Variable(empty_token())
    if delegate.shape == (0,) and delegate.dtype == numpy.float32:
        return as_variable(delegate)
    token = F.cast(F.get_item(F.reshape(delegate, (-1,)), slice(0)), numpy.float32)
    return token if delegate.xp is numpy else F.copy(token, -1)


def empty_token() -> numpy.ndarray:
    """The array of a token."""
    return numpy.empty(0, numpy.float32)


communication_chain = CommunicationChain()


Result = tuple[Variable, Sequence[Variable]]


class Communication(FunctionNode):
    """A communication of ranks, whose backward pass is the adjoint communication.

    Its first input and its first output are tokens, empty arrays. Each communication
    depends on the one before through them, and the last one is an extra root of the
    next ``backward()`` of this thread. So a rank takes part in the backward pass even
    if it sends or receives nothing that requires a gradient.
    """

    @property
    def call_site(self) -> str:
        """The line of the user's program from which it was applied."""
        return str(self._link.call_site)

    def communicate(
        self, xs: Sequence[ArrayLike], delegate: Variable | None = None
    ) -> Result:
        """A token and what is received for ``xs``, computed after ``delegate``."""
        token, *ys = self.apply((communication_chain.join(delegate), *xs))
        communication_chain.append(self, token)
        return token, ys

    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        """The arrays received for those that are sent."""
        raise NotImplementedError

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        """A token and the gradients of what was sent, computed after ``token``."""
        raise NotImplementedError

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        try:
            ys = self.exchange(inputs[1:])
        except TimeoutError as error:
            raise TimeoutError(f"{error}{communication_chain.report()}") from error
        self._outputs_metadata = [(get_array_module(y), y.shape, y.dtype) for y in ys]
        self.retain_outputs((0,))
        return (empty_token(), *ys)

    def _checked_outputs(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        token, *ys = outputs  # a token is in the main memory, wherever the others are
        return (token, *super()._checked_outputs(tuple(ys))) if ys else outputs

    def backward(self, target_input_indexes: Indexes, grad_outputs: Grads) -> Grads:
        # The other ranks wait for this one even if no gradient has reached an output.
        metadata = [(numpy, (0,), numpy.float32), *self._outputs_metadata]
        gtoken, *gys = (
            Variable(xp.zeros(shape, dtype)) if gy is None else gy
            for gy, (xp, shape, dtype) in zip(grad_outputs, metadata)
        )
        # Through this node's own token, backward passes of gradients reach it, too.
        token = F.add(gtoken, *self.get_retained_outputs())
        token, gxs = self.adjoint(token, gys)
        return tuple((token, *gxs)[i] for i in target_input_indexes)
