"""Grids and images at their points, one by one in NumPy."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 3, 4, 5))
theta = rng.normal(size=(2, 2, 3)) / 2
# Points between pixels, on the edge, just outside and far outside.
grid = rng.uniform(-1.4, 1.4, size=(2, 2, 3, 4))
grid[0, 0, 0, 0] = 30


def test_spatial_transformer_grid():
    def reference(theta):
        y = numpy.zeros((2, 2, 3, 5))
        for i, v in enumerate((-1, 0, 1)):
            for j, u in enumerate((-1, -0.5, 0, 0.5, 1)):
                y[:, :, i, j] = theta @ [u, v, 1]
        return y

    check(lambda theta: F.spatial_transformer_grid(theta, (3, 5)), reference, theta)


def value(image, row, column):
    """Bilinear interpolation among zeros."""
    total = numpy.zeros(image.shape[0])
    for i, j in numpy.ndindex(*image.shape[1:]):
        share = max(0, 1 - abs(row - i)) * max(0, 1 - abs(column - j))
        total = total + share * image[:, i, j]
    return total


def test_spatial_transformer_sampler():
    def reference(x, grid):
        y = numpy.zeros((2, 3, 3, 4))
        for n, i, j in numpy.ndindex(2, 3, 4):
            column, row = (grid[n, :, i, j] + 1) * [2, 1.5]
            y[n, :, i, j] = value(x[n], row, column)
        return y

    check(F.spatial_transformer_sampler, reference, x, grid)


def test_the_grid_of_the_identity_gives_the_image():
    same = numpy.tile(numpy.eye(2, 3, dtype="f"), (2, 1, 1))
    y = F.spatial_transformer_sampler(
        x.astype("f"), F.spatial_transformer_grid(same, (4, 5))
    )
    numpy.testing.assert_allclose(y.array, x, 1e-5, 1e-5)


FAULTS = [
    (lambda: F.spatial_transformer_grid(theta[0], (2, 2)), InvalidType),
    (lambda: F.spatial_transformer_grid(theta.astype("i"), (2, 2)), InvalidType),
    (lambda: F.spatial_transformer_grid(theta, (2, 2), use_cudnn=False), ValueError),
    (lambda: F.spatial_transformer_sampler(x, grid[:1]), InvalidType),
    (lambda: F.spatial_transformer_sampler(x, grid[:, :1]), InvalidType),
    (lambda: F.spatial_transformer_sampler(x, grid.astype("f")), InvalidType),
    (lambda: F.spatial_transformer_sampler(x, grid, other=1), TypeError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
