"""What virtual ranks compute and receive, against NumPy."""

import gc

import numpy as np
import pytest

from renga import Variable, _core
from renga.communicators import simulated
from renga.communicators.simulated import Machine
from renga.utils.type_check import InvalidType
from tests.communicators.operands import data, in_rank_order

SIZES = [1, 2, 3, 4, 8]


def run(function, ranks, **machine):
    return simulated.run(function, ranks, Machine(**machine)).results


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("op", ["sum", "mean", "max", "prod"])
def test_reductions_are_in_rank_order(ranks, dtype, op):
    op = "min" if (dtype, op) == ("int32", "mean") else op

    def act(comm):
        row = data(comm.rank, (comm.size, 40), dtype)
        return comm.all_reduce(row, op), comm.reduce_scatter(row, op)

    expected = in_rank_order([data(r, (ranks, 40), dtype) for r in range(ranks)], op)
    for rank, (total, part) in enumerate(run(act, ranks)):
        np.testing.assert_array_equal(total, expected)
        np.testing.assert_array_equal(part, expected[rank])


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("wait", [True, False])
def test_collectives_that_copy(ranks, wait):
    def act(comm):
        x = data(comm.rank, (comm.size, 3), "float32")
        results = [
            comm.all_gather(x, wait=wait),
            comm.all_to_all(x, wait=wait),
            comm.broadcast(x.copy(), comm.size - 1, wait=wait),
        ]
        return results if wait else [work.wait() for work in results]

    xs = np.stack([data(r, (ranks, 3), "float32") for r in range(ranks)])
    for rank, (gathered, exchanged, last) in enumerate(run(act, ranks)):
        np.testing.assert_array_equal(gathered, xs)
        np.testing.assert_array_equal(exchanged, xs[:, rank])
        np.testing.assert_array_equal(last, xs[-1])


