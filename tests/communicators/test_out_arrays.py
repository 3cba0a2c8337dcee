"""Arrays for results: which are refused, and that those are not written."""

import numpy as np
import pytest

import renga
from renga.utils.type_check import InvalidType
from tests.layouts import read_only, unaligned


def of_zero_strides(x):
    y = np.broadcast_to(x[..., :1], x.shape)
    y.flags.writeable = True
    return y


def on_disk(x):
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(x.tobytes())
        file.flush()
        return np.memmap(file.name, x.dtype, "r", shape=x.shape)


# Invalid arrays for results, and the errors.
BAD = {
    "read-only": (read_only, ValueError, "may be written to"),
    "on disk": (on_disk, ValueError, "may be written to"),
    "byte-swapped": (lambda x: x.astype(">f8"), ValueError, "native byte order"),
    "unaligned": (unaligned, ValueError, "aligned"),
    "of zero strides": (of_zero_strides, ValueError, "do not overlap"),
    "a list": (lambda x: x.tolist(), TypeError, "expected a numpy.ndarray"),
    "a number": (lambda x: 3.0, TypeError, "expected a numpy.ndarray"),
    "of objects": (lambda x: x.astype(object), TypeError, "dtype object"),
    "of another dtype": (lambda x: x.astype("f4"), InvalidType, "expected .*result"),
    "of integers": (lambda x: x.astype("i8"), InvalidType, "expected .*result"),
    "of another shape": (lambda x: np.zeros((7, 5)), InvalidType, "expected .*result"),
    "without axes": (lambda x: np.zeros(()), InvalidType, "expected .*result"),
}
# The shape of the result for rows of 4, and the call.
CALLS = {
    "all_reduce": (lambda n: (4,), lambda comm, x, y: comm.all_reduce(x[0], out=y)),
    "all_reduce max": (
        lambda n: (4,),
        lambda comm, x, y: comm.all_reduce([x[0]], "max", out=[y]),
    ),
    "reduce_scatter": (
        lambda n: (4,),
        lambda comm, x, y: comm.reduce_scatter(x, out=y),
    ),
    "all_gather": (lambda n: (n, 4), lambda comm, x, y: comm.all_gather(x[0], out=y)),
    "all_to_all": (lambda n: (n, 4), lambda comm, x, y: comm.all_to_all(x, out=y)),
}


@pytest.mark.parametrize("call", CALLS)
def test_invalid_out_is_refused_and_not_written(ranks, call):
    shape_of, act_on = CALLS[call]

    def act(comm):
        x = np.full((comm.size, 4), 5.0)
        for name, (make, kind, message) in BAD.items():
            y = make(np.zeros(shape_of(comm.size)))
            before = np.array(y)
            with pytest.raises(kind, match=message):
                act_on(comm, x, y)
            np.testing.assert_array_equal(np.array(y), before, name)
        # A result that can be written into, with gaps.
        good = np.zeros((*shape_of(comm.size), 2))[..., 1]
        assert act_on(comm, x, good) is not None
        return good

    for y in ranks(act):
        assert (y > 0).all()


@pytest.mark.parametrize("bad", ["read-only", "on disk", "byte-swapped", "unaligned"])
def test_broadcast_into_invalid_array_is_refused(ranks, bad):
    make, kind, message = BAD[bad]

    def act(comm):
        x = make(np.full(4, float(comm.rank)))
        if comm.rank == 0:  # only reads
            assert comm.broadcast(x, 0) is x
        else:
            with pytest.raises(kind, match=message):
                comm.broadcast(x, 0)
            comm.broadcast(np.zeros(4), 0)
        return x

    for rank, x in enumerate(ranks(act)):
        np.testing.assert_array_equal(x, rank)


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("bad", ["read-only", "on disk"])
def test_receiving_into_invalid_array_is_refused(ranks, bad, wait):
    make, kind, message = BAD[bad]

    def act(comm):
        y = make(np.zeros(3))
        with pytest.raises(kind, match=message):
            comm.recv(0, out=y, wait=wait)
        with pytest.raises(TypeError, match=r"numpy\.ndarray"):
            comm.recv(0, out=[1, 2], wait=wait)

    ranks(act)


@pytest.mark.parametrize("wait", [True, False])
def test_message_of_another_form_is_not_written_to_out(ranks, wait):
    others = [
        (np.arange(4.0), r"float64 \(4,\)"),
        (np.arange(3, dtype="i8"), r"int64 \(3,\)"),
        (np.arange(3.0).reshape(1, 3), r"float64 \(1, 3\)"),
        (np.arange(100_000.0), r"float64 \(100000,\)"),
        (np.arange(1.0), r"float64 \(1,\)"),
        (np.zeros(0), r"float64 \(0,\)"),
    ]

    def act(world):
        comm = world.split(0, world.rank)
        for sent, named in others:
            out = np.full(3, 7.0)
            if comm.size > 1 and comm.rank == 0:
                comm.send(sent, 1, wait=False)
                comm.send(np.full(3, 2.0), 1)
            elif comm.rank == 1:
                text = rf"expected float64 \(3,\), got {named}"
                with pytest.raises(TypeError, match=text):
                    work = comm.recv(0, out=out, wait=wait)
                    work.wait()
                assert (out == 7).all()
                assert comm.recv(0, out=out).tolist() == [2, 2, 2]
            comm.barrier()

    ranks(act)


