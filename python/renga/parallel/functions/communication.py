"""What all differentiable communications have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import functions as F
from renga.core.backend import get_array_module
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.parallel.functions.chain import communication_chain, empty_token

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

    def backward(
        self,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
    ) -> tuple[Variable, ...]:
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