@pytest.mark.parametrize("ranks", SIZES)
def test_arrays_and_objects_that_differ_between_ranks(ranks):
    def act(comm):
        root = comm.size // 2
        here = comm.rank == root
        xs = [np.full(r + 1, comm.rank) for r in range(comm.size)]
        return (
            comm.allgather(xs[comm.rank]),
            comm.alltoall(xs),
            comm.gather(xs[0], root),
            comm.scatter(xs if here else None, root),
            comm.bcast((xs[0], xs[-1]) if here else None, root=root),
            comm.allreduce_obj([comm.rank]),
            comm.scatter_obj(list(range(comm.size)) if here else None, root),
        )

    root = ranks // 2
    results = run(act, ranks)
    for rank, (gathered, exchanged, at_root, own, both, ranks_, item) in enumerate(
        results
    ):
        for r in range(ranks):
            np.testing.assert_array_equal(gathered[r], np.full(r + 1, r))
            np.testing.assert_array_equal(exchanged[r], np.full(rank + 1, r))
        assert (at_root is None) == (rank != root)
        np.testing.assert_array_equal(own, np.full(rank + 1, root))
        assert [x.tolist() for x in both] == [[root], [root] * ranks]
        assert ranks_ == list(range(ranks)) and item == rank
    np.testing.assert_array_equal(results[root][2], np.arange(ranks)[:, None])


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_messages_keep_their_order_by_source_and_tag(ranks):
    """Many in flight, received in another order of tags, posted ahead or not."""

    def act(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        ahead = [np.empty(2) for _ in range(3)]
        works = [comm.recv(left, 7, out=out, wait=False) for out in ahead]
        for i in range(3):
            for tag in (5, 6, 7):
                x = np.array([comm.rank, 10.0 * tag + i])
                comm.send(x, right, tag, wait=False)
                x[:] = -1  # what was sent is what it was then
        late = [comm.recv(left, tag) for tag in (6, 5) for _ in range(3)]
        return [*late, *(work.wait() for work in works[::-1])]

    numbers = [60, 61, 62, 50, 51, 52, 72, 71, 70]
    for rank, received in enumerate(run(act, ranks)):
        expected = [[(rank - 1) % ranks, number] for number in numbers]
        np.testing.assert_array_equal(received, expected)


@pytest.mark.parametrize("intra_size", [1, 2, 4])
def test_groups_have_their_own_ranks_messages_and_nodes(intra_size):
    def act(comm):
        odd = comm.split(comm.rank % 2, -comm.rank)
        half = comm.split(comm.rank // 4, comm.rank)
        none = comm.split(None if comm.rank else 1, 0)
        comm.send_obj(("all", comm.rank), (comm.rank + 1) % 8, 1)
        odd.send_obj(("odd", comm.rank), (odd.rank + 1) % 4, 1)
        received = odd.recv_obj((odd.rank - 1) % 4, 1)
        whole = comm.recv_obj((comm.rank - 1) % 8, 1)
        nodes = half.intra_size, half.inter_size, half.intra_rank, half.inter_rank
        total = half.all_reduce(np.ones(1) * comm.rank)[0]
        return odd.rank, received, whole, nodes, total, none is None

    for rank, result in enumerate(run(act, 8, intra_size=intra_size)):
        place, received, whole, nodes, total, is_none = result
        assert place == 3 - rank // 2
        assert received == ("odd", (rank + 2) % 8)
        assert whole == ("all", (rank - 1) % 8)
        own = rank % 4
        inside = own % intra_size, own // intra_size
        assert nodes == (intra_size, 4 // intra_size, *inside)
        assert total == (6 if rank < 4 else 22)
        assert is_none == (rank > 0)


def test_calls_that_differ_are_refused_on_all_ranks():
    def act(comm):
        with pytest.raises(InvalidType) as raised:
            if comm.rank == 2:
                comm.all_reduce(np.ones(3, "f4"), wait=False).wait()
            else:
                comm.all_reduce(np.ones(3), wait=False).wait()
        return str(raised.value), comm.all_reduce(np.ones(1))[0]

    for text, total in run(act, 3):
        assert "all_reduce: expected the same call on every rank" in text
        assert "all_reduce sum float64 (3,) at" in text and "on rank 0" in text
        assert "all_reduce sum float32 (3,) at" in text and "on rank 2" in text
        assert "test_virtual_results.py:" in text
        assert total == 3


def test_a_message_of_another_size_is_refused():
    def act(comm):
        if comm.rank == 0:
            comm.native.send([np.ones(3)], 1, 4)
        else:
            with pytest.raises(InvalidType, match="expected 16 bytes, got 24"):
                comm.native.receive([np.ones(2)], 0, 4)

    run(act, 2)


def test_a_dropped_receive_does_not_take_a_later_message():
    def act(comm):
        if comm.rank == 1:
            comm.recv(0, out=np.empty(2), wait=False)
            gc.collect()
            comm.barrier()
            return comm.recv(0).tolist()
        comm.barrier()
        return comm.send(np.arange(3.0), 1)

    assert run(act, 2)[1] == [0, 1, 2]


@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 4), (0, 2)])
def test_messages_of_bfloat16_numbers(shape):
    """Variables of numbers that NumPy lacks, by two bytes each."""
    x = np.random.RandomState(0).normal(size=shape).astype("f")

    def act(comm):
        empty = _core.empty_variable(shape, "bfloat16", _core.host_name())
        if comm.rank == 0:
            comm.native.send([_core.in_dtype_of(Variable(x), empty)], 1, 5)
        else:
            comm.native.receive([empty], 0, 5)
        return empty.array, comm.traffic.bytes

    (_, sent), (found, _) = run(act, 2)
    bits = x.view("u4") + np.uint32(0x7FFF) + ((x.view("u4") >> 16) & 1)  # to nearest
    np.testing.assert_array_equal(found, (bits & 0xFFFF0000).astype("u4").view("f"))
    assert sent == 2 * x.size
