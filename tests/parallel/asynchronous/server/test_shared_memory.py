"""Ranks of one node that update shards in memory that they share."""

import io
import math
import time
import warnings

import numpy as np
import pytest

import renga
from renga.communicators import local
from renga.distributed import create_communicator
from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizer_hooks import GradientNoise, WeightDecay
from renga.optimizers import LAMB, SGD, Adam, MomentumSGD
from tests.parallel.asynchronous.quadratics import (
    Classifier,
    Point,
    batches,
    parameters,
    targets,
)

STEPS = 20


def trained(comm, make, staleness, aware=True, shards=None):
    """Training with steps of random times; and what the optimizer knows about it."""
    model = Point(value=comm.rank)  # the point of rank 0 counts
    optimizer = create_server_optimizer(
        make().setup(model), comm, staleness, shards, staleness_aware=aware
    )
    random = np.random.RandomState(comm.rank)

    def loss(target):
        time.sleep(random.choice([0, 1e-3, 3e-3]))
        return model(target)

    for target in targets(comm.rank, STEPS):
        optimizer.update(loss, target)
    observed = optimizer.observe()
    histogram = optimizer.staleness_histogram()
    optimizer.join()
    return optimizer.logs, observed, histogram, model.vector()


def replayed(log, make):
    """All versions of the point, by training in one process."""
    model = Point()
    optimizer = make().setup(model)
    rate = optimizer.hyperparam.get_dict().get("lr")
    versions = [[p.array.copy() for p in model.params()]]
    for entry in log:
        for param, x in zip(model.params(), versions[entry.version]):
            param.array[...] = x
        model.cleargrads()
        model(targets(entry.worker, STEPS)[entry.clock - 1]).backward()
        for param, x in zip(model.params(), versions[-1]):
            param.array[...] = x
        if rate is not None:
            optimizer.lr = rate * entry.rate
        optimizer.update()
        versions.append([p.array.copy() for p in model.params()])
    return [np.concatenate([x.reshape(-1) for x in xs]) for xs in versions]


@pytest.mark.parametrize("make", [lambda: MomentumSGD(0.1), lambda: Adam(0.1)])
@pytest.mark.parametrize("staleness", [1, 4, math.inf])
def test_training_is_the_serial_replay_of_its_log_bitwise(make, staleness):
    aware = isinstance(make(), MomentumSGD)  # the replay of Adam has one rate
    ranks = 3
    results = local.run(trained, make, staleness, aware, 1, ranks=ranks)
    log = results[0][0][0]
    assert len(log) == ranks * STEPS
    for worker in range(ranks):
        clocks = [entry.clock for entry in log if entry.worker == worker]
        assert clocks == list(range(1, STEPS + 1))
    lags = [i - entry.version for i, entry in enumerate(log)]
    assert max(lags) > 0
    for entry, lag in zip(log, lags):
        assert entry.rate == (1 / lag if aware and lag else 1)
    x = replayed(log, make)[-1]
    for logs, observed, histogram, final in results:
        assert logs.keys() <= {0}
        np.testing.assert_array_equal(final, x)
        assert sum(histogram.values()) == STEPS
        assert max(histogram) <= staleness
        assert observed["staleness_max"] == max(histogram)
        assert observed["messages"] == observed["bytes"] == 0


