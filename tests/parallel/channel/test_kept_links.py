"""Links that channel-parallel models keep, and what an example leaves behind."""

import types

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import link_hooks, optimizer_hooks
from renga.communicators import local, simulated
from renga.parallel.channel.kept_links import kept_links
from renga.parallel.parallelize import parallelize
from tests.links.parallel.differentiate import in_float64

X = np.random.RandomState(1).normal(size=(4, 3, 6, 5))


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)
        with self.init_scope():
            self.a = L.Convolution2D(3, 4, 3, pad=1)
            self.b = L.Convolution2D(4, 4, 3, pad=1)
            self.c = L.Linear(4, 3)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.4, param.shape)

    def forward(self, x):
        h = self.b(F.tanh(self.a(x)))
        return self.c(F.average(F.tanh(h * getattr(self.b, "gain", 1)), (2, 3)))


def doubled(self, x):
    return F.convolution_2d(x, 2 * self.W, self.b, 1, 1)


def with_hook(model):
    model.b.add_hook(link_hooks.SpectralNormalization())


def with_method(model):
    model.b.forward = types.MethodType(doubled, model.b)


def with_parameter(model):
    with model.b.init_scope():
        model.b.gain = renga.Parameter(np.array(1.5))


CHANGES = {
    "hooks or values": with_hook,
    "values of its own": with_parameter,
    "a method": with_method,
}


def train(model, x=X):
    optimizer = renga.optimizers.MomentumSGD(0.1).setup(model)
    optimizer.add_hook(optimizer_hooks.GradientNoise(0.01))
    losses = []
    for _ in range(3):
        loss = F.mean((model(x) - 0.3) ** 2)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    return losses


@pytest.mark.parametrize("reason", CHANGES)
def test_links_that_have_been_changed_are_kept(reason):
    def make():
        model = Net()
        np.random.seed(5)  # of the vectors of SpectralNormalization
        CHANGES[reason](model)
        return model

    def trained(model):
        np.random.seed(3)
        return train(model)

    with renga.using_config("dtype", np.float64):
        expected = trained(make())
        model = make()
    assert reason in kept_links(model, ())[id(model.b)]
    assert id(model.a) not in kept_links(model, ())

    @in_float64
    def act(comm):
        return trained(parallelize(make(), comm, "channel", X))

    for losses in simulated.run(act, 3).results:
        np.testing.assert_allclose(losses, expected, 1e-9)


class Recurrent(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(4, 5)
            self.lstm = L.LSTM(5, 5)
            self.last = L.Linear(5, 2)

    def forward(self, x):
        return self.last(self.lstm(F.tanh(self.first(x))))


@pytest.mark.parametrize("strategy", ["channel", "spatial"])
def test_an_example_leaves_recurrent_states_as_they_are(strategy):
    x = np.random.RandomState(0).normal(size=(6, 4)).astype("f")
    serial = Recurrent()
    serial(x)  # of the state with which training goes on
    before = serial.lstm.h.array

    def act(comm):
        model = parallelize(serial, comm, strategy, x)
        assert model.lstm.h.array.tobytes() == before.tobytes()
        model.lstm.reset_state()
        other = parallelize(Recurrent(), comm, strategy, x)
        assert other.lstm.h is None and other.lstm.c is None
        return model(x[:3]).array

    results = local.run(act, ranks=2)
    serial.lstm.reset_state()
    expected = serial(x[:3]).array
    for y in results:
        np.testing.assert_allclose(y, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("strategy", ["channel", "spatial"])
def test_parameters_that_get_shapes_later_have_the_values_of_rank_0(strategy):
    def act(comm):
        model = renga.Sequential(L.Linear(None, 5), F.tanh, L.Linear(None, 2))
        model = parallelize(model, comm, strategy)
        np.random.seed(comm.rank)
        model(np.ones((3, 4), "f"))
        return [param.array for _, param in sorted(model.namedparams())]

    (first, *others) = simulated.run(act, 3).results
    for arrays in others:
        for array, expected in zip(arrays, first):
            np.testing.assert_array_equal(array, expected)


class Gated(renga.Chain):
    """Its recurrent link calls all of its children from the second step on."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)
        with self.init_scope():
            self.first = L.Linear(4, 6)
            self.gru = L.StatefulGRU(6, 6)
            self.last = L.Linear(6, 2)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.4, param.shape)

    def forward(self, x):
        return self.last(self.gru(F.tanh(self.first(x))))


@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
def test_recurrent_links_go_on_from_their_states(has_example):
    x = np.random.RandomState(0).normal(size=(6, 4))
    with renga.using_config("dtype", np.float64):
        model = Gated()
        np.random.seed(3)
        expected = train(model, x)

    @in_float64
    def act(comm):
        model = parallelize(Gated(), comm, "channel", *([x] if has_example else []))
        np.random.seed(3)
        return train(model, x)

    for losses in simulated.run(act, 3).results:
        np.testing.assert_allclose(losses, expected, 1e-9)
