"""What servers keep, what they do with overflows, and how their errors arrive."""

import gc
import math
import tracemalloc

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.communicators import local
from renga.distributed import create_communicator, create_multi_node_optimizer
from renga.distributed.asynchronous import (
    create_hogwild_optimizer,
    create_server_optimizer,
)
from renga.optimizers import SGD, MomentumSGD
from renga.parallel.asynchronous.server import shard_server, shared_client
from tests.parallel.asynchronous.quadratics import Point, targets


@pytest.mark.parametrize("shared_memory", [True, False])
def test_memory_is_flat_and_the_log_has_the_last_updates(shared_memory, monkeypatch):
    for module in (shard_server, shared_client):
        assert module.LOG_SIZE == 1024
        monkeypatch.setattr(module, "LOG_SIZE", 32)

    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(SGD(0.1).setup(model), comm, math.inf)
        sizes = []
        for step in range(380):
            model.a.grad = np.ones((2, 3))
            optimizer.update()
            if step in (300, 379):  # integers up to 256 take no memory
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        optimizer.join()
        return optimizer.logs, sizes

    tracemalloc.start()
    try:
        found = local.run(act, ranks=1, shared_memory=shared_memory)
    finally:
        tracemalloc.stop()
    ((logs, (before, after)),) = found
    assert after - before < 8_000  # bytes; of 79 entries, 16_000
    for log in logs.values():
        assert [entry.clock for entry in log] == list(range(349, 381))


class Steep(renga.Link):
    """Its gradient overflows where the batch says so."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = renga.Parameter(np.ones(3, "float32"))

    def forward(self, x):
        return F.sum(self.w * x)


def scaled(comm, make):
    model = Steep()
    optimizer = MomentumSGD(0.1).setup(model)
    optimizer.loss_scaling()
    optimizer = make(optimizer, comm)
    scales = []
    for step in range(5):
        x = np.full(3, 1.0 + comm.rank, "float32")
        if step == 2 and comm.rank == 1:
            x[0] = 1e38  # times the scale of this step, infinite
        optimizer.update(model, x)
        scales.append(optimizer.loss_scale)
    if hasattr(optimizer, "join"):
        optimizer.join()
    return model.w.array.copy(), scales


def test_an_overflow_on_one_rank_is_one_of_all_without_staleness():
    synchronous = local.run(scaled, create_multi_node_optimizer, ranks=2)
    served = local.run(
        scaled, lambda opt, comm: create_server_optimizer(opt, comm, 0), ranks=2
    )
    for (x, scales), (expected, expected_scales) in zip(served, synchronous):
        np.testing.assert_allclose(x, expected, rtol=1e-6)
        assert scales == expected_scales == [2, 4, 2, *scales[3:]]


@pytest.mark.parametrize("shared_memory", [True, False])
def test_an_overflow_is_one_of_its_rank_with_staleness(shared_memory):
    """Gradients add up, whatever their order: rates are not divided, nor momentum."""

    def act(comm):
        model = Steep()
        optimizer = SGD(0.1).setup(model)
        optimizer.loss_scaling()
        optimizer = create_server_optimizer(optimizer, comm, 2, staleness_aware=False)
        for step in range(5):
            x = np.full(3, 1.0 + comm.rank, "float32")
            if step == 2 and comm.rank == 1:
                x[0] = 1e38
            optimizer.update(model, x)
        optimizer.join()
        return model.w.array.copy(), optimizer._loss_scaling_isnan_ever

    results = local.run(act, ranks=2, shared_memory=shared_memory)
    assert [isnan for _, isnan in results] == [False, True]
    for x, _ in results:
        np.testing.assert_allclose(x, 1 - 0.1 * (5 * 1 + 4 * 2), rtol=1e-5)


def test_hogwild_skips_the_update_of_a_rank_that_overflows():
    def act(comm):
        model = Steep()
        optimizer = SGD(0.1).setup(model)
        optimizer.loss_scaling()
        optimizer = create_hogwild_optimizer(optimizer, comm)
        for step in range(4):
            x = np.full(3, 1.0 + comm.rank, "float32")
            if step == 2 and comm.rank == 1:
                x[0] = 1e38
            optimizer.update(model, x)
        optimizer.join()
        return model.w.array.copy()

    for x in local.run(act, ranks=2):
        np.testing.assert_allclose(x, 1 - 0.1 * (4 * 1 + 3 * 2), atol=1e-6)


def test_a_loss_scale_of_rows_is_constant():
    model = Point()
    optimizer = SGD(0.1).setup(model)
    optimizer.loss_scaling()
    comm = create_communicator("local")
    rows = {"/a": lambda target: [0, 1]}
    served = create_server_optimizer(optimizer, comm, 0, rows=rows)
    with pytest.raises(ValueError, match="a constant loss scale with rows"):
        served.update(model, np.ones(11))
    served.loss_scaling(scale=8.0)
    served.update(model, np.ones(11))
    served.join()
    np.testing.assert_allclose(model.vector(), 0.1, atol=1e-12)


@pytest.mark.parametrize("staleness", [0, 2])
def test_an_error_of_a_server_is_raised_with_its_type(staleness):
    """In the thread that computes, of the rank that serves."""

    def refuse(rule, param):
        if rule.t == 2:
            raise KeyError("of a hook")

    refuse.call_for_each_param = True

    def act(comm):
        model = Point()
        optimizer = SGD(0.1).setup(model)
        optimizer.add_hook(refuse)
        optimizer = create_server_optimizer(optimizer, comm, staleness)
        for target in targets(comm.rank, 6):
            optimizer.update(model, target)
        optimizer.join()

    with pytest.raises(KeyError, match="of a hook"):
        local.run(act, ranks=2)
