"""All-reduce algorithms, windows and communication dtypes."""

import functools

import numpy as np
import pytest

from renga import _communicators
from renga.communicators import local
from tests.communicators.operands import data, in_rank_order
from tests.rounding import rounded_to_bfloat16

RANK_ORDER_ALGORITHMS = [
    "all_gather",
    "direct",
    "recursive_doubling",
    "rabenseifner",
    "tree",
    "torus",
]
ALGORITHMS = [*RANK_ORDER_ALGORITHMS, "ring"]


@functools.lru_cache(4)  # those of one call, which all ranks compare with
def reduced(ranks, n, dtype, op):
    return in_rank_order([data(rank, n, dtype) for rank in range(ranks)], op)


def reduce_by(algorithm, dtype, size, op, comm):
    comm.set_config("all_reduce_algorithm", value=algorithm)
    return comm.all_reduce(data(comm.rank, size, dtype), op)


def assert_reduced_by(ranks, *cases):
    """That cases (algorithm, dtype, size, op), in one start, reduce in rank order."""

    def act(comm):
        return [reduce_by(*case, comm) for case in cases]

    for ys in local.run(act, ranks=ranks, shared_memory=False):
        for (algorithm, dtype, size, op), y in zip(cases, ys):
            expected = reduced(ranks, size, dtype, op)
            np.testing.assert_array_equal(y, expected, f"{algorithm} {op} {size}")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16])
def test_algorithms_combine_operands_in_rank_order(ranks):
    for dtype, op in (("float32", "sum"), ("float16", "mean")):
        cases = [(each, dtype, 1001, op) for each in RANK_ORDER_ALGORITHMS]
        assert_reduced_by(ranks, *cases)


@pytest.mark.parametrize("ranks", [2, 3, 6, 8])
@pytest.mark.parametrize("op", ["sum", "prod", "max"])
def test_ring_is_exact_for_integers(ranks, op):
    cases = [("ring", "int64", size, op) for size in (0, 1, 7, 1001)]
    assert_reduced_by(ranks, *cases)


def test_ring_gives_all_ranks_the_same_bits():
    act = functools.partial(reduce_by, "ring", "float32", 1001, "mean")
    ys = local.run(act, ranks=5, shared_memory=False)
    exact = np.mean([data(r, 1001, "float32") for r in range(5)], 0, "float64")
    for y in ys:
        np.testing.assert_array_equal(y, ys[0])
        np.testing.assert_allclose(y, exact, rtol=0, atol=2e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_long_vectors_are_reduced_in_chunks(algorithm):
    size = 3_500_000  # more than three pieces of one MiB for each of three ranks
    act = functools.partial(reduce_by, algorithm, "int32", size, "sum")
    expected = sum(data(r, size, "int32") for r in range(3))
    for y in local.run(act, ranks=3, shared_memory=False):
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "ranks, nodes", [(4, 2), (6, 3), (8, 2), (6, 2), (5, 2), (4, 4)]
)
@pytest.mark.parametrize("dtype, op", [("float32", "sum"), ("float16", "mean")])
def test_nodes_do_not_change_the_result(ranks, nodes, dtype, op):
    # In the last, more than goes between nodes at once.
    sizes = [1, 1001, 2_200_000 if (ranks, dtype) == (4, "float32") else 300_000]

    def act(comm):
        assert comm.inter_size == nodes
        return [comm.all_reduce(data(comm.rank, n, dtype), op) for n in sizes]

    for ys in local.run(act, ranks=ranks, nodes=nodes):
        for y, n in zip(ys, sizes):
            np.testing.assert_array_equal(y, reduced(ranks, n, dtype, op))


@pytest.mark.parametrize(
    "dtype, op, strided",
    [("float32", "sum", False), ("float16", "mean", True), ("int64", "max", False)],
)
def test_long_arrays(ranks, dtype, op, strided):
    sizes = [600_001, 3, 0, 500_000]  # so long that ranks may read each other's memory

    def act(comm):
        xs = [data(comm.rank, n, dtype) for n in sizes]
        if strided and comm.rank == comm.size - 1:
            xs = [np.repeat(x, 2)[::2] for x in xs]
        ys = comm.all_reduce(xs, op)
        in_place = comm.all_reduce(xs, op, out=xs)
        for y, z, n in zip(ys, in_place, sizes):
            expected = reduced(comm.size, n, dtype, op)
            np.testing.assert_array_equal(y, expected)
            np.testing.assert_array_equal(z, expected)

    ranks(act)


def test_topology_of_nodes():
    def act(comm):
        pair = comm.split(comm.rank % 2, comm.rank)
        return (comm.intra_rank, comm.intra_size, comm.inter_rank, pair.inter_size)

    places = local.run(act, ranks=4, nodes=2)
    assert places == [(0, 2, 0, 2), (1, 2, 0, 2), (0, 2, 1, 2), (1, 2, 1, 2)]