def test_each_of_several_shards_has_the_replay_of_its_log():
    """The gradient of an element of the point is a function of that element alone."""
    results = local.run(trained, lambda: SGD(0.1), math.inf, ranks=2)
    logs = {shard: log for result in results for shard, log in result[0].items()}
    assert [len(logs[shard]) for shard in range(2)] == [2 * STEPS] * 2
    found = [replayed(logs[shard], lambda: SGD(0.1))[-1] for shard in range(2)]
    for *_, final in results:
        np.testing.assert_array_equal(final, results[0][-1])
        # Shards are cut at cache lines, of eight elements: a and b are in one each.
        np.testing.assert_array_equal(final, [*found[0][:6], *found[1][6:]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [SGD, MomentumSGD, Adam])
def test_a_single_rank_is_its_optimizer_bitwise(make, dtype):
    def train(wrap):
        with renga.using_config("dtype", np.dtype(dtype)):
            model = Classifier()
            optimizer = make().setup(model)
        optimizer.add_hook(WeightDecay(0.01))
        optimizer = wrap(optimizer)
        for x, t in batches(6):
            optimizer.update(model, x.astype(dtype), t)
        return parameters(model)

    comm = create_communicator("local")
    expected = train(lambda optimizer: optimizer)
    found = train(lambda opt: create_server_optimizer(opt, comm, 3, shards=11))
    for key, x in found.items():
        np.testing.assert_array_equal(x, expected[key])


@pytest.mark.parametrize("make", [MomentumSGD, Adam])
def test_resumed_training_has_the_same_bits(make):
    """On one rank, which is never stale; the states are those of the shards."""
    comm = create_communicator("local")

    def begun(shards):
        model = Classifier()
        optimizer = make().setup(model)
        return model, create_server_optimizer(optimizer, comm, 3, shards=shards)

    def go(model, optimizer, steps):
        for x, t in batches(8)[steps]:
            optimizer.update(model, x, t)

    model, optimizer = begun(1)
    go(model, optimizer, slice(4))
    files = io.BytesIO(), io.BytesIO()
    renga.serializers.save_npz(files[0], optimizer)
    renga.serializers.save_npz(files[1], model)
    go(model, optimizer, slice(4, None))
    resumed, other = begun(3)  # in another division
    for file, target in zip(files, (other, resumed)):
        file.seek(0)
        renga.serializers.load_npz(file, target)
    go(resumed, other, slice(4, None))
    expected = parameters(model)
    for key, x in parameters(resumed).items():
        np.testing.assert_array_equal(x, expected[key])


def test_who_cannot_share_sends_messages():
    """Optimizers with more than arrays to remember, and ranks without such memory."""

    def bytes_of(comm, make, hook=None, staleness=2):
        model = Point()
        optimizer = make().setup(model)
        if hook is not None:
            optimizer.add_hook(hook)
        optimizer = create_server_optimizer(optimizer, comm, staleness, 1)
        for target in targets(comm.rank, 3):
            optimizer.update(model, target)
        optimizer.join()
        return optimizer.observe()["bytes"]

    logs = 2 * 3 * 5 * 8 * 2
    for sent in local.run(bytes_of, SGD, ranks=2):
        assert sent < logs
    for args, nodes, memory in [
        ((LAMB,), 1, True),
        ((SGD, GradientNoise(0.1)), 1, True),
        ((SGD, None, 0), 1, True),
        ((SGD,), 2, True),
        ((SGD,), 1, False),
    ]:
        results = local.run(bytes_of, *args, ranks=2, nodes=nodes, shared_memory=memory)
        assert min(results) > 0 and sum(results) > 2 * logs


def test_a_silent_rank_is_lost_until_it_pushes_again():
    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(SGD(0.1).setup(model), comm, 1, timeout=0.2)
        for step, target in enumerate(targets(comm.rank, 12)):
            if comm.rank == 1 and step == 4:
                time.sleep(1)
            optimizer.update(model, target)
            time.sleep(0.05)
        left = optimizer.observe()["workers_left"]
        optimizer.join()
        return left, optimizer.observe()["workers_left"]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = local.run(act, ranks=2)
    text = "rank 0 has lost worker 1; 1 of 2 workers are left"
    assert text in str(told[0].message)
    assert [left for left, _ in results] == [1, 2]


def test_a_worker_enters_anew():
    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(SGD(0.1).setup(model), comm, math.inf)
        for target in targets(comm.rank, 5):
            optimizer.update(model, target)
        comm.barrier()
        if comm.rank == 1:
            for param in model.params():
                param.array[...] = 9
            optimizer.enter()
            assert abs(model.vector()).max() < 1
            optimizer.update(model, targets(1, 6)[5])
        optimizer.join()
        return sum(map(len, optimizer.logs.values())), model.vector()

    results = local.run(act, ranks=2)
    for count, x in results:
        assert count == 11
        np.testing.assert_array_equal(x, results[0][1])


def test_ranks_may_end_several_times():
    """The second time there is nothing to do, and the logs stay as they are."""

    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(SGD(0.1).setup(model), comm, 2)
        for target in targets(comm.rank, 4):
            optimizer.update(model, target)
        histogram = optimizer.staleness_histogram()
        found = []
        for _ in range(3):
            optimizer.join()
            assert optimizer.staleness_histogram() == histogram
            assert optimizer.observe()["staleness_max"] == max(histogram)
            found.append((sum(map(len, optimizer.logs.values())), model.vector()))
        return found

    for ends in local.run(act, ranks=2):
        for count, x in ends:
            assert count == 8
            np.testing.assert_array_equal(x, ends[0][1])


def test_an_error_of_a_rank_ends_those_that_wait_for_it():
    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(SGD(0.1).setup(model), comm, 1)
        for step, target in enumerate(targets(comm.rank, 9)):
            if comm.rank == 1 and step == 3:
                raise ValueError("of rank 1")
            optimizer.update(model, target)
        optimizer.join()

    with pytest.raises(ValueError, match="of rank 1"):
        local.run(act, ranks=2)
