"""Products of a sparse and a dense matrix."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import promoted
from renga.functions.check import check_floats, checked_indices
from renga.utils.sparse import CooMatrix
from renga.utils.type_check import InvalidType


def sparse_matmul(
    a: ArrayLike | CooMatrix,
    b: ArrayLike | CooMatrix,
    transa: bool = False,
    transb: bool = False,
) -> Variable:
    """``a b`` of matrices or batches of them, one being a ``CooMatrix``.

    Shapes:
        a: (m, k) or (N, m, k), its last two axes swapped if ``transa``
        b: (k, n) or (N, k, n), its last two axes swapped if ``transb``
        return: (m, n) or (N, m, n)

    Raises:
        ValueError: none or both are sparse.
        InvalidType: shapes or dtypes do not fit.
        IndexError: a row or column of the sparse matrix is out of range and not -1.
    """
    if isinstance(a, CooMatrix) == isinstance(b, CooMatrix):
        raise ValueError(
            f"sparse_matmul: expected one CooMatrix, got {type(a)} and {type(b)}"
        )
    if isinstance(a, CooMatrix):
        return _product(a, b, transa, transb)
    # a b = (b^T a^T)^T
    assert isinstance(b, CooMatrix)
    y = _product(b, a, not transb, not transa)
    return _core.ops.swapaxes(y, -1, -2)


def _product(sparse: CooMatrix, dense: Any, trans: bool, trans_dense: bool) -> Variable:
    ops = _core.ops
    check_floats("sparse_matmul", dense)
    data, dense = promoted(sparse.data, dense)
    if dense.ndim != data.ndim + 1:
        raise InvalidType(
            f"sparse_matmul: expected a dense matrix of {data.ndim + 1} axes, got "
            f"{dense.shape}"
        )
    if trans_dense:
        dense = ops.swapaxes(dense, -1, -2)
    m, k = sparse.shape
    row = checked_indices("sparse_matmul", "row", sparse.row, m, -1)
    col = checked_indices("sparse_matmul", "col", sparse.col, k, -1)
    if trans:
        row, col, m, k = col, row, k, m
    if dense.shape[-2] != k or (data.ndim == 2 and len(dense) != len(data)):
        raise InvalidType(
            f"sparse_matmul: expected {k} rows for a sparse matrix of {sparse.shape}, "
            f"got {dense.shape}"
        )
    # All matrices of a batch as one, stacked vertically.
    batch = numpy.arange(data.shape[0] if data.ndim == 2 else 1)[:, None]
    used = (row >= 0) & (col >= 0)
    sources = numpy.where(used, batch * k + col, -1).ravel()
    targets = (batch * m + row).ravel()
    width = dense.shape[-1]
    y = ops.sparse_product(
        ops.reshape(data, (data.size,)),
        sources,
        numpy.where(sources < 0, -1, targets),
        ops.reshape(dense, (len(batch) * k, width)),
        len(batch) * m,
    )
    return ops.reshape(y, (*data.shape[:-1], m, width))
