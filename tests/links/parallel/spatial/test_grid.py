"""How the extents of whole images are found from shards."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.communicators import local
from renga.links.parallel import spatial as S
from renga.utils.type_check import InvalidType


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(0, 1, shape)


def count_gathers(comm):
    """A list that grows with each all-gather."""
    calls, gather = [], comm.all_gather

    def counting(*args, **kwargs):
        calls.append(args)
        return gather(*args, **kwargs)

    comm.all_gather = counting
    return calls


def pixelwise(x):
    """Functions that keep the extents of an image."""
    h = F.fixed_batch_normalization(x, *(np.full(3, i + 1.0) for i in range(4)))
    return F.dropout(F.leaky_relu(F.sigmoid(F.tanh(F.elu(F.relu(h))))), 0.0)


@pytest.mark.parametrize("rows", [7, 8])
def test_extents_from_the_graph(rows):
    # Rank 0 has 4 rows of both.
    x, W1, W2 = (
        numbers(0, 1, 2, rows, 5),
        numbers(1, 3, 2, 2, 3),
        numbers(2, 3, 2, 4, 4),
    )
    serial = pixelwise(F.convolution_2d(x, W1))
    expected = F.deconvolution_2d(serial, W2, stride=2).array

    def on_rank(comm):
        calls, part = (
            count_gathers(comm),
            renga.Variable(S.scatter_image(comm, x).array),
        )
        counts = []

        def run():
            calls.clear()
            h = pixelwise(S.spatial_convolution(comm, part, W1))
            y = S.spatial_deconvolution(comm, h, W2, stride=2)
            counts.append(len(calls))
            return S.gather_image(comm, y).array

        found = [run()]
        with renga.no_backprop_mode():
            found.append(run())
        return found, counts

    for found, counts in local.run(on_rank, ranks=2):
        for y in found:
            np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)
        # The first image has no graph. Without graphs, both extents are gathered.
        assert counts == [1, 2]


def test_shards_of_one_grid_may_be_those_of_another():
    W = numbers(1, 2, 2, 3, 3)

    def on_rank(comm):
        x = renga.Variable(numbers(2 + comm.rank, 1, 2, 4, 2))
        h = S.spatial_convolution(S.SpatialGrid(comm, (1, 2)), x, W, pad=1)
        return h.array, S.spatial_convolution(comm, h, W, pad=1).array

    middle, found = zip(*local.run(on_rank, ranks=2))
    expected = F.convolution_2d(np.concatenate(middle, axis=2), W, pad=1).array
    np.testing.assert_allclose(np.concatenate(found, axis=2), expected, rtol=1e-12)


def test_a_variable_whose_image_was_replaced():
    W, x, other = numbers(1, 2, 2, 3, 3), numbers(0, 1, 2, 4, 4), numbers(2, 1, 2, 6, 4)

    def on_rank(comm):
        h = S.spatial_convolution(comm, renga.Variable(x), W, pad=1)
        h.array = S.scatter_image(comm, other).array
        return S.spatial_convolution(comm, h, W).array

    found = np.concatenate(local.run(on_rank, ranks=2), axis=2)
    expected = F.convolution_2d(other, W).array
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_extents_of_slices_are_gathered():
    W = numbers(1, 2, 2, 3, 3)

    def on_rank(comm):
        h = S.spatial_convolution(comm, numbers(0, 1, 2, 4, 4), W, pad=1)
        S.spatial_convolution(comm, h[:, :, : 4 - 2 * comm.rank], W)

    with pytest.raises(InvalidType, match=r"rank 0 to have \(1, 2, 3, 4\)"):
        local.run(on_rank, ranks=2)
