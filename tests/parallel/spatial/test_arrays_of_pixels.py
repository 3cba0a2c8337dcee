"""Functions of sharded images and of arrays for some of their axes."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import parallelize

random = np.random.RandomState(0)
X = random.normal(size=(2, 3, 6, 5))
SHAPES = {
    "scale": ((F.scale, {"axis": 1}), (3, 6, 5)),
    "scale of rows": ((F.scale, {"axis": 2}), (6,)),
    "scale of columns": ((F.scale, {"axis": 3}), (5,)),
    "scale of channels": ((F.scale, {}), (3,)),
    "scale of everything": ((F.scale, {"axis": 0}), (2, 3, 6, 5)),
    "bias": ((F.bias, {"axis": 2}), (6, 5)),
    "swish": ((F.swish, {}), (3, 6, 5)),
    "prelu": ((F.prelu, {}), (3, 6)),
    "sum with a number for each channel": ((F.add, {}), (3, 1, 1)),
    "sum with a row": ((F.add, {}), (1, 5)),
}


class Beside(renga.Chain):
    """A convolution, and a function of its images and of a parameter."""

    def __init__(self, function, options, shape):
        super().__init__()
        draw = np.random.RandomState(1).normal
        self.function, self.options = function, options
        with self.init_scope():
            self.conv = L.Convolution2D(
                3, 3, 3, pad=1, initialW=draw(size=(3, 3, 3, 3))
            )
            self.a = renga.Parameter(draw(size=shape))

    def forward(self, x):
        return self.function(self.conv(x), self.a, **self.options)


def results(model):
    model.cleargrads()
    y = model(X)
    F.sum(y**3).backward()
    return y.array, model.a.grad, model.conv.W.grad


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("ranks", [2, 3])
def test_results_are_those_of_whole_images(name, ranks):
    call, shape = SHAPES[name]

    def rank(comm):
        with renga.using_config("dtype", np.float64):
            expected = results(Beside(*call, shape))
            return expected, results(parallelize(Beside(*call, shape), comm, "spatial"))

    for expected, found in local.run(rank, ranks=ranks):
        for x, y in zip(found, expected):
            np.testing.assert_allclose(x, y, 1e-10, 1e-10)
