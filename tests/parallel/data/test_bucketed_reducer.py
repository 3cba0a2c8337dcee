"""Gradients averaged during the backward pass against one process with all samples."""

import time

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local, packing
from renga.distributed import create_multi_node_optimizer
from renga.distributed.links import create_mnbn_model
from renga.parallel.data import buckets
from renga.parallel.data.overlap import OverlapTrial
from tests.parallel.data.training_steps import (
    STEPS,
    UNEVEN,
    WIDTH,
    Barrier,
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
)


def test_same_bits_as_averaging_afterwards(ranks, reduction):
    def train(comm, overlap):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        for x, t in zip(X, T):
            x, t = own_samples(comm, x), own_samples(comm, t)
            if overlap:
                optimizer.update(model, x, t)
            else:
                model.cleargrads()
                model(x, t).backward()
                optimizer.update()
        return parameters(model)

    for with_overlap, without in zip(ranks(train, True), ranks(train, False)):
        for name, value in without.items():
            np.testing.assert_array_equal(with_overlap[name], value)


def test_buckets_start_before_backward_ends(
    some_ranks, no_sharded_updates, monkeypatch
):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 40)
    models, started, average = {}, {}, packing.average

    def record(comm, grads, wait=True):
        first = models[comm.rank].layers[0].W
        started.setdefault(comm.rank, []).append(first.grad_var is None)
        return average(comm, grads, wait)

    monkeypatch.setattr(packing, "average", record)

    def train(comm):
        models[comm.rank], optimizer = model, _ = make(comm)
        for x, t in zip(X, T):
            started[comm.rank] = []
            batch = own_samples(comm, x), own_samples(comm, t)
            optimizer.update(lambda *xs: Barrier(comm).apply([model(*xs)])[0], *batch)
        return started[comm.rank]

    for seen in some_ranks(train):
        # 8 parameters, each in a bucket of its own. The first layer's W has no gradient
        # when they are sent, except for the last two: its own and its bias's.
        assert len(seen) == 8 and sum(seen) >= 6


def used_by(rank, step):
    """Different layers, in different orders, on each rank and in each step."""
    return [(0, 1), (1, 0, 3), (3,), (0, 3)][(rank + step) % 4]


@pytest.mark.parametrize("zero_fill", [True, False])
def test_graphs_that_differ(ranks, reduction, zero_fill):
    def train(comm):
        model, optimizer = make(comm, zero_fill=zero_fill)
        for step in range(STEPS):
            batch = own_samples(comm, X[step]), own_samples(comm, T[step])
            optimizer.update(model, *batch, used_by(comm.rank, step))
            optimizer.target.cleargrads()
        return parameters(model)

    results = ranks(train)
    size = len(results)
    model, optimizer = make()
    for step in range(STEPS):
        losses = [
            model(X[step][r::size], T[step][r::size], used_by(r, step))
            for r in range(size)
        ]
        optimizer.update(lambda losses: sum(losses) / size, losses)
    check(results, parameters(model))


def test_gradients_that_no_rank_has(some_ranks, reduction):
    def train(comm, zero_fill):
        model, optimizer = make(comm, zero_fill=zero_fill)
        optimizer.actual_optimizer.reallocate_cleared_grads = lambda: None
        used = (0, 1) if comm.rank == 0 else (0,)
        for _ in range(2):
            optimizer.update(model, X[0], T[0], used)
        return [layer.W.grad for layer in model.layers]

    for grads in some_ranks(train, True):
        np.testing.assert_array_equal(grads[2], np.zeros((WIDTH, WIDTH)))
    for grads in some_ranks(train, False):
        assert [g is None for g in grads] == [False, False, True, True]
        assert np.abs(grads[1]).max() > 0


def test_parameters_that_one_rank_replaces_become_rank_0s(some_ranks, reduction):
    def train(comm):
        model, optimizer = make(comm, renga.optimizers.SGD)
        for step, (x, t) in enumerate(zip(X, T)):
            if step == 1 and comm.rank == comm.size - 1 > 0:
                layer = model.layers[2]
                with layer.init_scope():
                    layer.W = renga.Parameter(np.full((WIDTH, WIDTH), 9, "float32"))
                layer.W.update_rule = optimizer.create_update_rule()
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        return parameters(model)

    model, optimizer = make(kind=renga.optimizers.SGD)
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    check(some_ranks(train), parameters(model))


class TiedGradients(renga.Chain):
    """Two parameters get one gradient array, which the backward pass still reads."""

    def __init__(self, seed):
        super().__init__()
        random = np.random.RandomState(seed)
        shape = (2, WIDTH)
        with self.init_scope():
            for name in "abw":
                value = random.uniform(-1, 1, shape).astype("float32")
                setattr(self, name, renga.Parameter(value))

    def forward(self, x):
        h = F.tanh(self.w * x) + self.a + self.b
        return F.sum(F.exp(h))


