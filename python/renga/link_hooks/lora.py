"""LoRA: a fixed weight plus a product of two small matrices, which is trained."""

from __future__ import annotations

from renga import functions as F
from renga.core.function_node import FunctionNode
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.variable import Variable
from renga.initializers import LeCunNormal, generate_array
from renga.link_hooks.weight_hook import WeightHook
from renga.utils.extents import check_count, check_real


class ConstantWeight(FunctionNode):
    """Its input, to which it passes no gradient."""

    is_elementwise = True

    def forward(self, inputs: tuple) -> tuple:
        return inputs

    def backward(self, indexes: tuple, grad_outputs: tuple) -> tuple:
        return (None,)


class LoRA(WeightHook):
    """Adds a matrix of low rank to a weight, for every call of the link.

    ``W + (alpha / rank) W_B W_A`` replaces the parameter, which is a constant: it gets
    no gradient. The link gets the parameters ``W_A``, of random numbers, and ``W_B``,
    of zeros (by the name of the weight), which are saved with it. Optimizers are set up
    after the hook is added; ``param.update_rule.enabled = False`` leaves the other
    parameters out of updates.

    Args:
        rank: the rank R of the matrix.
        alpha: the scale of the matrix, R unless given.

    Shapes:
        W: (outputs, …)
        W_A: (R, the size of a row of W)
        W_B: (outputs, R)

    Raises:
        ValueError: the link has no parameter ``weight_name``, or one without a shape,
            or the rank is not positive.
        TypeError: the rank is no integer, or ``alpha`` no number.
        NotImplementedError: used in a ``with`` statement.

    Source: Hu et al., LoRA: low-rank adaptation of large language models, 2021.
    """

    name = "LoRA"

    def __init__(
        self,
        rank: int,
        alpha: float | None = None,
        *,
        weight_name: str = "W",
        name: str | None = None,
    ) -> None:
        super().__init__(weight_name, name)
        self.rank = check_count("LoRA", "rank", rank)
        self.scale = 1.0
        if alpha is not None:
            self.scale = check_real("LoRA", "alpha", alpha) / self.rank
        self.factors = f"{weight_name}_A", f"{weight_name}_B"

    def added(self, link: Link) -> None:
        super().added(link)
        if not self._weight(link).is_initialized:
            raise ValueError(
                "LoRA: expected a weight with a shape, got one that the first call of "
                "the link initializes"
            )

    def deleted(self, link: Link) -> None:
        self._restore(link)
        for name in self.factors:
            delattr(link, name)

    def prepare(self, link: Link) -> None:
        W, (A, B) = self._weight(link), self.factors
        size = W.size // max(1, len(W))
        down = generate_array(
            LeCunNormal(), (self.rank, size), link.xp, W.dtype, link.device
        )
        with link.init_scope():
            setattr(link, A, Parameter(down))
            setattr(link, B, Parameter(link.xp.zeros((len(W), self.rank), W.dtype)))

    def normalize_weight(self, link: Link) -> Variable:
        """The sum of the weight of ``link`` and the matrix."""
        W = self._weight(link)
        A, B = (getattr(link, name) for name in self.factors)
        (constant,) = ConstantWeight().apply((W,))
        return constant + F.reshape(F.matmul(self.scale * B, A), W.shape)

    def merge(self, link: Link) -> None:
        """Adds the matrix to the weight of ``link``, and deletes the hook from it."""
        self._weight(link).array = self.normalize_weight(link).array
        link.delete_hook(self.name)
