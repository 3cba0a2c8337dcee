"""How the extents of whole images are found from shards."""

import gc
import weakref

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
    h = F.dropout(F.leaky_relu(F.sigmoid(F.tanh(F.elu(F.relu(h))))), 0.0)
    return 1 - 2 * F.cos(F.sqrt(h) ** 3)


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


def test_extents_are_known_behind_a_normalization():
    x, W1, W2 = numbers(0, 2, 2, 7, 5), numbers(1, 3, 2, 2, 3), numbers(2, 4, 3, 3, 3)
    h = F.convolution_2d(x, W1)
    h = F.batch_normalization(h, np.ones(3), np.zeros(3))
    expected = F.convolution_2d(F.square(h), W2).array

    def on_rank(comm):
        calls, bn = count_gathers(comm), S.SpatialBatchNormalization(comm, 3, dtype="d")
        part = renga.Variable(S.scatter_image(comm, x).array)
        h = F.square(bn(S.spatial_convolution(comm, part, W1)))
        calls.clear()
        y = S.spatial_convolution(comm, h, W2)
        return S.gather_image(comm, y).array, len(calls)

    for y, gathers in local.run(on_rank, ranks=2):
        np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)
        assert gathers == 0


def test_a_replicated_image_is_known_behind_functions():
    def on_rank(comm):
        x = renga.Variable(S.scatter_image(comm, numbers(0, 1, 2, 6, 4)).array)
        whole = F.sqrt(F.square(S.gather_image(comm, x)))
        whole = F.batch_normalization(F.sin(whole), np.ones(2), np.zeros(2))
        with pytest.raises(InvalidType, match=r"got whole images, \(1, 2, 6, 4\)"):
            S.spatial_convolution(comm, whole, numbers(1, 2, 2, 3, 3), pad=1)

    local.run(on_rank, ranks=2)


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


def test_a_communicator_and_its_shared_memory_end_with_their_last_user():
    def on_rank(comm):
        own = comm.split(0, comm.rank)
        grid = S.SpatialGrid(own, (2,))
        conv = S.SpatialConvolution2D(grid, 3, 3, 3, pad=1)
        x = renga.Variable(numbers(0, 1, 3, 4, 6).astype("f"))
        y = S.spatial_unpooling(grid, S.spatial_max_pooling(grid, conv(x), 2), 2)
        F.sum(y).backward()
        return weakref.ref(own)

    ended = local.run(on_rank, ranks=2)
    gc.collect()  # the links and the graph
    assert [own() for own in ended] == [None, None]
