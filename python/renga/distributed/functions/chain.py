"""The order in which a way back comes by this thread's communications."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy

from renga import _core
from renga import functions as F
from renga.functions.util.recomputation import is_recomputable
from renga.variable import Variable, as_variable


class Chain(threading.local):
    """The communications since the last way back, each joined to the one before.

    The last one's token is where the next ``backward()`` or ``grad()`` of this thread
    starts besides what it is asked for; it ends at the leaf that the first one began
    with. So every communication is gone back through once, in reverse order, whatever
    a loss is computed from.
    """

    def __init__(self) -> None:
        self._last: list[Variable] = []
        self._first: list[Variable] = []
        self._nodes: list[weakref.ref[Any]] = []
        _core.set_extra_roots(self._last, self._first)

    def join(self, delegate: Any) -> Variable:
        """A token that hangs on the last communication and on ``delegate``."""
        if is_recomputable():
            raise RuntimeError(
                "forget: expected a function without communications, whose other ranks "
                "do not communicate again on the way back"
            )
        if self._last:
            before = self._last[0]
        elif _core.backprop_enabled():
            before = Variable(nothing())
            self._first[:] = [before]
            self._nodes = []
        else:
            return token_for(delegate)
        return before if delegate is None else F.add(before, token_for(delegate))

    def append(self, node: Any, token: Variable) -> None:
        """Makes a communication the last one, if it is part of a graph."""
        if token.creator_node is not None:
            self._last[:] = [token]
            self._nodes.append(weakref.ref(node))

    def report(self) -> str:
        """The communications that no way back has come through, in words."""
        nodes = [node() for node in self._nodes] if self._last else []
        waiting = [
            f"{node.label} called at {node._link.call_site}" for node in nodes if node
        ]
        if not waiting:
            return ""
        return (
            f"; on this rank no backward() has come yet through {len(waiting)} "
            f"communications, for whose gradients others may wait: {waiting[-1]}"
        )


chain = Chain()


def token_for(delegate: Any) -> Variable:
    """An empty variable that hangs on ``delegate``, or on nothing."""
    if delegate is None or not as_variable(delegate).requires_grad:
        return Variable(nothing())
    if delegate.shape == (0,) and delegate.dtype == numpy.float32:
        return delegate
    return F.cast(F.get_item(F.reshape(delegate, (-1,)), slice(0)), numpy.float32)


def nothing() -> numpy.ndarray:
    """The array of a token."""
    return numpy.empty(0, numpy.float32)
