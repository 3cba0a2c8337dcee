"""EmbedID: a lookup table of vectors."""

from __future__ import annotations

from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable, as_array, as_variable
from renga.functions import embed_id, linear
from renga.initializers import Normal, get_initializer
from renga.utils.extents import check_counts


class EmbedID(Link):
    """Looks up a row of its weight for every integer.

    The integer ``ignore_label`` gives zeros and has no gradient.

    Shapes:
        x: integers of any shape
        y: (*x.shape, out_size)
        W: (in_size, out_size)
    """

    W: Parameter
    ignore_label: int | None = None

    def __init__(
        self,
        in_size: int,
        out_size: int,
        initialW: Initial | None = None,
        ignore_label: int | None = None,
    ) -> None:
        super().__init__()
        sizes = (in_size, out_size)
        check_counts(type(self).__name__, "in_size and out_size", sizes, least=0)
        self.ignore_label = ignore_label
        initializer = Normal(1.0) if initialW is None else get_initializer(initialW)
        with self.init_scope():
            self.W = Parameter(initializer, sizes)

    @classmethod
    def from_params(cls, W: ArrayLike, ignore_label: int | None = None) -> EmbedID:
        """A lookup in the given rows."""
        in_size, out_size = W.shape
        return cls(in_size, out_size, as_array(W), ignore_label)

    def forward(self, x: ArrayLike) -> Variable:
        """The rows with the indices ``x``."""
        return embed_id(x, self.W, ignore_label=self.ignore_label)

    def attend(self, x: ArrayLike) -> Variable:
        """The products of vectors with all rows: scores of the integers.

        Language models use the weight of their embedding for these, too.

        Shapes:
            x: (N, …, out_size)
            result: (N, …, in_size)

        Source: Press and Wolf, Using the output embedding to improve language models,
        2017.
        """
        return self._run_with_hooks("attend", self._attend, as_variable(x))

    def _attend(self, x: Variable) -> Variable:
        return linear(x, self.W, n_batch_axes=x.ndim - 1)
