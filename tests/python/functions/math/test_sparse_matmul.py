"""Sparse products against dense ones."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import utils
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
holes = rng.normal(size=(2, 3, 4)) * (rng.random((2, 3, 4)) > 0.5)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_products(batch, transposed, left):
    matrix = holes if batch else holes[0]
    coo = utils.to_coo(matrix)
    plain = numpy.swapaxes(matrix, -1, -2) if transposed else matrix
    rows, columns = plain.shape[-2:]
    size = (columns, 2) if left else (2, rows)
    dense = rng.normal(size=(*plain.shape[:-2], *size))

    def sparse(data):
        """The same entries with other values, connected to the graph."""
        made = utils.CooMatrix(coo.data.array, coo.row, coo.col, coo.shape)
        made.data = renga.as_variable(data)
        return made

    def function(data, dense):
        a, b = (sparse(data), dense) if left else (dense, sparse(data))
        return F.sparse_matmul(a, b, transposed and left, transposed and not left)

    def reference(data, dense):
        values = numpy.zeros(matrix.shape)
        for index in numpy.ndindex(*data.shape):
            row, col = coo.row[index], coo.col[index]
            if row >= 0:
                values[(*index[:-1], row, col)] += data[index]
        values = numpy.swapaxes(values, -1, -2) if transposed else values
        return values @ dense if left else dense @ values

    check(function, reference, coo.data.array, dense)


def test_sparse_forms():
    coo = utils.to_coo(holes)
    assert coo.row.shape == coo.data.shape == (2, max((holes != 0).sum((1, 2))))
    numpy.testing.assert_array_equal(coo.to_dense(), holes)
    numpy.testing.assert_array_equal(utils.to_coo(holes[1]).to_dense(), holes[1])
    assert utils.to_coo(holes, ldnz=20).data.shape == (2, 20)
    assert utils.to_coo(holes[0], requires_grad=True).data.requires_grad
    row, col = numpy.nonzero(holes[0])
    assert utils.get_order(row, col) == "C" and utils.get_order(col, row) == "F"
    assert utils.get_order(row[::-1], col[::-1]) == "other"
    one_row = numpy.array([0, 0]), numpy.array([1, 0])
    assert utils.get_order(*one_row) == "other"


coo = utils.to_coo(holes[0])
dense = rng.normal(size=(4, 2))
FAULTS = [
    (lambda: F.sparse_matmul(dense, dense), ValueError),
    (lambda: F.sparse_matmul(coo, coo), ValueError),
    (lambda: F.sparse_matmul(coo, dense[:3]), InvalidType),
    (lambda: F.sparse_matmul(coo, dense.astype("i")), InvalidType),
    (lambda: F.sparse_matmul(utils.to_coo(holes), dense), InvalidType),
    (lambda: utils.to_coo(numpy.zeros(3)), ValueError),
    (lambda: utils.CooMatrix(dense, coo.row, coo.col, (3, 4)), ValueError),
    (lambda: utils.CooMatrix(numpy.ones(2), coo.row, coo.col, (3, 4)), ValueError),
    (lambda: utils.CooMatrix(coo.row, coo.row, coo.col, (3,)), ValueError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
