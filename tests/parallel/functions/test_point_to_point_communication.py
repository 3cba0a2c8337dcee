"""Networks that lie on several ranks against the same on one, in closed form."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.communicators import local
from renga.distributed import functions as DF

X = np.random.default_rng(0).uniform(0.5, 1.5, (2, 3))


def ring(comm, x):
    """Rank 0's x⁸…: each rank squares what comes; the last gives it back to rank 0."""
    last = comm.size - 1
    if comm.rank == 0:
        delegate = DF.send(x**2, comm, 1)
        return F.sum(DF.recv(comm, last, delegate, tag=last))
    y = DF.recv(comm, comm.rank - 1, x, tag=comm.rank - 1)
    return DF.send(y**2, comm, (comm.rank + 1) % comm.size, tag=comm.rank)


def test_ring(several_ranks):
    def on_rank(comm):
        # Elsewhere the input is a delegate, by which double backward comes through.
        x = renga.Variable(X if comm.rank == 0 else np.empty(0, "float32"))
        loss = ring(comm, x)
        (gx,) = renga.grad([loss], [x], enable_double_backprop=True)
        half_square = F.sum(gx**2) * 0.5 if comm.rank == 0 else gx
        half_square.backward()
        return gx.array, x.grad

    results = several_ranks(on_rank)
    n = 2 ** len(results)
    gx, ggx = results[0]
    np.testing.assert_allclose(gx, n * X ** (n - 1), rtol=1e-12)
    np.testing.assert_allclose(ggx, n**2 * (n - 1) * X ** (2 * n - 3), rtol=1e-12)


def test_tuples_and_a_part_without_gradient(several_ranks):
    def on_rank(comm):
        x, z = renga.Variable(X), renga.Variable(X[0].astype("float32"))
        if comm.rank == 0:
            DF.send((x, z), comm, 1, tag=5).backward()
            return x.grad, z.grad
        if comm.rank == 1:
            y, _ = DF.recv(comm, 0, tag=5)
            F.sum(y**2).backward()
        return None

    gx, gz = several_ranks(on_rank)[0]
    np.testing.assert_allclose(gx, 2 * X)
    np.testing.assert_array_equal(gz, np.zeros(3, "float32"))


def test_a_single_variable_as_a_tuple(several_ranks):
    def on_rank(comm):
        if comm.rank == 0:
            DF.send((X,), comm, 1)
        if comm.rank == 1:
            return DF.recv(comm, 0, force_tuple=True)
        return None

    (y,) = several_ranks(on_rank)[1]
    np.testing.assert_array_equal(y.array, X)


def test_an_empty_tuple(several_ranks):
    def on_rank(comm):
        x = renga.Variable(X)
        if comm.rank == 0:
            delegate = DF.send((), comm, 1)
            F.sum(DF.pseudo_connect(delegate, x)[0] ** 2).backward()
            return x.grad
        if comm.rank == 1:
            assert DF.recv(comm, 0) == ()
            F.sum(x).backward()
        return None

    np.testing.assert_allclose(several_ranks(on_rank)[0], 2 * X)


def test_pseudo_connect_lets_one_loss_reach_what_was_sent(several_ranks):
    def on_rank(comm):
        x = renga.Variable(X)
        if comm.rank == 0:
            delegate = DF.send(x**2, comm, 1)
            own, twice = DF.pseudo_connect(delegate, x * 3, x * 2)
            F.sum(own + twice).backward()
            return x.grad
        if comm.rank == 1:
            F.sum(DF.recv(comm, 0) * 5).backward()
        return None

    np.testing.assert_allclose(several_ranks(on_rank)[0], 10 * X + 5)


def test_pseudo_connect_of_one_thing():
    x = renga.Variable(X)
    (same,) = DF.pseudo_connect(None, x)
    assert same is x
    assert DF.pseudo_connect(x) == ()
    (y,) = DF.pseudo_connect(renga.Variable(np.ones((2, 2))), x)
    F.sum(y**2).backward()
    np.testing.assert_allclose(x.grad, 2 * X)