def test_unknown_algorithms_are_refused():
    with pytest.raises(
        ValueError, match="expected algorithm all_gather, direct, .* magic"
    ):
        local.run(functools.partial(reduce_by, "magic", "int8", 1, "sum"), ranks=2)


def test_whole_is_an_older_name_of_all_gather():
    act = functools.partial(reduce_by, "whole", "float32", 1001, "sum")
    expected = in_rank_order([data(r, 1001, "float32") for r in range(3)], "sum")
    for y in local.run(act, ranks=3):
        np.testing.assert_array_equal(y, expected)


def test_windows_are_reduced_in_place(ranks):
    dtypes = ["float16", "float32", "float64", "int32"]

    def reduce_window(comm, dtype):
        memory = comm.window((3, 40_000), dtype)
        memory[:] = data(comm.rank, (3, 40_000), dtype)
        comm.all_reduce([memory[2], memory[0, 7:]], out=[memory[2], memory[0, 7:]])
        return memory

    results = ranks(lambda comm: [reduce_window(comm, dtype) for dtype in dtypes])
    for i, dtype in enumerate(dtypes):
        xs = [data(r, (3, 40_000), dtype) for r in range(len(results))]
        total = in_rank_order(xs, "sum")
        for r, memories in enumerate(results):
            memory = memories[i]
            np.testing.assert_array_equal(memory[2], total[2])
            np.testing.assert_array_equal(memory[0, 7:], total[0, 7:])
            np.testing.assert_array_equal(memory[0, :7], xs[r][0, :7])
            np.testing.assert_array_equal(memory[1], xs[r][1])


def test_window_on_one_rank_only_is_refused():
    def act(comm):
        memory = comm.window(100_000)
        x = memory if comm.rank == 0 else np.empty(100_000, "float32")
        comm.all_reduce(x, out=x)

    message = "all_reduce sum float32 .* in a window .* on rank 0 and all_reduce"
    with pytest.raises(Exception, match=message):
        local.run(act, ranks=2)


def test_many_windows_are_created_and_freed(ranks):
    def act(comm):
        sums = []
        for turn in range(5):
            memory = comm.window(20_000, "float64")
            memory[:] = comm.rank + turn
            comm.all_reduce(memory, out=memory)
            sums.append(memory[-1])
        return sums

    results = ranks(act)
    size = len(results)
    for sums in results:
        assert sums == [size * (size - 1) / 2 + turn * size for turn in range(5)]


@pytest.mark.parametrize("size", [5, 300_000])
def test_16_bit_communication_dtype_is_summed_in_32_bits(ranks, size):
    dtypes = ["float16", np.float16, "bfloat16"]

    def act(comm):
        xs = [data(comm.rank, size, "float32") for _ in dtypes]
        for x, dtype in zip(xs, dtypes):
            comm.all_reduce(x, "mean", out=x, dtype=dtype)
        return xs

    for dtype, *ys in zip(dtypes, *ranks(act)):
        round16 = rounded_to_bfloat16
        if dtype != "bfloat16":
            round16 = lambda x: x.astype("float16").astype("float32")  # noqa: E731
        xs = [round16(data(r, size, "float32")) for r in range(len(ys))]
        expected = round16(in_rank_order(xs, "mean"))
        for y in ys:
            assert y.dtype == "float32"
            np.testing.assert_array_equal(y, expected)


def test_floating_communication_dtype_of_integers_is_refused(ranks):
    with pytest.raises(Exception, match="to convert between, got int32"):
        ranks(lambda comm: comm.all_reduce(np.ones(3, "int32"), dtype="float16"))
    with pytest.raises(ValueError, match="floating communication dtype, got int8"):
        ranks(lambda comm: comm.all_reduce(np.ones(3, "float32"), dtype="int8"))


def test_network_model_matches_closed_forms():
    latency, byte = 1e-5, 1e-9
    seconds = _communicators.all_reduce_seconds(64, 0, False, latency, byte)
    steps = {name: round(value / latency) for name, value in seconds.items()}
    assert steps == {
        "all_gather": 63,
        "direct": 126,
        "ring": 126,
        "recursive_doubling": 6,
        "rabenseifner": 12,
        "tree": 12,
        "torus": 2 * 7 + 2 * 3,
    }
    n = 64 << 20
    seconds = _communicators.all_reduce_seconds(64, n, False, 0.0, byte)
    assert seconds["rabenseifner"] == pytest.approx(2 * 63 / 64 * n * byte, rel=0.06)
    assert seconds["direct"] == pytest.approx(seconds["rabenseifner"])
    assert seconds["recursive_doubling"] > 2.9 * seconds["direct"]
