"""Gradients through collectives against closed forms in float64.

Each rank's loss is a sum over what it gets, weighted by constants of its own and cubed,
so that first and second derivatives of the sum of all losses are known.
"""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.distributed import functions as DF


def values(*key):
    return np.random.default_rng(key).uniform(0.5, 1.5, (2, 3))


def weight(i, j):
    """The constants of rank ``i`` for what comes from, or has index, ``j``."""
    return values(i, j, 1)


def loss_of(comm, ys, index=None):
    """Σ w y³ over ``ys``, which are numbered unless ``index`` is given."""
    numbers = range(len(ys)) if index is None else [index]
    parts = [F.sum(weight(comm.rank, j) * y**3) for j, y in zip(numbers, ys)]
    return sum(parts[1:], parts[0])


def derivatives(comm, loss, xs):
    """Gradients of the sum of all losses, and of half the sum of their squares."""
    first = renga.grad([loss], xs, enable_double_backprop=True)
    half_squares = sum(F.sum(gx**2) for gx in first) * 0.5
    half_squares.backward()
    return [gx.array for gx in first], [x.grad for x in xs]


def allreduce(comm, xs):
    return loss_of(comm, [DF.allreduce(comm, xs[0])])


def allgather(comm, xs):
    return loss_of(comm, DF.allgather(comm, xs[0]))


def alltoall(comm, xs):
    return loss_of(comm, DF.alltoall(comm, xs))


def reduce_scatter(comm, xs):
    return loss_of(comm, [DF.reduce_scatter(comm, xs)])


def check(results, expected_first, expected_second):
    for rank, (first, second) in enumerate(results):
        for j, (gx, ggx) in enumerate(zip(first, second)):
            np.testing.assert_allclose(gx, expected_first(rank, j), rtol=1e-12)
            np.testing.assert_allclose(ggx, expected_second(rank, j), rtol=1e-12)


def run(ranks, function, count):
    def on_rank(comm):
        xs = [renga.Variable(values(comm.rank, j)) for j in range(count(comm))]
        return derivatives(comm, function(comm, xs), xs)

    return ranks(on_rank)


def test_allreduce(ranks):
    results = run(ranks, allreduce, lambda comm: 1)
    p = len(results)
    total = sum(values(r, 0) for r in range(p))
    w = sum(weight(r, 0) for r in range(p))
    # L = Σ w s³ has gradient 3 w s² on each of p ranks: half their squares is
    # p (3 w s²)² / 2, whose gradient is 18 p w² s³.
    check(results, lambda r, j: 3 * w * total**2, lambda r, j: 18 * p * w**2 * total**3)


def test_allgather(ranks):
    results = run(ranks, allgather, lambda comm: 1)
    p = len(results)

    def w(rank):
        return sum(weight(i, rank) for i in range(p))

    check(
        results,
        lambda r, j: 3 * w(r) * values(r, 0) ** 2,
        lambda r, j: 18 * w(r) ** 2 * values(r, 0) ** 3,
    )


def test_alltoall(ranks):
    check(
        run(ranks, alltoall, lambda comm: comm.size),
        lambda r, j: 3 * weight(j, r) * values(r, j) ** 2,
        lambda r, j: 18 * weight(j, r) ** 2 * values(r, j) ** 3,
    )


def test_reduce_scatter(ranks):
    results = run(ranks, reduce_scatter, lambda comm: comm.size)
    p = len(results)

    def total(j):
        return sum(values(r, j) for r in range(p))

    check(
        results,
        lambda r, j: 3 * weight(j, 0) * total(j) ** 2,
        lambda r, j: 18 * p * weight(j, 0) ** 2 * total(j) ** 3,
    )


def root_of(comm):
    return comm.size - 1


def test_bcast(ranks):
    def on_rank(comm):
        # Off the root the input is a delegate, by which it takes part in what follows.
        at_root = comm.rank == root_of(comm)
        x = values(7, 0) if at_root else np.empty(0, "float32")
        x = renga.Variable(x)
        loss = loss_of(comm, [DF.bcast(comm, x, root_of(comm))])
        return derivatives(comm, loss, [x])

    results = ranks(on_rank)
    w = sum(weight(r, 0) for r in range(len(results)))
    x = values(7, 0)
    for first, second in results[:-1]:
        assert first[0].shape == second[0].shape == (0,)
    check(results[-1:], lambda *_: 3 * w * x**2, lambda *_: 18 * w**2 * x**3)


