"""Renormalized and decorrelated batches against NumPy."""

import numpy
import pytest
from scipy.linalg import sqrtm

import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(4, 4, 3)) * 2 + 1
gamma, beta = rng.normal(size=4), rng.normal(size=4)
averages = rng.normal(size=4), rng.uniform(1, 4, size=4)


def wide(v):
    return v[:, None]


def test_batch_renormalization():
    mean0, var0 = x.mean((0, 2)), x.var((0, 2))
    s, running = numpy.sqrt(var0 + 1e-3), numpy.sqrt(averages[1] + 1e-3)
    r = numpy.clip(s / running, 1 / 1.2, 1.2)
    d = numpy.clip((mean0 - averages[0]) / running, -0.3, 0.3)
    assert (r == 1.2).any() or (r == 1 / 1.2).any()

    def reference(x, gamma, beta):
        hat = (x - wide(x.mean((0, 2)))) / wide(numpy.sqrt(x.var((0, 2)) + 1e-3))
        return (hat * wide(r) + wide(d)) * wide(gamma) + wide(beta)

    def function(x, gamma, beta):
        kept = [a.astype(numpy.promote_types(x.dtype, "f")) for a in averages]
        return F.batch_renormalization(x, gamma, beta, 1.2, 0.3, 1e-3, *kept)

    check(function, reference, x, gamma, beta, gradients=False)


def test_gradients_of_batch_renormalization_take_the_correction_as_constant():
    # Where r and d are clipped, they are constants.
    mean, var = numpy.full(4, 50.0), numpy.full(4, 100.0)

    def function(x, gamma, beta):
        return F.batch_renormalization(x, gamma, beta, 1.1, 0.1, 1e-3, mean, var)

    gy = rng.normal(size=x.shape)
    gradient_check.check_backward(function, (x, gamma, beta), gy, eps=1e-5)
    gradient_check.check_double_backward(
        lambda *a: function(*a) ** 2,
        (x, gamma, beta),
        gy,
        [rng.normal(size=v.shape) for v in (x, gamma, beta)],
        eps=1e-5,
    )


def test_running_averages_are_updated_on_request():
    mean, var = (a.copy() for a in averages)
    F.batch_renormalization(x, gamma, beta, 2, 2, 1e-3, mean, var, 0.7)
    numpy.testing.assert_array_equal([mean, var], averages)
    F.batch_renormalization(x, gamma, beta, 2, 2, 1e-3, mean, var, 0.7, True)
    numpy.testing.assert_allclose(mean, 0.7 * averages[0] + 0.3 * x.mean((0, 2)))
    unbiased = x.var((0, 2), ddof=1)
    numpy.testing.assert_allclose(var, 0.7 * averages[1] + 0.3 * unbiased)


def test_fixed_batch_renormalization():
    check(
        F.fixed_batch_renormalization,
        lambda x, gamma, beta, mean, var: (
            (x - wide(mean)) / wide(numpy.sqrt(var + 2e-5)) * wide(gamma) + wide(beta)
        ),
        x,
        gamma,
        beta,
        *averages,
    )


def whitened(x, groups, eps):
    """Each group's elements, their mean and the projection that decorrelates them."""
    y = numpy.zeros_like(x)
    size = x.shape[1] // groups
    means, projections = [], []
    for g in range(groups):
        part = x[:, g * size : (g + 1) * size]
        pixels = part.transpose(1, 0, 2).reshape(size, -1)
        covariance = numpy.cov(pixels, ddof=0) + eps * numpy.eye(size)
        projections.append(numpy.linalg.inv(sqrtm(covariance)))
        means.append(pixels.mean(1))
        pixels = projections[-1] @ (pixels - pixels.mean(1, keepdims=True))
        part = pixels.reshape(size, len(x), -1).transpose(1, 0, 2)
        y[:, g * size : (g + 1) * size] = part
    return y, numpy.array(means), numpy.array(projections)


@pytest.mark.parametrize("groups", [1, 2])
def test_decorrelated_batch_normalization(groups):
    check(
        lambda x: F.decorrelated_batch_normalization(x, groups=groups, eps=1e-2),
        lambda x: whitened(x, groups, 1e-2)[0],
        x,
    )


def test_decorrelated_averages():
    mean, projection = numpy.ones((2, 2)), numpy.ones((2, 2, 2))
    F.decorrelated_batch_normalization(
        x, groups=2, running_mean=mean, running_projection=projection, decay=0.75
    )
    _, means, projections = whitened(x, 2, 2e-5)
    numpy.testing.assert_allclose(mean, 0.75 + 0.25 * means)
    # Chainer multiplies the projection by n / (n - 1), as it does variances.
    numpy.testing.assert_allclose(projection, 0.75 + 0.25 * projections * 12 / 11)


def test_fixed_decorrelated_batch_normalization():
    mean, projection = rng.normal(size=(2, 2)), rng.normal(size=(2, 2, 2))

    def reference(x, mean, projection):
        parts = x.reshape(4, 2, 2, 3) - mean[..., None]
        return numpy.einsum("gij,ngjp->ngip", projection, parts).reshape(x.shape)

    check(
        lambda *v: F.fixed_decorrelated_batch_normalization(*v, groups=2),
        reference,
        x,
        mean,
        projection,
    )


FAULTS = [
    (lambda: F.batch_renormalization(x, gamma, beta, 2, 2), TypeError),
    (
        lambda: F.batch_renormalization(x, gamma[:2], beta, 2, 2, 0, *averages),
        InvalidType,
    ),
    (lambda: F.decorrelated_batch_normalization(x, groups=3), InvalidType),
    (lambda: F.decorrelated_batch_normalization(x[:, 0, 0], groups=1), InvalidType),
    (lambda: F.decorrelated_batch_normalization(x, other=1), TypeError),
    (lambda: F.decorrelated_batch_normalization(x.astype("i"), groups=1), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