def test_gradients_that_share_memory(some_ranks, reduction):
    def train(comm):
        model = TiedGradients(comm.rank)
        optimizer = renga.optimizers.SGD(0.01).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, comm)
        for x in X:
            optimizer.update(model, x[comm.rank : comm.rank + 2])
        return parameters(model)

    results = some_ranks(train)
    size = len(results)
    model = TiedGradients(0)
    optimizer = renga.optimizers.SGD(0.01).setup(model)
    for x in X:
        losses = [model(x[r : r + 2]) for r in range(size)]
        optimizer.update(lambda losses: sum(losses) / size, losses)
    check(results, parameters(model), atol=1e-5)


class ReentrantProduct(renga.FunctionNode):
    """x W with a backward() of its own inside, which adds to the gradient of W."""

    def __init__(self, W):
        self.W = W

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] * self.W.array,)

    def backward(self, indexes, gys):
        (x,) = self.get_retained_inputs()
        with renga.force_backprop_mode():
            inner = renga.Variable(x.array)
            y = inner * self.W
        y.grad = gys[0].array
        y.backward()
        return (renga.Variable(inner.grad),)


def test_gradients_that_grow_after_their_bucket_was_launched(some_ranks, reduction):
    def model_of(seed):
        link = renga.Link()
        value = np.random.RandomState(seed).uniform(0.5, 1, WIDTH).astype("float32")
        with link.init_scope():
            link.W = renga.Parameter(value)
            link.V = renga.Parameter(value * 2)
        return link

    def loss(link, x):
        # W is read after the node that reads it again: its gradient seems complete.
        h = ReentrantProduct(link.W).apply((renga.Variable(x) * link.V,))[0]
        return F.sum(h * link.W)

    def train(comm):
        link = model_of(comm.rank)
        optimizer = renga.optimizers.SGD(0.01).setup(link)
        optimizer = create_multi_node_optimizer(optimizer, comm)
        for x in X:
            optimizer.update(loss, link, x[comm.rank])
        return parameters(link)

    results = some_ranks(train)
    link = model_of(0)
    size = len(results)
    optimizer = renga.optimizers.SGD(0.01).setup(link)
    for x in X:
        losses = [F.sum(x[r] * link.V * link.W**2) for r in range(size)]
        optimizer.update(lambda losses: sum(losses) / size, losses)
    check(results, parameters(link))


def test_gradients_are_sent_in_half_precision(some_ranks, reduction):
    def train(comm):
        group = comm.split(0, comm.rank)
        group.set_config("allreduce_grad_dtype", value=np.float16)
        model, optimizer = make(group)
        for x, t in zip(X, T):
            optimizer.update(
                model, own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
            )
        return parameters(model), model.layers[0].W.grad

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    results = some_ranks(train)
    check([params for params, _ in results], parameters(model), atol=2e-4)
    grad = results[0][1]
    assert grad.dtype == np.float32
    np.testing.assert_array_equal(grad, grad.astype("float16"))


def test_the_loss_scale_reaches_parameters_without_gradient(some_ranks, reduction):
    def train(comm):
        model, optimizer = make(comm, kind=renga.optimizers.SGD)
        optimizer.set_loss_scale(64.0)
        used = (0, 1) if comm.rank == 0 else (0,)
        optimizer.update(model, X[0], T[0], used)
        return parameters(model)

    results = some_ranks(train)
    size = len(results)
    model, optimizer = make(kind=renga.optimizers.SGD)
    optimizer.update(
        lambda: (
            (model(X[0], T[0], (0, 1)) + (size - 1) * model(X[0], T[0], (0,))) / size
        )
    )
    check(results, parameters(model))


class Normalized(renga.Chain):
    """Normalized between two layers, of which the last one is late on some ranks."""

    def __init__(self):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.a = L.Linear(4, 5, initialW=np.linspace(-1, 1, 20).reshape(5, 4))
            self.norm = L.BatchNormalization(5)
            self.b = L.Linear(5, 3, initialW=np.linspace(1, -1, 15).reshape(3, 5))

    def forward(self, x, seconds=0.0):
        h = F.tanh(self.norm(self.a(x)))
        time.sleep(seconds)
        return F.mean(self.b(h) ** 2)


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("samples", [[4, 4], [8, 0]], ids=str)
@pytest.mark.parametrize("shard", [None, "states"])
def test_buckets_beside_collectives_of_the_graph(monkeypatch, shard, samples, late):
    """Of a multi-node normalization, whose backward pass is one, in any time."""
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 40)
    monkeypatch.setattr(OverlapTrial, "overlaps", property(lambda self: True))
    xs = np.random.RandomState(0).normal(size=(3, 8, 4))
    serial = Normalized()
    optimizer = renga.optimizers.SGD(0.1).setup(serial)
    for x in xs:
        optimizer.update(serial, x)

    def train(comm):
        model = create_mnbn_model(Normalized(), comm)
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD(0.1), comm, shard=shard
        ).setup(model)
        for x in xs:
            seconds = 0.1 if comm.rank == late else 0.0
            optimizer.update(model, own_samples(comm, x, {2: samples}), seconds)
        return parameters(model)

    for found in local.run(train, ranks=2, nodes=2):
        for name, param in serial.namedparams():
            np.testing.assert_allclose(found[name], param.array, 1e-9, 1e-12)
