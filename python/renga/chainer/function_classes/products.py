"""Products: with sparse matrices whose data are a Variable, and onto diagonals."""

from __future__ import annotations

from typing import Any

import numpy

from renga import functions as F
from renga._core import Variable
from renga.chainer.function_classes.operation import OperationNode
from renga.core.types import ArrayLike, DTypeLike
from renga.utils.sparse import CooMatrix


class _Product(OperationNode):
    """What two products have for arguments: the sparse matrix and what is transposed.

    The result has ``dtype``; by default the one that NumPy promotes the inputs to.
    """

    def __init__(
        self,
        sp_row: Any,
        sp_col: Any,
        sp_shape: tuple[int, int],
        sp_order: str = "other",
        transa: bool = False,
        transb: bool = False,
        transc: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.sp_row, self.sp_col = sp_row, sp_col
        self.sp_shape, self.sp_order = sp_shape, sp_order
        self.transa, self.transb, self.transc = transa, transb, transc
        self.dtype = dtype

    def compute(self, a: Any, b: Any) -> Any:
        dtype = self.dtype or numpy.result_type(a.dtype, b.dtype)
        return F.cast(self.product(a, b), dtype)

    def product(self, a: Any, b: ArrayLike) -> Any:
        """The result in the dtype of the inputs."""
        raise NotImplementedError


class CooMatMul(_Product):
    """The sparse matrix with the data ``a`` times the dense ``b``."""

    def product(self, a: Any, b: ArrayLike) -> Variable:
        matrix = CooMatrix(
            a if isinstance(a, numpy.ndarray) else a.array,
            self.sp_row,
            self.sp_col,
            self.sp_shape,
            self.sp_order,
        )
        matrix.data = a
        y = F.sparse_matmul(matrix, b, self.transa, self.transb)
        return F.swapaxes(y, -1, -2) if self.transc else y


class CooMatMulGradSP(_Product):
    """The elements of the dense product ``a b`` where the sparse matrix has its data.

    Data that only fill up the sparse matrix, at row or column -1, are zeros.
    """

    def product(self, a: Any, b: ArrayLike) -> Variable:
        row, col = self.sp_row, self.sp_col
        if self.transc:
            row, col = col, row
        rows = _rows(F.swapaxes(a, -1, -2) if self.transa else a, row)
        columns = _rows(b if self.transb else F.swapaxes(b, -1, -2), col)
        y = F.sum(rows * columns, -1)
        return F.where((row >= 0) & (col >= 0), y, numpy.zeros(y.shape, y.dtype))


def _rows(x: Any, index: Any) -> Any:
    """The rows of a matrix, or of each matrix of a batch."""
    if x.ndim == 2:
        return F.get_item(x, index)
    return F.get_item(x, (numpy.arange(len(x))[:, None], index))


class DiagEinSum(OperationNode):
    """A sum of products whose result may have a label twice, or one of its own.

    The result is zero but on the diagonals of labels that it has twice, and constant
    along labels that the inputs do not have.

    >>> DiagEinSum("i", "ii", (2, 2)).apply((numpy.array([1.0, 2.0]),))[0].array
    array([[1., 0.],
           [0., 2.]])
    """

    def __init__(self, in_subs: str, out_sub: str, out_shape: tuple[int, ...]) -> None:
        self.in_subs, self.out_sub, self.out_shape = in_subs, out_sub, out_shape

    def compute(self, *xs: ArrayLike) -> Variable:
        labels = self.out_sub
        first = {label: labels.index(label) for label in dict.fromkeys(labels)}
        known = "".join(label for label in first if label in self.in_subs)
        y = F.einsum(f"{self.in_subs}->{known}", *xs)
        extents = [1] * len(labels)
        for label in known:
            extents[first[label]] = self.out_shape[first[label]]
        y = F.broadcast_to(F.reshape(y, tuple(extents)), self.out_shape)
        axes = numpy.ogrid[tuple(map(slice, self.out_shape))] if labels else ()
        on_diagonals = numpy.ones(self.out_shape, bool)
        for axis, label in enumerate(labels):
            on_diagonals &= axes[axis] == axes[first[label]]
        return F.where(on_diagonals, y, numpy.zeros(self.out_shape, y.dtype))


MODULES: dict[str, list[type[OperationNode]]] = {
    "math.einsum": [DiagEinSum],
    "math.sparse_matmul": [CooMatMul, CooMatMulGradSP],
}