def test_results_that_overlap_operands(ranks):
    def act(comm):
        size = comm.size
        memory = np.arange(300_001.0) + comm.rank
        shifted = comm.all_reduce(memory[:-1], out=memory[1:]).copy()
        twice = np.ones(40_000)
        comm.all_reduce([twice, twice], out=[twice, twice])
        square = np.arange(float(size * 50_000)).reshape(size, -1) + 100 * comm.rank
        exchanged = comm.all_to_all(square, out=square).copy()
        rows = np.zeros((size, 5))
        rows[comm.rank] = comm.rank
        comm.all_gather(rows[comm.rank], out=rows)
        sums = np.arange(float(size * 4)).reshape(size, 4)
        comm.reduce_scatter(sums, out=sums[0])
        mixed = np.full(3, 1 + 2j)
        comm.all_reduce(mixed, out=mixed)
        return shifted, twice[0], exchanged, rows, sums[0], mixed[0]

    results = ranks(act)
    size = len(results)
    total = sum(range(size))
    squares = [
        np.arange(float(size * 50_000)).reshape(size, -1) + 100 * r for r in range(size)
    ]
    for rank, (shifted, twice, exchanged, rows, sums, mixed) in enumerate(results):
        np.testing.assert_array_equal(shifted, size * np.arange(300_000.0) + total)
        assert twice == size
        np.testing.assert_array_equal(exchanged, [square[rank] for square in squares])
        np.testing.assert_array_equal(rows[:, 0], range(size))
        np.testing.assert_array_equal(sums, size * (np.arange(4.0) + 4 * rank))
        assert mixed == size * (1 + 2j)


@pytest.mark.parametrize("wait", [True, False])
def test_results_may_be_variables(ranks, wait):
    def act(comm):
        size = comm.size
        rows = np.arange(3.0 * size).reshape(size, 3) + 10 * comm.rank

        def result(*shape):
            return renga.Variable(np.zeros(shape))

        found = [
            comm.all_gather(rows[0], out=result(size, 3), wait=wait),
            comm.all_to_all(rows, out=result(size, 3), wait=wait),
            comm.reduce_scatter(rows, out=result(3), wait=wait),
            comm.broadcast(renga.Variable(rows[-1].copy()), size - 1, wait=wait),
        ]
        found = found if wait else [work.wait() for work in found]
        assert all(isinstance(y, renga.Variable) for y in found)
        return [y.array.copy() for y in found]

    results = ranks(act)
    size = len(results)
    of_rank_0 = np.arange(3.0 * size).reshape(size, 3)
    places = 10.0 * np.arange(size)[:, None]
    for rank, (gathered, exchanged, total, last) in enumerate(results):
        np.testing.assert_array_equal(gathered, of_rank_0[0] + places)
        np.testing.assert_array_equal(exchanged, of_rank_0[rank] + places)
        np.testing.assert_array_equal(total, size * of_rank_0[rank] + places.sum())
        np.testing.assert_array_equal(last, of_rank_0[-1] + places[-1])


def test_operands_of_foreign_byte_order(ranks):
    dtypes = [">f4", ">i2", ">u4", ">u2", ">c8"]

    def act(comm):
        xs = [(np.arange(6) + comm.rank).astype(dtype) for dtype in dtypes]
        return [(comm.all_reduce(x), comm.allgather(x)[-1]) for x in xs]

    results = ranks(act)
    expected = sum(np.arange(6) + r for r in range(len(results)))
    for result in results:
        for dtype, (total, last) in zip(dtypes, result):
            np.testing.assert_array_equal(total, expected)
            assert total.dtype == np.dtype(dtype).newbyteorder("=")
            np.testing.assert_array_equal(last, np.arange(6) + len(results) - 1)


def test_out_with_overlapping_elements_is_refused(ranks):
    def act(comm):
        memory = np.zeros(20)
        sliding = np.lib.stride_tricks.as_strided(memory, (3, 4), (8, 8))
        with pytest.raises(ValueError, match=r"do not overlap.*strides \(8, 8\)"):
            comm.all_reduce(np.ones((3, 4)), out=sliding)
        for view in (
            memory[::-2],
            memory.reshape(4, 5).T,
            np.diagonal(np.ones((4, 4))),
        ):
            view = view if view.flags.writeable else view.copy()
            comm.all_reduce(np.ones(view.shape), out=view)
            assert (view == comm.size).all()

    ranks(act)
