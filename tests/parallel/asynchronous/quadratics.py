"""Small problems whose training can be computed by hand in float64."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L


class Point(renga.Link):
    """Parameters of two shapes; its loss pulls them to a target of each batch."""

    def __init__(self, dtype="float64", value=0.0):
        super().__init__()
        with self.init_scope():
            self.a = renga.Parameter(np.full((2, 3), value, dtype))
            self.b = renga.Parameter(np.full(5, value, dtype))

    def forward(self, target):
        distance = F.sum((self.a - target[:6].reshape(2, 3)) ** 2)
        return 0.5 * (distance + F.sum((self.b - target[6:]) ** 2))

    def vector(self):
        return np.concatenate([self.a.array.ravel(), self.b.array])


def targets(rank, steps, dtype="float64"):
    """A target for each step."""
    draw = np.random.RandomState([7, rank]).uniform(-1, 1, (steps, 11))
    return draw.astype(dtype)


class Classifier(renga.Chain):
    """Its first layer has no shape before the first batch."""

    def __init__(self, seed=0):
        super().__init__()
        draw = renga.initializers.Uniform(0.5, rng=np.random.RandomState(seed))
        with self.init_scope():
            self.hidden = L.Linear(None, 5, initialW=draw)
            self.norm = L.BatchNormalization(5)
            self.out = L.Linear(5, 4, initialW=draw)

    def forward(self, x, t):
        h = F.tanh(self.norm(self.hidden(x)))
        return F.softmax_cross_entropy(self.out(h), t)


def batches(steps, samples=12):
    random = np.random.RandomState(3)
    x = random.uniform(-1, 1, (steps, samples, 6)).astype("float32")
    return list(zip(x, random.randint(0, 4, (steps, samples)).astype("int32")))


def parameters(model):
    named = sorted(model.namedparams(include_uninit=False))
    return {name: param.array.copy() for name, param in named}
