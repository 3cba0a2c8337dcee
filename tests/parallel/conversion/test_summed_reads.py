"""Parameters without a link, other variables and constants beside shards."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.parallel.parallelize import parallelize
from tests.links.parallel.differentiate import in_float64


def numbers(*shape):
    return np.random.RandomState(len(shape)).normal(size=shape)


class Images(renga.Chain):
    x = numbers(2, 3, 7, 5)
    strategy = "spatial"

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.link = L.Convolution2D(3, 4, 3, pad=1, initialW=numbers(4, 3, 3, 3))
            self.scale = L.Scale(1, (4,), bias_term=True)
            self.scalar = renga.Parameter(np.array(0.5))
            self.table = renga.Parameter(numbers(1, 4, 1, 1))
        self.scale.W.array[...] = numbers(4)
        self.constant = numbers(1, 4, 1, 1)
        self.leaf = renga.Variable(numbers(1, 4, 1, 1))

    def forward(self, x):
        return self.function(self, F.tanh(self.link(x)))


class Texts(Images):
    x = numbers(2, 7, 4)
    strategy = "sequence"

    def __init__(self, function):
        super().__init__(function)
        del self.link, self.scale, self.table
        with self.init_scope():
            self.link = L.Linear(4, 4, initialW=numbers(4, 4))
            self.scale = L.Scale(2, (4,), bias_term=True)
            self.table = renga.Parameter(numbers(1, 1, 4))
        self.constant = numbers(1, 1, 4)
        self.leaf = renga.Variable(numbers(1, 1, 4))

    def forward(self, x):
        return self.function(self, F.tanh(self.link(x, n_batch_axes=2)))


def penalized(model, h):
    """Values that have been broadcast go through other functions."""
    penalty = F.reshape(F.sum(model.link.W**2), (1,) * h.ndim)
    expanded = 0.1 * F.broadcast_to(penalty, h.shape)
    return h + F.exp(-expanded) * expanded


FUNCTIONS = {
    "scale": lambda model, h: model.scale(h),
    "scalar": lambda model, h: h * F.broadcast_to(model.scalar, h.shape),
    "number": lambda model, h: h * model.scalar + F.sqrt(F.sum(model.scale.W**2)),
    "table": lambda model, h: (h + model.table) * model.table,
    "twice": lambda model, h: model.scale(model.scale(h) * model.table),
    "penalized": penalized,
    "constant": lambda model, h: model.constant - h * (model.constant + 2),
    "constants": lambda model, h: F.maximum(h, np.exp(model.constant) - 1),
    "leaf": lambda model, h: (h + model.leaf) * model.leaf,
}


def train(model):
    optimizer = renga.optimizers.MomentumSGD(0.05).setup(model)
    losses = []
    for _ in range(3):
        x = renga.Variable(model.x)
        loss = F.mean((model(x) - 0.2) ** 2)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    found = {name: param.array for name, param in model.namedparams()}
    gradients = {"gx": x.grad, "gleaf": model.leaf.grad}
    found.update((name, g) for name, g in gradients.items() if g is not None)
    return {**found, "losses": np.array(losses)}


def check(kind, function, *example):
    """Losses, gradients and parameters of three ranks are those of one process."""
    with renga.using_config("dtype", np.float64):
        expected = train(kind(FUNCTIONS[function]))

    @in_float64
    def act(comm):
        model = kind(FUNCTIONS[function])
        return train(parallelize(model, comm, kind.strategy, *example))

    for found in local.run(act, ranks=3):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-9, 1e-10, err_msg=name)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", [Images, Texts])
@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
def test_gradients_are_those_of_one_process(kind, function, has_example):
    check(kind, function, *([kind.x] if has_example else []))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind,shape", [(Images, (2, 3, 3, 1)), (Texts, (2, 3, 4))])
def test_one_pixel_or_token_on_each_rank(kind, shape, function):
    """Shards have the shapes of constants that are broadcast."""

    class Small(kind):
        x = numbers(*shape)

    check(Small, function)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind,shape", [(Images, (2, 3, 2, 5)), (Texts, (2, 2, 4))])
def test_a_rank_without_pixels_or_tokens(kind, shape, function):
    """Values that have been broadcast before are refused, others are right."""

    class Few(kind):
        x = numbers(*shape)

    if function in ("scalar", "penalized"):
        with pytest.raises(ValueError, match="shards that are not empty beside"):
            check(Few, function)
        return
    check(Few, function)


@pytest.mark.parametrize("kind,shape", [(Images, (2, 3, 3, 1)), (Texts, (2, 3, 4))])
def test_an_array_of_one_pixel_or_token_on_each_rank(kind, shape):
    """A function takes the argument, which is no Variable, before any link."""

    class Bent(kind):
        def forward(self, x):
            return super().forward(F.sin(x) * x)

    @in_float64
    def outputs(comm):
        model = Bent(FUNCTIONS["constant"])
        model = parallelize(model, comm, kind.strategy) if comm else model
        return model(numbers(*shape)).array

    for found in local.run(outputs, ranks=3):
        np.testing.assert_allclose(found, outputs(None), 1e-9, 1e-10)


class Gated(Images):
    """Takes images, and one factor for all pixels of each."""

    def forward(self, x, gate):
        return F.tanh(self.link(x)) * gate


@pytest.mark.parametrize("shape", [(2, 3, 7, 5), (2, 3, 3, 1), (2, 3, 1, 1)])
def test_an_argument_of_one_pixel_for_each_image(shape):
    def differentiate(model):
        x, gate = renga.Variable(numbers(*shape)), renga.Variable(numbers(2, 1, 1, 1))
        y = model(x, gate)
        F.sum(y**3).backward()
        return y.array, x.grad, gate.grad

    with renga.using_config("dtype", np.float64):
        expected = differentiate(Gated(None))

    @in_float64
    def act(comm):
        return differentiate(parallelize(Gated(None), comm, "spatial"))

    for found in local.run(act, ranks=3):
        for x, value in zip(found, expected):
            np.testing.assert_allclose(x, value, 1e-9, 1e-10)
