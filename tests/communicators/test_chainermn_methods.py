"""ChainerMN's methods: shapes that differ between ranks, any dtype, objects."""

import numpy as np
import pytest

DTYPES = ["bool", "int8", "uint16", "float16", "float32", "complex64", "datetime64[s]"]


def mine(rank, dtype="float32"):
    """An array whose shape depends on the rank; rank 0's has no axes."""
    shape = tuple(range(2, rank + 2))
    return (np.arange(np.prod(shape, dtype=int)) + rank).reshape(shape).astype(dtype)


def test_allgather(ranks):
    def act(comm):
        return [comm.allgather(mine(comm.rank, dtype)) for dtype in DTYPES]

    for results in ranks(act):
        for dtype, ys in zip(DTYPES, results):
            assert isinstance(ys, tuple)
            for r, y in enumerate(ys):
                np.testing.assert_array_equal(y, mine(r, dtype))
                assert y.dtype == dtype and y.shape == mine(r).shape


def test_bcast_needs_data_on_the_root_only(ranks):
    xs = [mine(2, dtype)[::-1, ::2] for dtype in DTYPES]

    def act(comm):
        root = comm.size - 1
        return [comm.bcast(x if comm.rank == root else None, root=root) for x in xs]

    for ys in ranks(act):
        for x, y in zip(xs, ys):
            np.testing.assert_array_equal(y, x)
            assert y.dtype == x.dtype


def test_gather(ranks):
    results = ranks(lambda comm: comm.gather(mine(comm.rank), root=comm.size - 1))
    for y, r in zip(results[-1], range(len(results))):
        np.testing.assert_array_equal(y, mine(r))
    assert all(result is None for result in results[:-1])


@pytest.mark.parametrize("as_array", [False, True])
def test_scatter(ranks, as_array):
    def act(comm):
        xs = [np.full((2, 3), r) if as_array else mine(r) for r in range(comm.size)]
        sent = np.array(xs) if as_array else tuple(xs)
        return comm.scatter(sent if comm.rank == 0 else None), xs[comm.rank]

    for y, expected in ranks(act):
        np.testing.assert_array_equal(y, expected)


def test_scatter_of_too_few_is_refused(ranks):
    def act(comm):
        if comm.rank == 0:
            with pytest.raises(ValueError, match=f"expected {comm.size} arrays"):
                comm.scatter([np.ones(1)] * (comm.size + 1))

    ranks(act)


def test_alltoall(ranks):
    def act(comm):
        return comm.alltoall([mine(comm.rank) * 10 + to for to in range(comm.size)])

    for to, ys in enumerate(ranks(act)):
        for r, y in enumerate(ys):
            np.testing.assert_array_equal(y, mine(r) * 10 + to)


def test_allreduce_does_not_change_its_argument(ranks):
    def act(comm):
        x = np.full(3, comm.rank + 1.0)
        return comm.allreduce(x), x

    results = ranks(act)
    for r, (y, x) in enumerate(results):
        np.testing.assert_array_equal(y, sum(range(1, len(results) + 1)))
        np.testing.assert_array_equal(x, r + 1)


