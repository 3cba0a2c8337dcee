"""Which functions between links leave activations sharded, and models with them."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizers, serializers
from renga.parallel.conversion.tracing import trace
from renga.parallel.parallelize import parallelize
from tests.links.parallel.differentiate import in_float64

SAMPLES = 8


class Net(renga.Chain):
    """A function of the outputs of two links, before a third."""

    def __init__(self, function):
        super().__init__()
        random = np.random.RandomState(0)

        def init(a):
            a[...] = random.uniform(-0.5, 0.5, a.shape)

        self.function = function
        with self.init_scope():
            self.first = L.Linear(4, 8, initialW=init)
            self.second = L.Linear(4, 2, initialW=init)
            self.last = L.Linear(None, 3, initialW=init)

    def forward(self, x):
        return self.last(self.function(F.sin(self.first(x)), F.cos(self.second(x))))


ONES = np.ones(8, "f4")
FUNCTIONS = {  # and the layouts that they keep
    "one": (lambda h, c: h, {"channel", "batch"}),
    "functions": (lambda h, c: F.erf(h) + F.arctan(h / 2), {"channel", "batch"}),
    "two operands": (lambda h, c: F.arctan2(h, 2 + F.cosh(h)), {"channel", "batch"}),
    "samples": (lambda h, c: F.lstm(c, h)[1], {"batch"}),
    "an array": (lambda h, c: F.where(h.array > 0, h, -h), set()),
    "weights": (lambda h, c: F.linear(h, F.exp(h)), set()),
    "statistics": (lambda h, c: F.batch_normalization(h, ONES, ONES), set()),
    "an axis": (lambda h, c: F.softmax(h), set()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_layouts_that_functions_keep(name):
    function, layouts = FUNCTIONS[name]
    x = np.random.RandomState(1).normal(size=(SAMPLES, 4)).astype("f4")
    model = Net(function)
    traced = trace(model, [x], (L.Linear,))
    (last,) = [call for call in traced.calls if call.link is model.last]
    assert set(traced.groups.choices(last.x)) == layouts


class Sequences(renga.Chain):
    """A function between two links of sequences."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.up, self.down = L.Linear(4, 6), L.Linear(6, 4)

    def forward(self, x):
        h = self.function(self.up(F.tanh(x), n_batch_axes=2))
        return self.down(h, n_batch_axes=2)


@pytest.mark.parametrize(
    ("function", "layouts"),
    [
        (lambda h: F.dropout(F.gelu(h)), {"features"}),
        (lambda h: h * np.ones(6, "f4"), set()),
        (lambda h: F.softmax(h, 2), set()),
        (lambda h: F.transpose(F.transpose(h)), set()),
    ],
    ids=["pointwise", "an array", "an axis", "another order"],
)
def test_layouts_of_sequences(function, layouts):
    x = np.random.RandomState(1).normal(size=(2, 3, 4)).astype("f4")
    model = Sequences(function)
    traced = trace(model, [x], (L.Linear,))
    first, last = traced.calls
    assert set(traced.groups.choices(last.x)) == layouts
    assert traced.groups.choices(first.x) == traced.groups.choices(last.y) == []
    assert (last.batch_axes, last.pixels) == (2, 1)


def train(model):
    random = np.random.RandomState(2)
    optimizer = optimizers.MomentumSGD(0.1).setup(model)
    for _ in range(3):
        x, t = random.normal(size=(SAMPLES, 4)), random.randint(0, 3, SAMPLES)
        optimizer.update(
            lambda x, t: F.softmax_cross_entropy(model(x), t), x, t.astype("i4")
        )
    state = {}
    serializers.DictionarySerializer(state).save(model)
    with renga.no_backprop_mode():
        return state | {"y": model(x).array}


@pytest.mark.parametrize("name", ["functions", "two operands", "samples", "an array"])
def test_three_steps(name, ranks):
    function, _ = FUNCTIONS[name]
    with renga.using_config("dtype", np.float64):
        expected = train(Net(function))

    @in_float64
    def on_rank(comm):
        x = np.random.RandomState(1).normal(size=(SAMPLES, 4))
        return train(parallelize(Net(function), comm, "channel", x))

    for found in ranks(on_rank):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, 1e-9, 1e-11, err_msg=key)
