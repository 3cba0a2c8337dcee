"""Random choices: their frequencies, and the functions for given choices."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.functions.noise.seed import draw_seed
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
h, x, w, b = rng.normal(size=(4, 3, 3))


def seeded(function):
    def drawn(*xs):
        numpy.random.seed(3)
        return function(*xs)

    return drawn


def test_gumbel_softmax():
    def reference(log_pi):
        noise = _core.ops.gumbel(numpy.zeros(log_pi.shape), draw_seed(log_pi)).array
        z = numpy.exp((log_pi + noise) / 0.7)
        return z / z.sum(0, keepdims=True)

    check(seeded(lambda x: F.gumbel_softmax(x, 0.7, axis=0)), seeded(reference), h)
    numpy.random.seed(0)
    p = numpy.array([0.2, 0.3, 0.5])
    samples = F.gumbel_softmax(numpy.log(numpy.tile(p, (20000, 1)))).array
    shares = numpy.bincount(samples.argmax(1)) / 20000
    numpy.testing.assert_allclose(shares, p, atol=0.02)


def test_zoneout():
    def reference(h, x):
        kept = numpy.random.random_sample(h.shape) < 0.3
        return numpy.where(kept, h, x)

    check(seeded(lambda h, x: F.zoneout(h, x, 0.3)), seeded(reference), h, x)
    ones = numpy.ones(20000)
    assert F.zoneout(ones, ones * 0, 0.3).array.mean() == pytest.approx(0.3, abs=0.02)
    assert (F.zoneout(h, x, 1.0).array == h).all()
    assert (F.zoneout(h, x, 0.0).array == x).all()
    with renga.using_config("train", False):
        assert (F.zoneout(h, x).array == x).all()


def test_simplified_dropconnect_with_a_mask():
    mask = rng.uniform(size=(3, 3, 3)) < 0.5

    def each(x, w, b):
        return F.simplified_dropconnect(x, w, b, 0.2, mask=mask)

    def one(x, w, b):
        return F.simplified_dropconnect(
            x, w, b, 0.2, mask=mask[0], use_batchwise_mask=False
        )

    def sums(x, w, b):
        return numpy.einsum("ni,noi,oi->no", x, mask / 0.8, w) + b

    check(each, sums, x, w, b[0].copy())
    check(one, lambda x, w, b: x @ (mask[0] / 0.8 * w).T + b, x, w, b[0].copy())
    undropped = F.simplified_dropconnect(x[:, :, None], w, train=False)
    numpy.testing.assert_allclose(undropped.array, x @ w.T)


@pytest.mark.parametrize("batchwise", [True, False])
def test_simplified_dropconnect_draws(batchwise):
    numpy.random.seed(0)
    eye = numpy.eye(200)
    y = F.simplified_dropconnect(
        eye, numpy.ones((100, 200)), ratio=0.2, use_batchwise_mask=batchwise
    )
    assert set(numpy.unique(y.array)) == {0, 1.25}
    assert (y.array == 0).mean() == pytest.approx(0.2, abs=0.02)


FAULTS = [
    (lambda: F.gumbel_softmax(h, 0), ValueError),
    (lambda: F.gumbel_softmax(h, axis=2), InvalidType),
    (lambda: F.zoneout(h, x[0]), InvalidType),
    (lambda: F.zoneout(h, x, train=True), ValueError),
    (lambda: F.zoneout(h, x, other=True), TypeError),
    (lambda: F.simplified_dropconnect(x, w, ratio=1.0), ValueError),
    (lambda: F.simplified_dropconnect(x, w[:, :2]), InvalidType),
    (lambda: F.simplified_dropconnect(x, w, mask=w > 0), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