@pytest.mark.parametrize("elements", [4, 50_000])
def test_messages_around_a_ring(ranks, elements):
    def act(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        x = np.full((2, elements), comm.rank, "float32")[:, ::-1]
        if comm.size > 1 and comm.rank % 2 == 0:
            comm.send((x, x[:1]), right, tag=3)
        y = comm.recv(left, tag=3) if comm.size > 1 else (x, x[:1])
        if comm.rank % 2 == 1:
            comm.send((x, x[:1]), right, tag=3)
        return y

    results = ranks(act)
    for r, (y, z) in enumerate(results):
        left = (r - 1) % len(results)
        np.testing.assert_array_equal(y, np.full((2, elements), left))
        np.testing.assert_array_equal(z, np.full((1, elements), left))


def test_messages_are_matched_by_tag(ranks):
    def act(comm):
        if comm.size == 1:
            return "first", "second"
        if comm.rank == 0:
            comm.send_obj("second", 1, tag=2)
            comm.send_obj("first", 1, tag=1)
        elif comm.rank == 1:
            return comm.recv_obj(0, tag=1), comm.recv_obj(0, tag=2)
        return "first", "second"

    assert set(ranks(act)) == {("first", "second")}


def test_receiving_an_array_where_an_object_was_sent_is_refused(ranks):
    def act(world):
        comm = world.split(0, world.rank)  # the object stays unread in this one
        if comm.size > 1 and comm.rank == 0:
            comm.send_obj({"a": 1}, 1, tag=0)
        elif comm.rank == 1:
            with pytest.raises(TypeError, match="expected an array, got an object"):
                comm.recv(0, tag=0)

    ranks(act)


def test_objects(ranks):
    def act(comm):
        own = {"rank": comm.rank, "data": np.arange(comm.rank)}
        return (
            comm.bcast_obj(own if comm.rank == 0 else None)["rank"],
            comm.gather_obj(comm.rank),
            comm.allgather_obj("x" * comm.rank),
            comm.scatter_obj(list("abcd")[: comm.size] if comm.rank == 0 else None),
            comm.allreduce_obj([comm.rank]),
            comm.bcast_obj("y" * 3_000_000 if comm.rank == 0 else None),
        )

    results = ranks(act)
    everyone = list(range(len(results)))
    for r, (first, gathered, texts, letter, joined, long) in enumerate(results):
        assert first == 0
        assert gathered == (everyone if r == 0 else None)
        assert texts == ["x" * i for i in everyone]
        assert letter == "abcd"[r]
        assert joined == everyone
        assert long == "y" * 3_000_000


def test_tuples(ranks):
    def act(comm):
        own = (np.full(comm.rank, 2.0), np.arange(3) + comm.rank)
        return (
            comm.allreduce((np.ones(2), np.arange(3))),
            comm.bcast(own if comm.rank == comm.size - 1 else None, root=comm.size - 1),
            comm.allgather(own),
            comm.gather(own),
        )

    results = ranks(act)
    size = len(results)
    for r, (total, last, everyone, gathered) in enumerate(results):
        np.testing.assert_array_equal(total[0], [size, size])
        np.testing.assert_array_equal(total[1], np.arange(3) * size)
        assert len(last[0]) == size - 1 and last[1][0] == size - 1
        assert [len(first) for first, _ in everyone] == list(range(size))
        assert (gathered is None) == (r > 0)
    assert [second[0] for _, second in results[0][3]] == list(range(size))


def test_allreduce_of_dtypes_that_the_core_lacks(ranks):
    numbers = np.random.RandomState(3).randint(0, 1 << 16, (4, 2, 5)) * (1 + 2j)
    operands = [numbers.astype(dtype) for dtype in ("complex64", "complex128")]
    operands += [numbers.real.astype(dtype) for dtype in ("uint16", "uint64")]

    def act(comm):
        return [comm.allreduce(xs[comm.rank, :, ::-1]) for xs in operands]

    results = ranks(act)
    for ys in results:
        for xs, y in zip(operands, ys):
            assert y.dtype == xs.dtype
            expected = xs[: len(results), :, ::-1].sum(0, dtype=xs.dtype)
            np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_arrays_of_objects_are_refused(ranks):
    with pytest.raises(TypeError, match="methods that end in _obj"):
        ranks(lambda comm: comm.allgather(np.array([object()])))


def test_split_by_color_in_the_order_of_key(ranks):
    def act(comm):
        half = comm.split(comm.rank % 2, -comm.rank)
        alone = comm.split(comm.rank, 0)
        none = comm.split(None if comm.rank == 0 else 7, 0)
        assert (none is None) == (comm.rank == 0)
        return half.rank, half.allgather_obj(comm.rank), alone.size

    size = len(results := ranks(act))
    for r, (rank, members, alone) in enumerate(results):
        assert members == sorted(
            (m for m in range(size) if m % 2 == r % 2), reverse=True
        )
        assert members[rank] == r
        assert alone == 1


def test_settings(ranks):
    def act(comm):
        with pytest.raises(ValueError, match="Unknown config"):
            comm.set_config("colour", value="red")
        comm.set_config("allreduce_grad_dtype", value=np.float16)
        with comm.config_scope():
            comm.mode = 3
        result = comm.get_config("allreduce_grad_dtype"), comm.get_config("mode")
        comm.set_config("allreduce_grad_dtype", value=None)
        with pytest.raises(KeyError):
            comm.get_config("colour")
        return result

    assert all(result == (np.float16, 3) for result in ranks(act))
