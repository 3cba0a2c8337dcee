"""Data-parallel training against one process with the same global batch."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_multi_node_optimizer

BATCH, STEPS = 12, 3
RANDOM = np.random.RandomState(7)
X = RANDOM.uniform(-1, 1, (STEPS, BATCH, 6)).astype("float32")
T = RANDOM.randint(0, 4, (STEPS, BATCH)).astype("int32")


class Net(renga.Chain):
    """Its first layer has no shape before the first batch."""

    def __init__(self, seed, only_in_training=False):
        super().__init__()
        random = np.random.RandomState(seed)
        self.only_in_training = only_in_training

        def uniform(array):
            array[...] = random.uniform(-0.5, 0.5, array.shape)

        with self.init_scope():
            self.hidden = L.Linear(None, 5, initialW=uniform)
            self.extra = L.Linear(None, 4, initialW=uniform)
            self.out = L.Linear(5, 4, initialW=uniform)

    def forward(self, x, t):
        h = F.tanh(self.hidden(x))
        y = self.out(h)
        if self.only_in_training and renga.config.train:
            y = y + self.extra(h)
        return F.softmax_cross_entropy(y, t)


OPTIMIZERS = {
    "sgd": lambda: renga.optimizers.SGD(lr=0.5),
    "momentum": lambda: renga.optimizers.MomentumSGD(lr=0.1, momentum=0.8),
    "adam": lambda: renga.optimizers.Adam(alpha=0.05),
}


def setup(name, model):
    optimizer = OPTIMIZERS[name]()
    optimizer.setup(model)
    optimizer.add_hook(renga.optimizer_hooks.WeightDecay(0.01))
    return optimizer


def parameters(model):
    return {
        name: param.array.copy()
        for name, param in model.namedparams(include_uninit=False)
    }


def serial(name, steps=STEPS, **options):
    model = Net(seed=0, **options)
    optimizer = setup(name, model)
    for x, t in zip(X[:steps], T[:steps]):
        optimizer.update(model, x, t)
    return parameters(model)


def own_part(comm, batch):
    """Every rank takes the same number of examples of the global batch."""
    return batch[comm.rank :: comm.size]


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("only_in_training", [False, True])
def test_three_steps_equal_those_of_one_process(ranks, name, only_in_training):
    def train(comm):
        # Different parameters on each rank: those of rank 0 have to win.
        model = Net(seed=comm.rank, only_in_training=only_in_training)
        optimizer = create_multi_node_optimizer(setup(name, model), comm)
        for x, t in zip(X, T):
            optimizer.update(model, own_part(comm, x), own_part(comm, t))
        return parameters(model), optimizer.t

    results = ranks(train)
    for params, t in results:
        assert_same(params, serial(name, only_in_training=only_in_training))
        assert t == STEPS
        for key, value in params.items():
            np.testing.assert_array_equal(value, results[0][0][key])


def test_gradients_computed_by_the_user(ranks):
    def train(comm):
        model = Net(seed=0)
        optimizer = create_multi_node_optimizer(setup("sgd", model), comm)
        for x, t in zip(X, T):
            loss = model(own_part(comm, x), own_part(comm, t))
            model.cleargrads()
            loss.backward()
            optimizer.update()
        return parameters(model)

    for params in ranks(train):
        assert_same(params, serial("sgd"))


def test_gradients_of_other_parameters_than_rank_0s_are_dropped(ranks):
    def train(comm):
        model = Net(seed=comm.rank)
        optimizer = create_multi_node_optimizer(setup("sgd", model), comm)
        for x, t in [(X[0], T[0]), *zip(X, T)] if comm.size > 1 else zip(X, T):
            loss = model(own_part(comm, x), own_part(comm, t))
            model.cleargrads()
            loss.backward()
            optimizer.update()
        return parameters(model), optimizer.t

    for params, t in ranks(train):
        assert_same(params, serial("sgd"))
        assert t == STEPS


def test_double_buffering_uses_each_gradient_one_update_late(ranks):
    def train(comm):
        model = Net(seed=comm.rank)
        optimizer = create_multi_node_optimizer(
            OPTIMIZERS["sgd"]().setup(model), comm, double_buffering=True
        )
        for x, t in zip(X, T):
            optimizer.update(model, own_part(comm, x), own_part(comm, t))
        return parameters(model), optimizer.t

    model = Net(seed=0)
    with renga.using_config("train", False):
        model(X[0], T[0])
    late = []
    for x, t in zip(X, T):
        model.cleargrads()
        model(x, t).backward()
        named = dict(model.namedparams(include_uninit=False))
        late.append({n: p.grad for n, p in named.items() if p.grad is not None})
        if len(late) > 1:
            for name, grad in late[-2].items():
                named[name].array[...] -= 0.5 * grad
    for params, t in ranks(train):
        assert_same(params, parameters(model))
        assert t == STEPS - 1


def test_parameters_without_gradient_count_as_zero(ranks):
    def train(comm, zero_fill):
        link = renga.Link()
        with link.init_scope():
            link.a = renga.Parameter(np.zeros(2, "float32"))
            link.b = renga.Parameter(np.zeros(3, "float32"))
        optimizer = renga.optimizers.SGD(lr=1).setup(link)
        optimizer = create_multi_node_optimizer(optimizer, comm, zero_fill=zero_fill)
        link.a.grad = np.full(2, comm.rank + 1, "float32")
        if zero_fill and comm.rank == 0:
            link.b.grad = np.full(3, comm.size, "float32")
        optimizer.update()
        return link.a.array, link.b.array

    for zero_fill in (True, False):
        results = ranks(train, zero_fill)
        for a, b in results:
            np.testing.assert_allclose(a, -(len(results) + 1) / 2)
            np.testing.assert_array_equal(b, -1 if zero_fill else 0)


def test_attributes_are_those_of_the_actual_optimizer(ranks):
    def act(comm):
        actual = OPTIMIZERS["momentum"]()
        optimizer = create_multi_node_optimizer(actual, comm)
        model = Net(seed=0)
        assert optimizer.setup(model) is optimizer
        assert optimizer.target is actual.target is model
        optimizer.lr = 0.25
        optimizer.use_auto_new_epoch = True
        optimizer.new_epoch(auto=True)
        assert not hasattr(optimizer, "colour")
        return actual.lr, actual.hyperparam.lr, actual.epoch

    assert set(ranks(act)) == {(0.25, 0.25, 1)}
