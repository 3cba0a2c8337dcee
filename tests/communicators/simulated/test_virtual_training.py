"""Training on virtual ranks, against the serial run."""

import time

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizers
from renga.communicators import simulated
from renga.communicators.simulated import Machine
from renga.distributed import create_multi_node_optimizer

X = np.random.RandomState(0).randn(24, 5).astype("f4")
T = np.random.RandomState(1).randint(0, 3, 24).astype("i4")
FORWARD, STEP = 2e-3, 6e-3


def classifier():
    w = np.random.RandomState(2)
    first, second = (w.randn(*s).astype("f4") * 0.5 for s in [(7, 5), (3, 7)])
    layers = [L.Linear(5, 7, initialW=first), F.tanh, L.Linear(7, 3, initialW=second)]
    return L.Classifier(renga.Sequential(*layers))


def parameters(model):
    return [param.array.copy() for param in model.params()]


def train(comm, optimizer, steps=3):
    model = classifier()
    if comm is not None:
        optimizer = create_multi_node_optimizer(optimizer, comm)
    optimizer.setup(model)
    own = slice(None) if comm is None else slice(comm.rank, None, comm.size)
    for _ in range(steps):
        optimizer.update(model, X[own], T[own])
        if comm is not None:
            comm.advance(STEP)
    return parameters(model)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(
    "make", [lambda: optimizers.MomentumSGD(0.3), lambda: optimizers.Adam(0.05)]
)
def test_data_parallel_training_is_the_serial_one(ranks, make):
    expected = train(None, make())
    outcome = simulated.run(
        lambda comm: train(comm, make()), ranks, seconds_of=lambda rank, task: task
    )
    for result in outcome.results:
        for mine, serial in zip(result, expected):
            np.testing.assert_allclose(mine, serial, rtol=2e-5, atol=2e-6)
        for mine, first in zip(result, outcome.results[0]):
            np.testing.assert_array_equal(mine, first)
    assert all(3 * STEP <= seconds < 3 * STEP + 0.01 for seconds in outcome.seconds)


def test_parameter_server_on_64_ranks():
    """Each worker adds its numbers; the server answers whoever asks first."""
    workers, rounds = 63, 4

    def act(comm):
        if comm.rank == 0:
            return serve(comm, np.zeros(10), rounds)
        for step in range(rounds):
            comm.advance(1e-3 * comm.rank)
            comm.send(np.full(10, comm.rank + 100.0 * step), 0, wait=False)
            x = comm.recv(0)
        return x

    begin = time.perf_counter()
    outcome = simulated.run(act, workers + 1, seconds_of=lambda rank, task: task)
    assert time.perf_counter() - begin < 30
    total = sum(r + 100 * s for r in range(1, 64) for s in range(rounds))
    np.testing.assert_array_equal(outcome.results[0], total)
    # The slowest worker computes 4 times 63 ms; its answers are not delayed by much.
    assert 0.252 < outcome.seconds[63] < 0.26
    assert outcome.seconds[1] < 0.02


def serve(comm, x, rounds):
    outs = {r: np.empty(10) for r in range(1, comm.size)}
    works = {r: comm.recv(r, out=out, wait=False) for r, out in outs.items()}
    left = dict.fromkeys(works, rounds)
    while works:
        for r in [r for r, work in works.items() if work.test()]:
            x += outs[r]
            comm.send(x, r, wait=False)
            left[r] -= 1
            del works[r]
            if left[r]:
                works[r] = comm.recv(r, out=outs[r], wait=False)
    return x


def test_gossip_on_64_ranks():
    """Averaging with the partner along each axis of a hypercube gives the mean."""

    def act(comm):
        x = np.full(4, float(comm.rank**2))
        for axis in range(6):
            other = comm.rank ^ (1 << axis)
            comm.send(x, other, axis, wait=False)
            x = (x + comm.recv(other, axis)) / 2
        return x

    machine = Machine(latency=1e-3, bandwidth=1e6)
    begin = time.perf_counter()
    outcome = simulated.run(act, 64, machine, lambda rank, task: task)
    assert time.perf_counter() - begin < 30
    np.testing.assert_array_equal(outcome.results, np.mean(np.arange(64.0) ** 2))
    np.testing.assert_allclose(outcome.seconds, 6 * (1e-3 + 32e-6))


@pytest.mark.parametrize("stages, batches", [(2, 4), (4, 4), (4, 8)])
def test_a_pipeline_takes_its_closed_form(stages, batches):
    """Forward passes of a pipeline; messages are received ahead and take 0.5 ms.

    The first micro-batch leaves after ``stages`` steps, each other one a step later.
    """

    def act(comm):
        w = np.random.RandomState(comm.rank).randn(5, 5)
        first, last = comm.rank == 0, comm.rank == comm.size - 1
        xs = np.random.RandomState(9).randn(batches, 20, 5)
        ahead = [np.empty((20, 5)) for _ in range(batches)]
        works = [
            None if first else comm.recv(comm.rank - 1, i, out=out, wait=False)
            for i, out in enumerate(ahead)
        ]
        ys = []
        for i, work in enumerate(works):
            x = xs[i] if first else work.wait()
            ys.append(np.tanh(x @ w))
            comm.advance(("forward", comm.rank, i))
            if not last:
                comm.send(ys[-1], comm.rank + 1, i, wait=False)
        return ys

    def seconds_of(rank, task):
        kind, stage, batch = task
        assert (kind, stage) == ("forward", rank) and 0 <= batch < batches
        return FORWARD

    machine = Machine(latency=0.1e-3, bandwidth=2e6)  # 800 bytes
    outcome = simulated.run(act, stages, machine, seconds_of)
    expected = np.random.RandomState(9).randn(batches, 20, 5)
    for stage in range(stages):
        w = np.random.RandomState(stage).randn(5, 5)
        expected = np.stack([np.tanh(x @ w) for x in expected])
    np.testing.assert_array_equal(outcome.results[-1], expected)
    end = FORWARD * (stages + batches - 1) + 0.5e-3 * (stages - 1)
    assert outcome.seconds[-1] == pytest.approx(end)
