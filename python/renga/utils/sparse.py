"""Sparse matrices in COO format."""

from __future__ import annotations

import numpy

from renga import _core
from renga.core.types import Array
from renga.utils.argument import check_choice


class CooMatrix:
    """A sparse matrix, or a batch of them, as values with their rows and columns.

    Shapes:
        data, row, col: (n,) or (N, n); entries with a row or column of -1 are empty
        shape: (rows, columns)

    Raises:
        TypeError: ``data``, ``row`` or ``col`` is not an array.
        ValueError: the arrays have different shapes, or not one or two axes.
    """

    def __init__(
        self,
        data: Array,
        row: Array,
        col: Array,
        shape: tuple[int, int],
        order: str | None = None,
        requires_grad: bool = False,
    ) -> None:
        if not all(hasattr(x, "ndim") for x in (data, row, col)):
            types = " and ".join(type(x).__name__ for x in (data, row, col))
            raise TypeError(f"CooMatrix: expected arrays, got {types}")
        if not 1 <= data.ndim <= 2:
            raise ValueError(f"CooMatrix: expected 1 or 2 axes, got {data.shape}")
        if not data.shape == row.shape == col.shape:
            raise ValueError(
                f"CooMatrix: expected data, row and col of one shape, got {data.shape},"
                f" {row.shape} and {col.shape}"
            )
        if len(shape) != 2:
            raise ValueError(f"CooMatrix: expected a shape of two axes, got {shape}")
        self.data = _core.Variable(data, requires_grad=requires_grad)
        self.row = row
        self.col = col
        self.shape = shape
        check_choice("CooMatrix: expected order", order, "C", "F", "other", None)
        self.order = get_order(row, col) if order is None else order

    def to_dense(self) -> numpy.ndarray:
        """The dense matrix or batch; duplicate entries are summed."""
        data = numpy.asarray(self.data.array)
        y = numpy.zeros((*data.shape[:-1], *self.shape), data.dtype)
        batch = numpy.arange(len(data))[:, None] if data.ndim == 2 else None
        used = (self.row >= 0) & (self.col >= 0)
        values = numpy.where(used, data, 0)
        indices = (self.row, self.col) if batch is None else (batch, self.row, self.col)
        numpy.add.at(y, indices, values)
        return y


def to_coo(x: Array, ldnz: int | None = None, requires_grad: bool = False) -> CooMatrix:
    """The sparse form of a matrix (m, n) or of a batch of them (N, m, n).

    Each matrix has as many entries as the one with most, and at least ``ldnz``.

    Raises:
        ValueError: ``x`` has another number of axes.
    """
    if x.ndim not in (2, 3):
        raise ValueError(f"to_coo: expected 2 or 3 axes, got {x.shape}")
    if x.ndim == 2:
        indices = numpy.nonzero(x)
        row, col = indices[0].astype(numpy.int32), indices[1].astype(numpy.int32)
        most = max(ldnz or 0, len(row))
        row, col = (_filled_up(index, most, -1) for index in (row, col))
        data = _filled_up(x[indices], most, 0)
        return CooMatrix(data, row, col, x.shape, "C", requires_grad)
    found = [numpy.nonzero(matrix) for matrix in x]
    most = max([ldnz or 0, *(len(indices[0]) for indices in found)])
    data = numpy.zeros((len(x), most), x.dtype)
    rows, cols = (numpy.full(data.shape, -1, numpy.int32) for _ in range(2))
    for i, indices in enumerate(found):
        n = len(indices[0])
        data[i, :n] = x[i][indices]
        rows[i, :n], cols[i, :n] = indices
    return CooMatrix(data, rows, cols, x.shape[1:], "C", requires_grad)


def _filled_up(values: numpy.ndarray, length: int, value: int) -> numpy.ndarray:
    return numpy.pad(values, (0, length - len(values)), constant_values=value)


def get_order(row: Array, col: Array) -> str:
    """ "C" if entries are sorted by rows, "F" if by columns, else "other".

    Raises:
        ValueError: an entry has a row and no column, or a column and no row.
    """
    if numpy.any((row < 0) != (col < 0)):
        raise ValueError(
            "get_order: expected a row and a column of each entry, or -1 for both, got "
            f"the rows {row} and the columns {col}"
        )
    if _is_sorted(row, col):
        return "C"
    return "F" if _is_sorted(col, row) else "other"


def _is_sorted(major: numpy.ndarray, minor: numpy.ndarray) -> bool:
    steps, within = numpy.diff(major), numpy.diff(minor)
    used = (major[..., 1:] >= 0) & (minor[..., 1:] >= 0)
    sorted_pair = (steps > 0) | ((steps == 0) & (within >= 0))
    return bool(numpy.all(sorted_pair | ~used))
