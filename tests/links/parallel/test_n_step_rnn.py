"""A recurrent network whose steps lie on several ranks, against the same on one."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed.links import create_multi_node_n_step_rnn

LAYERS, IN, OUT, BATCH, STEPS = 2, 3, 4, 2, 3
KINDS = [L.NStepRNNTanh, L.NStepRNNReLU, L.NStepGRU, L.NStepLSTM]


def make(kind):
    link = kind(LAYERS, IN, OUT, 0.0)
    random = np.random.RandomState(0)
    for _, param in sorted(link.namedparams()):
        param.array = random.uniform(-1, 1, param.shape)
    return link


def sequences(rank):
    random = np.random.RandomState(rank + 10)
    return [random.uniform(-1, 1, (STEPS, IN)) for _ in range(BATCH)]


def weights(rank, shape):
    return np.random.RandomState(rank + 20).uniform(-1, 1, shape)


def gradients(link, xs):
    return {n: p.grad for n, p in link.namedparams()}, [x.grad for x in xs]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_on_all_ranks_are_those_of_one(ranks, kind):
    def on_rank(comm):
        link = make(kind)
        before = comm.rank - 1 if comm.rank > 0 else None
        after = comm.rank + 1 if comm.rank + 1 < comm.size else None
        rnn = create_multi_node_n_step_rnn(link, comm, before, after)
        xs = [renga.Variable(x) for x in sequences(comm.rank)]
        *states, ys, delegate = rnn(xs)
        assert (delegate is None) == (after is None)
        assert len(states) == link.n_cells
        loss = sum(F.sum(y**2 * weights(comm.rank, y.shape)) for y in ys)
        rnn.cleargrads()
        loss.backward()
        return [y.array for y in ys], *gradients(link, xs)

    results = ranks(on_rank)
    size = len(results)
    link = make(kind)
    parts = [[renga.Variable(x) for x in sequences(r)] for r in range(size)]
    *_, ys = link(*[None] * link.n_cells, [F.concat(x, axis=0) for x in zip(*parts)])
    loss = 0
    for rank in range(size):
        span = slice(rank * STEPS, (rank + 1) * STEPS)
        loss += sum(F.sum(y[span] ** 2 * weights(rank, (STEPS, OUT))) for y in ys)
    link.cleargrads()
    loss.backward()
    for rank, (own, _, gxs) in enumerate(results):
        for y, expected in zip(own, ys):
            span = slice(rank * STEPS, (rank + 1) * STEPS)
            np.testing.assert_allclose(y, expected.array[span], rtol=1e-9)
        for gx, x in zip(gxs, parts[rank]):
            np.testing.assert_allclose(gx, x.grad, rtol=1e-9, atol=1e-12)
    for name, param in link.namedparams():
        total = sum(grads[name] for _, grads, _ in results)
        np.testing.assert_allclose(total, param.grad, rtol=1e-9, atol=1e-12)


def test_other_links_are_refused(ranks):
    def on_rank(comm):
        with pytest.raises(ValueError, match="expected an NStepRNN"):
            create_multi_node_n_step_rnn(L.Linear(2, 2), comm)
        return True

    assert all(ranks(on_rank))
