"""dropout and gaussian: modes, seeds and statistics."""

import numpy
import pytest
from scipy import stats

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType

x = numpy.random.default_rng(0).uniform(1, 2, (200, 50)).astype("f")


def test_dropout_zeroes_some_and_scales_the_rest():
    numpy.random.seed(0)
    v = renga.Variable(x)
    y = F.dropout(v, 0.3)
    kept = y.array != 0
    assert stats.binomtest(int(kept.sum()), x.size, 0.7).pvalue > 1e-3
    numpy.testing.assert_allclose(y.array[kept], x[kept] / 0.7, 1e-5)
    y.grad = x
    y.backward()
    numpy.testing.assert_allclose(v.grad, numpy.where(kept, x / 0.7, 0), 1e-5)


@pytest.mark.parametrize("dtype", ["d", "f", "e"])
def test_dropout_of_elements_with_gaps(dtype):
    wide = numpy.repeat(x.astype(dtype), 2, axis=1)
    results = []
    for v, gy in ((x.astype(dtype), x), (wide[:, ::2], x[:, ::-1].copy()[:, ::-1])):
        v = renga.Variable(v)
        numpy.random.seed(1)
        y = F.dropout(v, 0.3)
        y.grad = gy.astype(dtype)
        y.backward()
        results.append((y.array, v.grad))
    for a, b in zip(*results):
        numpy.testing.assert_array_equal(a, b)
    kept = results[0][0] != 0
    numpy.testing.assert_allclose(results[1][1], kept * x / 0.7, 2e-3)


def test_numpys_seed_decides():
    def draw():
        numpy.random.seed(5)
        y, z = F.dropout(x), F.dropout(x)
        return y.array, z.array, F.gaussian(x, x).array

    first, second = draw(), draw()
    for a, b in zip(first, second):
        numpy.testing.assert_array_equal(a, b)
    assert (first[0] != first[1]).any()


def test_dropout_outside_training():
    v = renga.Variable(x)
    with renga.using_config("train", False):
        assert F.dropout(v) is v
        assert F.dropout(v, 7.0) is v
        assert F.dropout(v, mask=x) is v
        y, mask = F.dropout(v, return_mask=True)
    assert y is v and mask is None


def test_dropout_without_a_ratio():
    numpy.testing.assert_array_equal(F.dropout(x, 0.0).array, x)


def test_dropout_mask():
    y, mask = F.dropout(x, 0.25, return_mask=True)
    assert set(numpy.unique(mask).tolist()) == {0, float(numpy.float32(1 / 0.75))}
    numpy.testing.assert_array_equal(y.array, x * mask)
    again = F.dropout(x, 0.25, mask=mask)
    numpy.testing.assert_array_equal(again.array, y.array)
    again, same = F.dropout(x, mask=mask, return_mask=True)
    assert same is mask


def test_dropout_faults():
    for ratio in (1.0, -0.1, 2):
        with pytest.raises(ValueError):
            F.dropout(x, ratio)
    with pytest.raises(ValueError, match="using_config"):
        F.dropout(x, train=False)
    with pytest.raises(TypeError, match="'other'"):
        F.dropout(x, other=1)
    with pytest.raises(InvalidType):
        F.dropout(x.astype("i"))
    with pytest.raises(InvalidType):
        F.dropout(x, mask=x[0])


def test_gaussian_statistics():
    numpy.random.seed(0)
    mean, ln_var = numpy.full(x.shape, 3.0), numpy.full(x.shape, numpy.log(4.0))
    y = F.gaussian(mean, ln_var).array
    assert stats.kstest((y - 3).ravel() / 2, "norm").pvalue > 1e-3


def test_gaussian_with_given_numbers():
    mean, ln_var, eps = x, x - 1.5, numpy.random.normal(size=x.shape).astype("f")
    expected = mean + numpy.exp(ln_var.astype("d") / 2) * eps
    y = F.gaussian(mean, ln_var, eps=eps)
    assert y.dtype == numpy.float32
    numpy.testing.assert_allclose(y.array, expected, 1e-4, 1e-5)
    y, drawn = F.gaussian(mean, ln_var, return_eps=True)
    expected = mean + numpy.exp(ln_var.astype("d") / 2) * drawn
    numpy.testing.assert_allclose(y.array, expected, 1e-4, 1e-5)
    y, same = F.gaussian(mean, ln_var, eps=eps, return_eps=True)
    assert same is eps


def test_gaussian_gradients():
    v, w = renga.Variable(x), renga.Variable(x - 1.5)
    y, eps = F.gaussian(v, w, return_eps=True)
    F.sum(y).backward()
    assert (v.grad == 1).all()
    numpy.testing.assert_allclose(w.grad, numpy.exp(w.array / 2) * eps / 2, 1e-4, 1e-6)


def test_gaussian_faults():
    with pytest.raises(InvalidType):
        F.gaussian(x, x[:1])
    with pytest.raises(InvalidType):
        F.gaussian(x, x.astype("d"))
    with pytest.raises(TypeError):
        F.gaussian(x, x, other=1)
