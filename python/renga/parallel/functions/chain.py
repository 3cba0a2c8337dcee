"""The order of this thread's communications in the backward pass."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy

from renga import _core
from renga import functions as F
from renga.core.function_node import FunctionNode
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