def test_a_rank_sends_nothing_to_itself(ranks):
    def on_rank(comm):
        with pytest.raises(ValueError, match="send: expected another rank"):
            DF.send(X, comm, comm.rank)
        with pytest.raises(ValueError, match="recv: expected another rank"):
            DF.recv(comm, comm.rank)
        return True

    assert all(ranks(on_rank))


def test_delegates_need_not_be_passed_on(several_ranks):
    """Rank 0's x to all others and back; its own loss is of something else."""

    def on_rank(comm):
        x = renga.Variable(X)
        if comm.rank == 0:
            for rank in range(1, comm.size):
                DF.send(x * rank, comm, rank)
            for rank in range(1, comm.size):
                DF.recv(comm, rank)
            F.sum(x * 7).backward()
            return x.grad
        y = DF.recv(comm, 0)
        DF.send(y * 2, comm, 0)
        F.sum(y**2).backward()
        return None

    results = several_ranks(on_rank)
    # L = sum over ranks of (r x)² + 7 x.
    squares = sum(rank**2 for rank in range(1, len(results)))
    np.testing.assert_allclose(results[0], 2 * squares * X + 7, rtol=1e-12)


def test_delegates_need_not_be_passed_on_in_double_backward(several_ranks):
    def on_rank(comm):
        x = renga.Variable(X)
        if comm.rank == 0:
            DF.send(x**2, comm, 1)
            loss = F.sum(x)
        elif comm.rank == 1:
            loss = F.sum(DF.recv(comm, 0) ** 2)
        else:
            return None
        # Rank 1's x has nothing to do with its loss, and yet it has to come back.
        (gx,) = renga.grad([loss], [x], enable_double_backprop=True)
        again = F.sum(gx**2) * 0.5 if comm.rank == 0 else renga.Variable(np.zeros(()))
        again.backward()
        return (gx.array, x.grad) if comm.rank == 0 else gx

    results = several_ranks(on_rank)
    gx, ggx = results[0]
    # L = x⁴ + x; the gradient of half the square of L' is L' L''.
    np.testing.assert_allclose(gx, 4 * X**3 + 1, rtol=1e-12)
    np.testing.assert_allclose(ggx, (4 * X**3 + 1) * 12 * X**2, rtol=1e-12)
    assert results[1] is None


def test_the_opposite_orders_of_two_ranks_do_not_deadlock(several_ranks):
    def on_rank(comm):
        if comm.rank > 1:
            return None
        other = 1 - comm.rank
        x = renga.Variable(np.full(1 << 18, comm.rank + 1.0))  # not buffered
        if comm.rank == 0:
            DF.send(x, comm, other)
            y = DF.recv(comm, other)
        else:
            y = DF.recv(comm, other)
            DF.send(x, comm, other)
        # Rank 0's losses use the two in the other order.
        loss = F.sum(x * y) if comm.rank == 0 else F.sum(y * x)
        loss.backward()
        return x.grad[0]

    results = several_ranks(on_rank)
    # Each x is in both losses, multiplied by the other's.
    assert results[:2] == [4.0, 2.0]


def test_graphs_without_a_way_back_are_told_when_time_is_up(monkeypatch):
    monkeypatch.setenv("RENGA_TIMEOUT", "0.2")

    def on_rank(comm):
        if comm.rank == 1:
            DF.recv(comm, 0)
            return ""
        DF.send(X, comm, 1)  # no backward pass reaches it
        with pytest.raises(TimeoutError) as caught:
            DF.recv(comm, 1)
        return str(caught.value)

    text = local.run(on_rank, ranks=2)[0]
    assert "no backward() has reached 1 communications" in text
    assert "Send called at" in text and "test_point_to_point" in text
