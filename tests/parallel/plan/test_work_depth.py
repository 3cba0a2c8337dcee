"""Work and depth against a graph of every single arithmetic operation."""

import itertools
import math

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import planning


class Scalars:
    """Counts operations on scalars, each of which knows its depth."""

    def __init__(self):
        self.work = 0

    def apply(self, *depths):
        self.work += 1
        return 1 + max(depths)

    def tree(self, depths):
        depths = list(depths)
        while len(depths) > 1:
            pairs = zip(depths[::2], depths[1::2])
            rest = depths[len(depths) - len(depths) % 2 :]
            depths = [self.apply(a, b) for a, b in pairs] + rest
        return depths[0]


def convolution(scalars, x, W, pad):
    n, _, height, width = x.shape
    o, channels, k, m = W.shape
    padded = np.zeros((n, channels, height + 2 * pad, width + 2 * pad), int)
    padded[:, :, pad : pad + height, pad : pad + width] = x
    y = np.zeros((n, o, height + 2 * pad - k + 1, width + 2 * pad - m + 1), int)
    for i, f, r, c in np.ndindex(*y.shape):
        window = padded[i, :, r : r + k, c : c + m].ravel()
        products = [scalars.apply(depth) for depth in window]
        y[i, f, r, c] = scalars.tree([*products, 0])  # and the bias
    return y


def linear(scalars, x, outputs):
    y = np.zeros((len(x), outputs), int)
    for i, j in np.ndindex(*y.shape):
        products = [scalars.apply(depth) for depth in x[i].ravel()]
        y[i, j] = scalars.tree([*products, 0])
    return y


def pointwise(scalars, *xs):
    y = np.zeros(xs[0].shape, int)
    for index in np.ndindex(*y.shape):
        y[index] = scalars.apply(*(x[index] for x in xs))
    return y


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(2, 3, 3, pad=1)
            self.c2 = L.Convolution2D(3, 3, 1)
            self.f1 = L.Linear(3 * 4 * 3, 5)
            self.f2 = L.Linear(5, 2)

    def forward(self, x):
        h = F.relu(self.c1(x))
        h = F.relu(self.c2(h)) + h
        return self.f2(F.relu(self.f1(h)))


def test_work_and_depth_are_those_of_the_scalar_graph():
    model, x = Net(), np.ones((2, 2, 4, 3), np.float32)
    scalars = Scalars()
    h = convolution(scalars, np.zeros(x.shape, int), model.c1.W.array, 1)
    h = pointwise(scalars, h)
    g = pointwise(scalars, convolution(scalars, h, model.c2.W.array, 0))
    h = pointwise(scalars, g, h)  # branches: the longer one counts
    h = pointwise(scalars, linear(scalars, h, 5))
    y = linear(scalars, h, 2)
    found = planning.work_depth(model, x, strategies=("data",))
    assert found.work == scalars.work
    assert found.depth == y.max()


def test_volumes_are_those_of_closed_forms():
    model, x, ranks = Net(), np.ones((8, 2, 4, 3), np.float32), 2
    found = planning.work_depth(model, x, ranks=ranks)
    parameters = sum(4 * p.size for p in model.params())
    # A ring: each rank sends 2 (p - 1) / p of the gradients, and nothing else.
    assert found.volume("data") == 2 * (ranks - 1) / ranks * parameters
    # All-gathers of the larger shards of inputs: 1 of 2, 2 of 3 and 2 of 3 channels of
    # 12 pixels, 3 of 5 features; and reduce-scatters of gradients, but the image's.
    shards = [4 * 8 * n for n in (12, 24, 24, 3)]
    assert found.volume("channel") == 2 * sum(shards) - shards[0]
    assert found.memory("channel") < found.memory("data")
    text = str(found)
    for words in ("/c1 convolution_2d", "data sends", "pipeline holds", "2 ranks"):
        assert words in text


def test_a_strategy_has_to_be_known():
    with pytest.raises(ValueError, match="got 'magic'"):
        planning.work_depth(Net(), np.ones((2, 2, 4, 3), "f"), strategies=("magic",))


def test_a_picture_is_drawn(tmp_path, monkeypatch):
    axes = pytest.importorskip("matplotlib.axes").Axes
    bar, drawn = axes.bar, []

    def noted(self, x, height, *args, **options):
        drawn.append(height)
        return bar(self, x, height, *args, **options)

    monkeypatch.setattr(axes, "bar", noted)
    found = planning.work_depth(Net(), np.ones((2, 2, 4, 3), "f"), ("data",))
    found.draw(tmp_path / "work.svg")
    # Megabytes, of all layers together.
    assert sum(drawn[1]) == pytest.approx(found.volume("data") / 1e6)
    text = (tmp_path / "work.svg").read_text()
    assert text.count("<path") > 20 and "</svg>" in text
    assert math.isfinite(found.work / found.depth)
    assert list(itertools.chain(found.layers))
