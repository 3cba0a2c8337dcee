"""lr_range_test on a loss whose course has a closed form."""

import math

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.training import lr_range_test


class Quadratic(renga.Link):
    """Half of the square of one parameter."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = renga.Parameter(numpy.full(1, 2, "f"))

    def forward(self, scale):
        return F.sum(scale * self.w * self.w) / 2


BATCHES = [numpy.ones(1, "f")] * 1000


def test_losses_follow_the_updates_of_sgd():
    optimizer = renga.optimizers.SGD(0.5).setup(Quadratic())
    found = lr_range_test(optimizer, BATCHES, 1e-3, 1.0, steps=30)
    rates = numpy.geomspace(1e-3, 1, 30)
    numpy.testing.assert_allclose(found.rates, rates, rtol=1e-12)
    # w is multiplied by 1 - rate at each update.
    w = 2 * numpy.cumprod([1, *(1 - rates[:-1])])
    weights = [0.9 ** numpy.arange(i, -1, -1) for i in range(30)]
    smooth = [numpy.average(w[: i + 1] ** 2 / 2, weights=weights[i]) for i in range(30)]
    numpy.testing.assert_allclose(found.losses, smooth, rtol=1e-4)
    slopes = numpy.gradient(smooth, numpy.log(rates))
    assert found.suggestion == pytest.approx(rates[slopes.argmin()])


def test_it_ends_where_the_loss_explodes():
    optimizer = renga.optimizers.SGD().setup(Quadratic())
    found = lr_range_test(optimizer, BATCHES, 0.1, 100.0, steps=50)
    assert len(found.rates) < 50 and found.rates[-1] < 20


def test_nothing_changes():
    numpy.random.seed(3)
    expected = numpy.random.random(2)
    numpy.random.seed(3)
    model = L.Classifier(renga.Sequential(L.Linear(None, 4), L.Linear(4, 2)))
    optimizer = renga.optimizers.Adam(0.25).setup(model)

    def batches():
        for _ in range(5):
            numpy.random.random(7)
            yield numpy.ones((2, 3), "f"), numpy.zeros(2, "i")

    state = numpy.random.get_state()
    found = lr_range_test(optimizer, batches())
    # By default 100 from a millionth to 1, but the batches ended.
    rates = 1e-6 * 10 ** (6 / 99 * numpy.arange(5))
    numpy.testing.assert_allclose(found.rates, rates, 1e-12)
    assert optimizer.t == 0 and optimizer.alpha == 0.25
    assert model.predictor[0].W.array is None
    numpy.random.set_state(state)
    assert numpy.random.random(2).shape == expected.shape
    # The state after the test is that before it.
    numpy.random.seed(3)
    lr_range_test(optimizer, batches())
    numpy.testing.assert_array_equal(numpy.random.random(2), expected)


def test_the_loss_may_be_a_function_of_the_copy():
    optimizer = renga.optimizers.SGD(0.5).setup(model := Quadratic())
    expected = lr_range_test(optimizer, BATCHES, 1e-3, 1.0, steps=30)
    found = lr_range_test(
        *(optimizer, BATCHES, 1e-3, 1.0),
        steps=30,
        loss_func=lambda copy, scale: F.sum(scale * copy.w * copy.w) / 2,
    )
    assert found == expected
    assert model.w.array == 2


def test_a_loss_that_never_falls_gives_no_rate():
    optimizer = renga.optimizers.SGD().setup(Quadratic())
    found = lr_range_test(
        optimizer, BATCHES, steps=10, loss_func=lambda model, x: F.sum(x)
    )
    assert math.isnan(found.suggestion)


def test_mistakes():
    with pytest.raises(RuntimeError, match="setup"):
        lr_range_test(renga.optimizers.SGD(), BATCHES)
    optimizer = renga.optimizers.AdaDelta().setup(Quadratic())
    with pytest.raises(ValueError, match="with a learning rate, got AdaDelta"):
        lr_range_test(optimizer, BATCHES)
    optimizer = renga.optimizers.SGD().setup(Quadratic())
    with pytest.raises(ValueError, match="0 < low < high"):
        lr_range_test(optimizer, BATCHES, 1.0, 0.1)
