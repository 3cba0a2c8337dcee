"""What every differentiable communication has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import functions as F
from renga.distributed.functions.chain import chain, nothing
from renga.function_node import FunctionNode
from renga.variable import Variable

Result = tuple[Variable, Sequence[Variable]]


class Communication(FunctionNode):
    """A communication of ranks, whose way back is the adjoint communication.

    Its first input and its first output are tokens, empty arrays. By them a rank that
    gives or gets nothing, or nothing that a gradient passes through, takes part in the
    way back nevertheless: tokens lead from each communication to the one before, and
    the next ``backward()`` of this thread starts from the last one, too.
    """

    def communicate(self, xs: Sequence[Any], delegate: Any = None) -> Result:
        """A token and what comes for ``xs``, computed after ``delegate``."""
        token, *ys = self.apply((chain.join(delegate), *xs))
        chain.append(self, token)
        return token, ys

    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        """The arrays that come for those that go."""
        raise NotImplementedError

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        """A token and the gradients of what went, computed after ``token``."""
        raise NotImplementedError

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        try:
            ys = self.exchange(inputs[1:])
        except TimeoutError as error:
            raise TimeoutError(f"{error}{chain.report()}") from error
        self._forms = [(y.shape, y.dtype) for y in ys]
        self.retain_outputs((0,))
        return (nothing(), *ys)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        # The other ranks wait for this one even where no gradient reached an output.
        gtoken, *gys = (
            Variable(numpy.zeros(*form)) if gy is None else gy
            for gy, form in zip(grad_outputs, [((0,), numpy.float32), *self._forms])
        )
        # By way of this node's own token, a second derivative comes back here too.
        token = F.add(gtoken, *self.get_retained_outputs())
        token, gxs = self.adjoint(token, gys)
        return tuple((token, *gxs)[i] for i in target_input_indexes)
