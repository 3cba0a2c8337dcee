"""A network in float64, and how one process and a pipeline train it."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.optimizers import MomentumSGD
from renga.pipeline import Pipeline
from tests.parallel.pipeline.oracles import accumulated


class Layers(renga.Chain):
    """Four layers; subclasses put something in between."""

    def __init__(self, seed=0):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.a, self.b = L.Linear(6, 8), L.Linear(8, 8)
            self.c, self.d = L.Linear(8, 8), L.Linear(8, 5)
        random = np.random.RandomState(seed)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.3, param.shape)

    def predict(self, x):
        h = F.tanh(self.b(F.tanh(self.a(x))))
        return self.d(F.tanh(self.c(h)))

    def forward(self, x, t):
        return F.softmax_cross_entropy(self.predict(x), t)


def batches(sizes=(7, 7, 7), seed=5):
    """Vectors and labels."""
    random = np.random.RandomState(seed)
    return [(random.randn(n, 6), random.randint(0, 5, n).astype("i")) for n in sizes]


def serial(network, data, m=1, optimizer=None):
    """The parameters of one process that adds up gradients of micro-batches."""
    return accumulated(network(), optimizer or MomentumSGD(0.1), data, m)


def pipeline(network, comm, data, m=3, example=None, **options):
    """A pipeline and its optimizer."""
    parts = example or tuple(x[:2] for x in data[0])
    model = Pipeline(network(), comm, *parts, micro_batches=m, **options)
    return model, MomentumSGD(0.1).setup(model)


def whole(model):
    """The parameters of all stages."""
    with model.gathered_parameters():
        return {path: np.array(p.array) for path, p in model.model.namedparams()}


def trained(network, comm, data, m=3, loss=None, **options):
    """The parameters of all stages after training."""
    model, optimizer = pipeline(network, comm, data, m, **options)
    for batch in data:
        model.train_batch(optimizer, loss or model.model, batch)
    return whole(model)


def assert_close(found, expected):
    assert sorted(found) == sorted(expected)
    for name, x in expected.items():
        assert found[name].shape == x.shape, name
        np.testing.assert_allclose(found[name], x, 1e-9, 1e-12, err_msg=name)
