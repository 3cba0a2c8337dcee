"""Collectives on arrays of known shape, against NumPy."""

import numpy as np
import pytest

from tests.communicators.operands import data, in_rank_order

FLOATS = ["float16", "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = [*INTS, *FLOATS]
# Nothing, one element, and more than one piece in every kind of communicator.
SIZES = [0, 1, 1000, 5000, 700_001]


def assert_reduced(ranks, operands_of, op):
    """That an all-reduce of each operand is the reduction in rank order."""
    results = ranks(
        lambda comm: [comm.all_reduce(x, op) for x in operands_of(comm.rank)]
    )
    operands = [operands_of(rank) for rank in range(len(results))]
    for ys in results:
        for y, *xs in zip(ys, *operands):
            np.testing.assert_array_equal(y, in_rank_order(xs, op))
            assert y.dtype == xs[0].dtype


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
def test_all_reduce_is_the_rank_order_reduction_on_every_rank(ranks, op):
    def operands_of(rank):
        return [data(rank, (3, 50), dtype) for dtype in NUMBERS]

    assert_reduced(ranks, operands_of, op)


@pytest.mark.parametrize("op", ["sum", "prod"])
def test_integers_wrap_around(ranks, op):
    ends = [np.iinfo(dtype) for dtype in INTS]
    xs = [np.array([e.max, e.min, e.max // 2, 3], e.dtype) for e in ends]
    assert_reduced(ranks, lambda rank: xs, op)


@pytest.mark.parametrize("size", SIZES)
def test_mean_of_every_size(ranks, size):
    def operands_of(rank):
        return [data(rank, size, dtype) for dtype in FLOATS]

    assert_reduced(ranks, operands_of, "mean")


def test_mean_of_integers_is_refused(ranks):
    from renga.utils.type_check import InvalidType

    with pytest.raises(InvalidType, match="floating dtype for mean, got int32"):
        ranks(lambda comm: comm.all_reduce(np.ones(3, "int32"), "mean"))


def test_max_propagates_nan(ranks):
    def act(comm):
        x = np.zeros(2, "float32")
        x[comm.rank % 2] = np.nan if comm.rank == 0 else 1
        return comm.all_reduce(x, "max")

    assert all(np.isnan(y[0]) for y in ranks(act))


def test_several_arrays_are_reduced_together(ranks):
    shapes = [(3, 4), (), (0, 2), (200_000,), (7,)]

    def act(comm):
        xs = [data(comm.rank + i, shape, "float32") for i, shape in enumerate(shapes)]
        return comm.all_reduce(xs)

    results = ranks(act)
    for ys in results:
        for i, shape in enumerate(shapes):
            xs = [data(r + i, shape, "float32") for r in range(len(results))]
            np.testing.assert_array_equal(ys[i], in_rank_order(xs, "sum"))


def test_any_strides_in_and_out(ranks):
    def act(comm):
        x = data(comm.rank, (6, 8), "float32")[::-1, ::2].T
        y = np.full((8, 6), np.nan, "float32")
        comm.all_reduce(x, out=y[::2])
        return y

    results = ranks(act)
    xs = [data(r, (6, 8), "float32")[::-1, ::2].T for r in range(len(results))]
    for y in results:
        np.testing.assert_array_equal(y[::2], in_rank_order(xs, "sum"))
        assert np.isnan(y[1::2]).all()


# Runs shorter and longer than a line; a few, and more than a piece of a message has.
@pytest.mark.parametrize(
    "channels, pixels", [(3, 7), (3, 20_000), (40, 7), (40, 7_000)]
)
def test_slices_of_channels_last_images(ranks, channels, pixels):
    """Blocks of channels of (pixels, ranks * channels), as they lie."""

    def act(comm):
        x = data(comm.rank, (pixels, comm.size * channels), "float32")
        by_rank = pixels, comm.size, channels
        parts = x.reshape(by_rank).swapaxes(0, 1)
        gathered, exchanged = np.full_like(x, np.nan), np.full_like(x, np.nan)
        comm.all_gather(parts[0], out=gathered.reshape(by_rank).swapaxes(0, 1))
        comm.all_to_all(parts, out=exchanged.reshape(by_rank).swapaxes(0, 1))
        return gathered, exchanged, comm.reduce_scatter(parts)

    results = ranks(act)
    size = len(results)
    xs = [data(r, (pixels, size * channels), "float32") for r in range(size)]
    total = in_rank_order(xs, "sum")
    for rank, (gathered, exchanged, scattered) in enumerate(results):
        own = slice(rank * channels, (rank + 1) * channels)
        first = np.concatenate([x[:, :channels] for x in xs], axis=1)
        np.testing.assert_array_equal(gathered, first)
        theirs = np.concatenate([x[:, own] for x in xs], axis=1)
        np.testing.assert_array_equal(exchanged, theirs)
        np.testing.assert_array_equal(scattered, total[:, own])


@pytest.mark.parametrize("size", [(), 0, 5, 1025, (50, 60), 300_000])
def test_in_place(ranks, size):
    cases = [("float32", "sum"), ("float32", "mean"), ("float16", "mean")]
    cases.append(("int32", "max"))

    def act(comm):
        xs = [data(comm.rank, size, dtype) for dtype, _ in cases]
        for x, (_, op) in zip(xs, cases):
            assert comm.all_reduce(x, op, out=x) is x
        return xs

    results = ranks(act)
    for (dtype, op), *ys in zip(cases, *results):
        expected = in_rank_order([data(r, size, dtype) for r in range(len(ys))], op)
        for y in ys:
            np.testing.assert_array_equal(y, expected)
            assert y.dtype == dtype


def test_in_place_with_strides(ranks):
    def act(comm):
        x = data(comm.rank, (20, 3), "float64")
        comm.all_reduce(x[:, 1], out=x[:, 1])
        comm.all_reduce(x.T[2:], "max", out=x.T[2:])
        return x

    results = ranks(act)
    xs = [data(r, (20, 3), "float64") for r in range(len(results))]
    for x, y in zip(xs, results):
        np.testing.assert_array_equal(y[:, 0], x[:, 0])
        np.testing.assert_array_equal(y[:, 1], in_rank_order(xs, "sum")[:, 1])
        np.testing.assert_array_equal(y[:, 2], in_rank_order(xs, "max")[:, 2])


def test_read_only_results_are_refused(ranks):
    def act(comm):
        x = np.ones(3, "float32")
        x.flags.writeable = False
        with pytest.raises(ValueError, match="may be written to"):
            comm.all_reduce(x, out=x)
        return x

    assert all((x == 1).all() for x in ranks(act))


@pytest.mark.parametrize("row", [(), (0,), (5,), (200_000,), (3, 2)])
def test_reduce_scatter(ranks, row):
    def act(comm):
        return comm.reduce_scatter(data(comm.rank, (comm.size, *row), "float32"))

    ys = ranks(act)
    xs = [data(r, (len(ys), *row), "float32") for r in range(len(ys))]
    np.testing.assert_array_equal(np.stack(ys), in_rank_order(xs, "sum"))


@pytest.mark.parametrize("shape", [(), (0,), (5,), (300_000,), (3, 2)])
def test_all_gather(ranks, shape):
    dtypes = ["bool", "int16", "float16", "float64"]

    def act(comm):
        return [comm.all_gather(data(comm.rank, shape, dtype)) for dtype in dtypes]

    results = ranks(act)
    for ys in results:
        for dtype, y in zip(dtypes, ys):
            expected = np.stack([data(r, shape, dtype) for r in range(len(results))])
            np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("row", [(), (5,), (100_000,)])
def test_all_to_all_transposes_ranks_and_rows(ranks, row):
    def act(comm):
        return comm.all_to_all(data(comm.rank, (comm.size, *row), "float32"))

    ys = ranks(act)
    xs = np.stack([data(r, (len(ys), *row), "float32") for r in range(len(ys))])
    np.testing.assert_array_equal(np.stack(ys), xs.swapaxes(0, 1))


@pytest.mark.parametrize("shape", [(), (5,), (300_000,)])
def test_broadcast_from_every_root(ranks, shape):
    def act(comm):
        wide = [
            np.repeat(data(comm.rank, shape, "float32"), 2) for _ in range(comm.size)
        ]
        return [comm.broadcast(x[::2], root) for root, x in enumerate(wide)]

    for ys in ranks(act):
        for root, y in enumerate(ys):
            np.testing.assert_array_equal(y, data(root, shape, "float32").reshape(-1))


def test_unknown_operations_and_ranks_are_refused(ranks):
    with pytest.raises(ValueError, match="expected op sum, mean, max, min or prod"):
        ranks(lambda comm: comm.all_reduce(np.ones(2), "average"))
    with pytest.raises(ValueError, match=r"broadcast: expected a rank in \[0, \d\)"):
        ranks(lambda comm: comm.broadcast(np.ones(2), root=comm.size))
