"""Sharded images under mixed_bfloat16: rounded where the serial links round."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.links.parallel import spatial as S
from renga.parallel.parallelize import parallelize

# Half a unit in the last place of a bfloat16 number.
HALF = 2.0**-8


def numbers(seed, *shape):
    x = np.random.default_rng(seed).normal(0, 1, shape).astype("f")
    return (x.view("u4") & 0xFFFF0000).view("f")  # bfloat16 numbers


def is_rounded(x):
    return not np.any(np.ascontiguousarray(x).view("u4") & 0xFFFF)


def gradients(link, x, gy, whole=lambda a: a):
    x = renga.Variable(x)
    y = link(x)
    y.grad = gy
    link.cleargrads()
    y.backward()
    return whole(y.array), whole(x.grad), link.W.grad, link.b.grad


def relative_errors(found, expected):
    """Root mean squares."""
    pairs = zip(found, expected)
    return [np.sqrt(np.mean((a - c) ** 2) / np.mean(c**2)) for a, c in pairs]


@pytest.mark.parametrize("ksize, stride", [(3, 1), (3, 2), (4, 2), (5, 1)])
@pytest.mark.parametrize("kind", ["Convolution2D", "Deconvolution2D"])
def test_convolution(kind, ksize, stride):
    x, b = numbers(0, 2, 32, 16, 12), numbers(2, 32)
    W = np.random.default_rng(1).normal(0, 0.03, (32, 32, ksize, ksize)).astype("f")
    outsize = () if kind == "Convolution2D" else (None,)
    options = (32, 32, ksize, stride, 1, False, *outsize, W, b)
    with renga.using_config("dtype", np.float64):
        exact = getattr(L, kind)(*options)
        gy = numbers(3, *exact(x.astype("f8")).shape)
        expected = gradients(exact, x.astype("f8"), gy.astype("f8"))

    def on_rank(comm):
        grid = S.SpatialGrid(comm, (2, comm.size // 2))
        renga.config.dtype = renga.mixed_bfloat16
        link = getattr(S, "Spatial" + kind)(grid, *options)
        parts = (S.scatter_image(grid, a).array for a in (x, gy))
        return gradients(link, *parts, lambda a: S.gather_image(grid, a).array)

    with renga.using_config("dtype", renga.mixed_bfloat16):
        serial = gradients(getattr(L, kind)(*options), x, gy)
    for size in (2, 4):
        for found in local.run(on_rank, ranks=size):
            assert is_rounded(found[0]) and not is_rounded(found[2])
            errors = [relative_errors(g, expected) for g in (found, serial)]
            for error, usual in zip(*errors):
                assert error < 1.2 * usual + 1e-6


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)

        def init(a):
            a[...] = random.uniform(-0.2, 0.2, a.shape)

        with self.init_scope():
            self.conv = L.Convolution2D(3, 8, 3, pad=1, initialW=init)
            self.bn = L.BatchNormalization(8)
            self.fc = L.Linear(8 * 36, 3, initialW=init)

    def forward(self, x):
        normalized = self.bn(self.conv(x))
        pooled = F.max_pooling_2d(F.relu(normalized), 3, 2, 1)
        return normalized, pooled, self.fc(pooled)


def test_activations_of_a_model_stay_bfloat16():
    x = numbers(0, 2, 3, 11, 11)
    with renga.using_config("dtype", renga.mixed_bfloat16):
        model = Net()
        expected = [y.array for y in model(x)]

    def on_rank(comm):
        renga.config.dtype = renga.mixed_bfloat16
        net = parallelize(model, comm, "spatial", input="sharded")
        *images, y = net(S.scatter_image(comm, x))
        assert all(is_rounded(image.array) for image in images)
        return [*(S.gather_image(comm, image).array for image in images), y.array]

    for found in local.run(on_rank, ranks=3):
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=0, atol=4 * HALF * abs(b).max())
