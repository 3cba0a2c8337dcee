"""Normalizations against NumPy's formulas."""

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 6, 3)) * 2
flat, gamma, beta = x[..., 0].copy(), *rng.normal(size=(2, 6))


def standard(x, axis, eps=1e-5):
    return (x - x.mean(axis, keepdims=True)) / numpy.sqrt(
        x.var(axis, keepdims=True) + eps
    )


def grouped(x, gamma, beta):
    y = standard(x.reshape(2, 3, -1), 2).reshape(x.shape)
    shape = (1, 6) + (1,) * (x.ndim - 2)
    return y * gamma.reshape(shape) + beta.reshape(shape)


def responses(n, k, alpha, beta):
    def reference(x):
        y = numpy.empty_like(x)
        for c in range(x.shape[1]):
            near = x[:, max(c - n // 2, 0) : c + n // 2 + 1]
            y[:, c] = x[:, c] / (k + alpha * (near**2).sum(1)) ** beta
        return y

    return reference


def lengths(axis, eps=1e-5):
    return lambda x: x / (numpy.sqrt((x * x).sum(axis, keepdims=True)) + eps)


def group(x, gamma, beta):
    return F.group_normalization(x, 3, gamma, beta)


CASES = {
    "normalize": (F.normalize, lengths(1), x),
    "normalize axes": (lambda x: F.normalize(x, 1.0, (1, -1)), lengths((1, 2), 1), x),
    "layer": (
        F.layer_normalization,
        lambda x, gamma, beta: standard(x, 1) * gamma + beta,
        flat,
        gamma,
        beta,
    ),
    "layer of pixels": (
        lambda x, gamma, beta: F.layer_normalization(x, gamma, beta, 0.1),
        lambda x, gamma, beta: standard(x, (1, 2, 3), 0.1) * gamma + beta,
        rng.normal(1, 2, size=(2, 3, 4, 5)),
        rng.normal(size=(3, 4, 5)),
        rng.normal(size=(3, 4, 5)),
    ),
    "root mean square": (
        lambda x, gamma: F.rms_normalization(x, gamma, 0.1),
        lambda x, gamma: x / numpy.sqrt((x**2).mean(-1, keepdims=True) + 0.1) * gamma,
        rng.normal(1, 2, size=(2, 3, 20)),
        rng.normal(size=20),
    ),
    "group": (group, grouped, x, gamma, beta),
    "group of units": (group, grouped, flat, gamma, beta),
    "response": (F.local_response_normalization, responses(5, 2, 1e-4, 0.75), x),
    "response of four": (
        lambda x: F.local_response_normalization(x, 4, 1, 0.5, 0.6),
        responses(4, 1, 0.5, 0.6),
        x,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    function, reference, *arrays = CASES[name]
    check(function, reference, *arrays)


def test_large_halves():
    big = (flat * 1000).astype("e")
    one, zero = numpy.ones(6, "e"), numpy.zeros(6, "e")
    wide = big.astype("d")
    for found, expected in (
        (F.normalize(big), lengths(1)(wide)),
        (F.layer_normalization(big, one, zero), standard(wide, 1)),
        (group(big, one, zero), grouped(wide, one, zero)),
        (F.local_response_normalization(big), responses(5, 2, 1e-4, 0.75)(wide)),
    ):
        assert found.dtype == numpy.float16
        numpy.testing.assert_allclose(found.array, expected, 5e-3, 1e-3)


def test_rows_far_from_zero():
    x = (1e4 + rng.normal(size=(3, 5000))).astype("f")
    one, zero = numpy.ones(5000, "f"), numpy.zeros(5000, "f")
    found = F.layer_normalization(x, one, zero).array
    numpy.testing.assert_allclose(found, standard(x.astype("d"), 1), 0, 2e-3)


def test_activations_narrower_than_parameters():
    v = renga.Variable(flat.astype("e"))
    ws = [renga.Variable(w.astype("f")) for w in (gamma, beta)]
    y = F.layer_normalization(v, *ws)
    F.sum(y * y).backward()
    assert (y.dtype, v.grad.dtype, ws[0].grad.dtype) == ("e", "e", "f")
    expected = standard(flat, 1) * gamma + beta
    numpy.testing.assert_allclose(y.array, expected, 1e-2, 1e-2)


def test_a_vector_of_zeros():
    v = renga.Variable(numpy.zeros((1, 2)))
    y = F.normalize(v, eps=0.5)
    y.grad = numpy.ones((1, 2))
    y.backward()
    assert (y.array == 0).all() and (v.grad == 2).all()


FAULTS = [
    (lambda: F.normalize(x, axis=3), InvalidType),
    (lambda: F.normalize(x.astype("i")), InvalidType),
    (lambda: F.layer_normalization(x, gamma, beta), InvalidType),
    (lambda: F.layer_normalization(flat, gamma[:2], beta), InvalidType),
    (lambda: F.layer_normalization(flat, gamma.astype("f"), beta), InvalidType),
    (lambda: F.layer_normalization(flat, gamma, beta[:2]), InvalidType),
    (lambda: F.layer_normalization(flat.astype("i"), gamma, beta), InvalidType),
    (lambda: F.rms_normalization(flat, gamma[:2]), InvalidType),
    (lambda: F.rms_normalization(flat, gamma.sum()), InvalidType),
    (lambda: F.group_normalization(x, 4, gamma, beta), ValueError),
    (lambda: F.group_normalization(x, 0, gamma, beta), ValueError),
    (lambda: F.group_normalization(x, 3.0, gamma, beta), TypeError),
    (lambda: F.group_normalization(x, 3, gamma[:3], beta), InvalidType),
    (lambda: F.group_normalization(gamma, 3, gamma, beta), InvalidType),
    (lambda: F.local_response_normalization(gamma), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()


def test_exponent_of_local_response_normalization_is_any_number():
    x = numpy.random.RandomState(0).normal(size=(2, 4, 3)).astype("f")
    y = F.local_response_normalization(x, 3, 2.0, 0.4, numpy.uint8(3)).array
    s = numpy.stack([(x[:, max(c - 1, 0) : c + 2] ** 2).sum(1) for c in range(4)], 1)
    numpy.testing.assert_allclose(y, x / (2 + 0.4 * s) ** 3, 1e-5)