def test_gather(ranks):
    def on_rank(comm):
        x = renga.Variable(values(comm.rank, 0))
        ys = DF.gather(comm, x, root_of(comm))
        at_root = comm.rank == root_of(comm)
        assert isinstance(ys, tuple) == at_root
        loss = loss_of(comm, ys) if at_root else ys
        return derivatives(comm, loss, [x])

    results = ranks(on_rank)
    root = len(results) - 1
    check(
        results,
        lambda r, j: 3 * weight(root, r) * values(r, 0) ** 2,
        lambda r, j: 18 * weight(root, r) ** 2 * values(r, 0) ** 3,
    )


def test_scatter(ranks):
    def on_rank(comm):
        at_root = comm.rank == root_of(comm)
        count = comm.size if at_root else 1
        xs = [renga.Variable(values(7, j)) for j in range(count)]
        given = xs if at_root else xs[0]
        loss = loss_of(comm, [DF.scatter(comm, given, root_of(comm))])
        return derivatives(comm, loss, xs)

    results = ranks(on_rank)
    for first, _ in results[:-1]:
        # What is not sent has no influence.
        np.testing.assert_array_equal(first[0], np.zeros((2, 3)))
    check(
        results[-1:],
        lambda _, j: 3 * weight(j, 0) * values(7, j) ** 2,
        lambda _, j: 18 * weight(j, 0) ** 2 * values(7, j) ** 3,
    )


def test_shapes_and_dtypes_may_differ_between_ranks(ranks):
    def on_rank(comm):
        x = renga.Variable(np.full((comm.rank, 2), 3, "float32"))
        ys = DF.allgather(comm, x)
        loss = sum(F.sum(y * (j + 1)) for j, y in enumerate(ys))
        loss.backward()
        return [y.shape for y in ys], x.grad

    results = ranks(on_rank)
    p = len(results)
    for rank, (shapes, gx) in enumerate(results):
        assert shapes == [(r, 2) for r in range(p)]
        np.testing.assert_array_equal(gx, np.full((rank, 2), p * (rank + 1), "float32"))


def test_inputs_of_some_ranks_need_no_gradient(ranks):
    def on_rank(comm):
        x = np.full(3, comm.rank + 1.0)
        x = renga.Variable(x) if comm.rank == 0 else x
        y = DF.allreduce(comm, x)
        F.sum(y * y).backward()
        return y.array, x.grad if comm.rank == 0 else None

    results = ranks(on_rank)
    p = len(results)
    total = p * (p + 1) / 2
    for y, _ in results:
        np.testing.assert_array_equal(y, np.full(3, total))
    np.testing.assert_allclose(results[0][1], np.full(3, 2 * p * total))


def test_outputs_that_the_loss_leaves_out_have_zero_gradients(ranks):
    def on_rank(comm):
        xs = [renga.Variable(np.ones(2)) for _ in range(comm.size)]
        F.sum(DF.alltoall(comm, xs)[0]).backward()
        return [x.grad for x in xs]

    for rank, grads in enumerate(ranks(on_rank)):
        for grad in grads:
            np.testing.assert_array_equal(grad, np.full(2, float(rank == 0)))


def test_nothing_is_recorded_without_backprop(ranks):
    def on_rank(comm):
        with renga.no_backprop_mode():
            return DF.allreduce(comm, renga.Variable(np.ones(2))).creator

    assert not any(ranks(on_rank))


@pytest.mark.parametrize("name", ["alltoall", "reduce_scatter"])
def test_wrong_number_of_variables(ranks, name):
    def on_rank(comm):
        for xs in ([np.ones(2)] * (comm.size + 1), []):
            expected = f"{name}: expected {comm.size} arrays, got {len(xs)}"
            with pytest.raises(ValueError, match=expected):
                getattr(DF, name)(comm, xs)
        return True

    assert all(ranks(on_rank))
