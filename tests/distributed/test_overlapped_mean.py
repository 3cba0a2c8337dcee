"""Gradients averaged while backward goes on, against one process with all samples."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import packing
from renga.distributed import create_multi_node_optimizer
from renga.distributed.optimizers import overlapped_mean

STEPS, BATCH, WIDTH = 3, 12, 5
RANDOM = np.random.RandomState(5)
X = RANDOM.uniform(-1, 1, (STEPS, BATCH, WIDTH)).astype("float32")
T = RANDOM.randint(0, WIDTH, (STEPS, BATCH)).astype("int32")
UNEVEN = {1: [12], 2: [1, 11], 3: [5, 0, 7], 4: [0, 8, 1, 3]}


@pytest.fixture(params=[1 << 22, 40], ids=["one bucket", "small buckets"])
def buckets(request, monkeypatch):
    monkeypatch.setattr(overlapped_mean, "_BUCKET", request.param)


class Net(renga.Chain):
    """Layers of which a call names those it uses."""

    def __init__(self, seed=0):
        super().__init__()
        random = np.random.RandomState(seed)
        with self.init_scope():
            self.layers = renga.ChainList()
        for _ in range(4):
            array = random.uniform(-1, 1, (WIDTH, WIDTH)).astype("float32")
            self.layers.append(L.Linear(WIDTH, WIDTH, initialW=array))

    def forward(self, x, t, used=(0, 1, 2, 3)):
        for i in used:
            x = F.tanh(self.layers[i](x))
        return F.softmax_cross_entropy(x, t)


def make(comm=None, kind=renga.optimizers.MomentumSGD, **options):
    # Different parameters on each rank: those of rank 0 have to win.
    model = Net(seed=0 if comm is None else comm.rank)
    optimizer = kind(0.1).setup(model)
    if comm is not None:
        optimizer = create_multi_node_optimizer(optimizer, comm, **options)
    return model, optimizer


def parameters(model):
    return {name: param.array.copy() for name, param in model.namedparams()}


def check(results, expected, atol=2e-6):
    for params in results:
        for name in expected:
            np.testing.assert_allclose(params[name], expected[name], rtol=0, atol=atol)
            np.testing.assert_array_equal(params[name], results[0][name])


def own(comm, batch, counts=None):
    if counts is None:
        return batch[comm.rank :: comm.size]
    stop = np.cumsum(counts[comm.size])[comm.rank]
    return batch[stop - counts[comm.size][comm.rank] : stop]


def test_same_bits_as_averaging_afterwards(ranks, buckets):
    def train(comm, overlap):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        for x, t in zip(X, T):
            x, t = own(comm, x), own(comm, t)
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


class Meet(renga.FunctionNode):
    """The ranks wait for each other on the way back."""

    def __init__(self, comm):
        self.comm = comm

    def forward(self, inputs):
        return inputs

    def backward(self, indexes, gys):
        self.comm.barrier()
        return gys


def test_buckets_start_before_backward_ends(ranks, monkeypatch):
    monkeypatch.setattr(overlapped_mean, "_BUCKET", 40)
    models, started, average = {}, {}, packing.average

    def note(comm, grads, wait=True):
        first = models[comm.rank].layers[0].W
        started.setdefault(comm.rank, []).append(first.grad_var is None)
        return average(comm, grads, wait)

    monkeypatch.setattr(packing, "average", note)

    def train(comm):
        models[comm.rank], optimizer = model, _ = make(comm)
        for x, t in zip(X, T):
            started[comm.rank] = []
            batch = own(comm, x), own(comm, t)
            optimizer.update(lambda *xs: Meet(comm).apply([model(*xs)])[0], *batch)
        return started[comm.rank]

    for seen in ranks(train):
        # 8 parameters, each in a bucket of its own: when they went, the first layer's W
        # had no gradient yet, but for its own and that of the bias that comes with it.
        assert len(seen) == 8 and sum(seen) >= 6


def used_by(rank, step):
    """Different layers, in different orders, on each rank and in each step."""
    return [(0, 1), (1, 0, 3), (3,), (0, 3)][(rank + step) % 4]


@pytest.mark.parametrize("zero_fill", [True, False])
def test_graphs_that_differ(ranks, buckets, zero_fill):
    def train(comm):
        model, optimizer = make(comm, zero_fill=zero_fill)
        for step in range(STEPS):
            batch = own(comm, X[step]), own(comm, T[step])
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


def test_gradients_that_no_rank_has(ranks, buckets):
    def train(comm, zero_fill):
        model, optimizer = make(comm, zero_fill=zero_fill)
        optimizer.actual_optimizer.reallocate_cleared_grads = lambda: None
        used = (0, 1) if comm.rank == 0 else (0,)
        for _ in range(2):
            optimizer.update(model, X[0], T[0], used)
        return [layer.W.grad for layer in model.layers]

    for grads in ranks(train, True):
        np.testing.assert_array_equal(grads[2], np.zeros((WIDTH, WIDTH)))
    for grads in ranks(train, False):
        assert [g is None for g in grads] == [False, False, True, True]
        assert np.abs(grads[1]).max() > 0


def test_uneven_batches_count_by_their_samples(ranks, buckets):
    def train(comm):
        model, optimizer = make(comm)
        for x, t in zip(X, T):
            optimizer.update(model, own(comm, x, UNEVEN), own(comm, t, UNEVEN))
        return parameters(model)

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    check(ranks(train), parameters(model))


def test_uneven_batches_with_double_buffering(ranks):
    def train(comm):
        model, optimizer = make(comm, renga.optimizers.SGD, double_buffering=True)
        for x, t in zip(X, T):
            optimizer.update(model, own(comm, x, UNEVEN), own(comm, t, UNEVEN))
        return parameters(model)

    model, _ = make()
    late = []
    for x, t in zip(X, T):
        model.cleargrads()
        model(x, t).backward()
        late.append({name: param.grad for name, param in model.namedparams()})
        if len(late) > 1:
            for name, param in model.namedparams():
                param.array[...] -= np.float32(0.1) * late[-2][name]
    check(ranks(train), parameters(model))


def batches(rank, size):
    """Two samples a step; the first ranks run out of them, or have none at all."""
    count = STEPS * (rank + 1) // size
    span = slice(2 * rank, 2 * rank + 2)
    return [(X[step][span], T[step][span]) for step in range(count)]


def steps_of_all(size):
    model, optimizer = make()
    every = [batches(rank, size) for rank in range(size)]
    for step in range(STEPS):
        at_work = [own[step] for own in every if step < len(own)]
        optimizer.update(model, *(np.concatenate(parts) for parts in zip(*at_work)))
    return parameters(model)


def test_ranks_without_more_data_join(ranks, buckets):
    def train(comm):
        model, optimizer = make(comm)
        for x, t in batches(comm.rank, comm.size):
            optimizer.update(model, x, t)
        optimizer.join()
        return parameters(model), optimizer.t

    results = ranks(train)
    check([params for params, _ in results], steps_of_all(len(results)))
    assert {t for _, t in results} == {STEPS}


def test_ranks_join_those_with_gradients_of_their_own(ranks):
    def train(comm):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        for x, t in batches(comm.rank, comm.size):
            model.cleargrads()
            size_at_work = sum(
                optimizer.t < len(batches(r, comm.size)) for r in range(comm.size)
            )
            (model(x, t) * (comm.size / size_at_work)).backward()
            optimizer.update()
        optimizer.join()
        return parameters(model)

    results = ranks(train)
    check(results, steps_of_all(len(results)))


def test_trainers_whose_epochs_end_at_different_times(ranks):
    def train(comm):
        model, optimizer = make(comm)
        # The last rank has three times as many samples as the first.
        n = 4 + 8 * (comm.rank == comm.size - 1)
        data = list(zip(X[0][:n], T[0][:n]))
        iterator = renga.iterators.SerialIterator(data, 2, shuffle=False)
        updater = renga.training.updaters.StandardUpdater(iterator, optimizer)
        while updater.epoch < 1:
            updater.update()
        optimizer.join()
        return parameters(model), optimizer.t, updater.iteration

    results = ranks(train)
    size = len(results)
    model, optimizer = make()
    for step in range(6):
        span = slice(2 * step, 2 * step + 2)
        # At first all ranks have the same samples, then only one has some.
        optimizer.update(model, X[0][span], T[0][span])
    check([params for params, _, _ in results], parameters(model))
    assert {t for _, t, _ in results} == {6}
    assert [i for _, _, i in results] == [2] * (size - 1) + [6]


def test_parameters_that_one_rank_replaces_become_rank_0s(ranks, buckets):
    def train(comm):
        model, optimizer = make(comm, renga.optimizers.SGD)
        for step, (x, t) in enumerate(zip(X, T)):
            if step == 1 and comm.rank == comm.size - 1 > 0:
                layer = model.layers[2]
                with layer.init_scope():
                    layer.W = renga.Parameter(np.full((WIDTH, WIDTH), 9, "float32"))
                layer.W.update_rule = optimizer.create_update_rule()
            optimizer.update(model, own(comm, x), own(comm, t))
        return parameters(model)

    model, optimizer = make(kind=renga.optimizers.SGD)
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    check(ranks(train), parameters(model))


class Shared(renga.Chain):
    """Several parameters get one gradient, which the way back still needs."""

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


def test_gradients_that_share_memory(ranks, buckets):
    def train(comm):
        model = Shared(comm.rank)
        optimizer = renga.optimizers.SGD(0.01).setup(model)
        optimizer = create_multi_node_optimizer(optimizer, comm)
        for x in X:
            optimizer.update(model, x[comm.rank : comm.rank + 2])
        return parameters(model)

    results = ranks(train)
    size = len(results)
    model = Shared(0)
    optimizer = renga.optimizers.SGD(0.01).setup(model)
    for x in X:
        losses = [model(x[r : r + 2]) for r in range(size)]
        optimizer.update(lambda losses: sum(losses) / size, losses)
    check(results, parameters(model), atol=1e-5)


class Again(renga.FunctionNode):
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


def test_gradients_that_grow_after_they_were_sent(ranks, buckets):
    def model_of(seed):
        link = renga.Link()
        value = np.random.RandomState(seed).uniform(0.5, 1, WIDTH).astype("float32")
        with link.init_scope():
            link.W = renga.Parameter(value)
            link.V = renga.Parameter(value * 2)
        return link

    def loss(link, x):
        # W is read after the node that reads it again: its gradient seems complete.
        h = Again(link.W).apply((renga.Variable(x) * link.V,))[0]
        return F.sum(h * link.W)

    def train(comm):
        link = model_of(comm.rank)
        optimizer = renga.optimizers.SGD(0.01).setup(link)
        optimizer = create_multi_node_optimizer(optimizer, comm)
        for x in X:
            optimizer.update(loss, link, x[comm.rank])
        return parameters(link)

    results = ranks(train)
    link = model_of(0)
    size = len(results)
    optimizer = renga.optimizers.SGD(0.01).setup(link)
    for x in X:
        losses = [F.sum(x[r] * link.V * link.W**2) for r in range(size)]
        optimizer.update(lambda losses: sum(losses) / size, losses)
    check(results, parameters(link))


def test_gradients_travel_in_half_precision(ranks, buckets):
    def train(comm):
        group = comm.split(0, comm.rank)
        group.set_config("allreduce_grad_dtype", value=np.float16)
        model, optimizer = make(group)
        for x, t in zip(X, T):
            optimizer.update(model, own(comm, x, UNEVEN), own(comm, t, UNEVEN))
        return parameters(model), model.layers[0].W.grad

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    results = ranks(train)
    check([params for params, _ in results], parameters(model), atol=2e-4)
    grad = results[0][1]
    assert grad.dtype == np.float32
    np.testing.assert_array_equal(grad, grad.astype("float16"))


def test_the_scale_of_a_loss_reaches_parameters_without_gradient(ranks, buckets):
    def train(comm):
        model, optimizer = make(comm, kind=renga.optimizers.SGD)
        optimizer.set_loss_scale(64.0)
        used = (0, 1) if comm.rank == 0 else (0,)
        optimizer.update(model, X[0], T[0], used)
        return parameters(model)

    results = ranks(train)
    size = len(results)
    model, optimizer = make(kind=renga.optimizers.SGD)
    optimizer.update(
        lambda: (
            (model(X[0], T[0], (0, 1)) + (size - 1) * model(X[0], T[0], (0,))) / size
        )
    )
    check(results, parameters(model))
