"""Hooks that normalize weights, against NumPy."""

import copy
import pickle

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import gradient_check
from renga.link_hooks import SpectralNormalization, WeightStandardization
from renga.serializers import DictionarySerializer

rng = numpy.random.default_rng(0)
X = rng.normal(size=(2, 3, 5, 5))

LINKS = {
    "Linear": (lambda: L.Linear(75, 4), 0),
    "Convolution2D": (lambda: L.Convolution2D(3, 4, 3), 0),
    "ConvolutionND": (lambda: L.ConvolutionND(2, 3, 4, 3), 0),
    "Deconvolution2D": (lambda: L.Deconvolution2D(3, 4, 3), 1),
    "DeconvolutionND": (lambda: L.DeconvolutionND(2, 3, 4, 3), 1),
}


@pytest.fixture(autouse=True)
def doubles():
    numpy.random.seed(0)
    with renga.using_config("dtype", numpy.dtype("d")):
        yield


def matrix(W, axis):
    return numpy.moveaxis(W, axis, 0).reshape(W.shape[axis], -1)


def largest(W, axis):
    return numpy.linalg.svd(matrix(W, axis))[1][0]


def without_hook(link, W, x):
    plain = copy.deepcopy(link)
    for name in list(plain.local_link_hooks):
        plain.delete_hook(name)
    plain.W.array = W
    return plain(x).array


@pytest.mark.parametrize("name", LINKS)
def test_spectral_normalization(name):
    make, axis = LINKS[name]
    link = make()
    W = link.W.array.copy()
    assert link.add_hook(SpectralNormalization(n_power_iteration=200)) is link
    assert link.W_u.shape == (W.shape[axis],)
    y = link(X)
    expected = without_hook(link, W / largest(W, axis), X)
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-5, atol=1e-7)
    assert isinstance(link.W, renga.Parameter)
    numpy.testing.assert_array_equal(link.W.array, W)


def test_power_iterations_go_on_while_training():
    link = L.Linear(6, 4)
    W = link.W.array
    link.add_hook(SpectralNormalization())
    x = rng.normal(size=(2, 6))

    def unit(a):
        return a / (numpy.linalg.norm(a) + 1e-6)

    u = link.W_u.copy()
    for train in (True, True, False, False):
        with renga.using_config("train", train):
            y = link(x)
        v = unit(u @ W)
        new = unit(W @ v)
        expected = x @ W.T / (new @ W @ v)
        numpy.testing.assert_allclose(y.array, expected, rtol=1e-6)
        u = new if train else u
        numpy.testing.assert_allclose(link.W_u, u, rtol=1e-6)
    before = link.W_u.copy()
    with renga.using_config("in_recomputing", True):
        link(x)
    numpy.testing.assert_array_equal(link.W_u, before)


def test_factor_and_gamma():
    link = L.Convolution2D(3, 4, 3)
    W = link.W.array
    hook = SpectralNormalization(200, use_gamma=True, factor=0.5)
    link.add_hook(hook)
    numpy.testing.assert_allclose(link.gamma.array, largest(W, 0))
    assert {n for n, _ in link.namedparams()} == {"/W", "/b", "/gamma"}
    link.gamma.array[...] = 3
    expected = without_hook(link, 1.5 * W / largest(W, 0), X)
    numpy.testing.assert_allclose(link(X).array, expected, rtol=1e-5, atol=1e-7)
    saved = DictionarySerializer()
    link.serialize(saved)
    assert set(saved.target) == {"W", "b", "gamma", "W_u"}
    link.delete_hook("SpectralNormalization")
    assert not hasattr(link, "W_u") and not hasattr(link, "gamma")
    assert {n for n, _ in link.namedparams()} == {"/W", "/b"}


def standardized(W):
    rows = W.reshape(len(W), -1)
    rows = rows - rows.mean(1, keepdims=True)
    rows = rows / numpy.sqrt((rows**2).mean(1, keepdims=True) + 1e-5)
    return rows.reshape(W.shape)


@pytest.mark.parametrize("name", LINKS)
def test_weight_standardization(name):
    link = LINKS[name][0]()
    W = link.W.array.copy()
    link.add_hook(WeightStandardization())
    expected = without_hook(link, standardized(W), X)
    numpy.testing.assert_allclose(link(X).array, expected, rtol=1e-7, atol=1e-9)
    numpy.testing.assert_array_equal(link.W.array, W)


HOOKS = [
    WeightStandardization,
    SpectralNormalization,
    lambda: SpectralNormalization(use_gamma=True, factor=2.0),
]


@pytest.mark.parametrize("make", HOOKS)
def test_gradients(make):
    """With constant vectors of the power iteration, as in the gradient."""
    link = L.Linear(3, 4).add_hook(make())
    x, gy = rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
    link(x)
    with renga.using_config("in_recomputing", True):
        gradient_check.check_backward(
            link, x, gy, tuple(link.params()), eps=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("make", HOOKS)
def test_weight_of_a_link_without_sizes(make):
    link = L.Linear(None, 4).add_hook(make())
    x = rng.normal(size=(2, 3, 5))
    assert not hasattr(link, "W_u")
    assert link(x).shape == (2, 4)
    assert link.W.shape == (4, 15) and isinstance(link.W, renga.Parameter)
    assert F.sum(link(x)).creator is not None


@pytest.mark.parametrize("make", HOOKS)
def test_copies_have_hooks(make):
    link = L.Linear(3, 4).add_hook(make())
    x = rng.normal(size=(2, 3))
    link(x)
    with renga.using_config("train", False):
        expected = link(x).array
        for clone in (copy.deepcopy(link), pickle.loads(pickle.dumps(link))):
            numpy.testing.assert_allclose(clone(x).array, expected, rtol=1e-12)


@pytest.mark.parametrize("make", HOOKS)
def test_halves(make):
    with renga.using_config("dtype", numpy.dtype("e")):
        link = L.Linear(3, 4).add_hook(make())
        y = link(rng.normal(size=(2, 3)).astype("e"))
    assert y.dtype == numpy.float16 and numpy.isfinite(y.array).all()


def test_call_that_raises_leaves_the_parameter():
    link = L.Linear(3, 4).add_hook(WeightStandardization())
    W = link.W
    with pytest.raises(renga.utils.type_check.InvalidType):
        link(rng.normal(size=(2, 5)))
    link(rng.normal(size=(2, 3)))
    assert link.W is W


def test_wrong_use():
    for make in (SpectralNormalization, WeightStandardization):
        with pytest.raises(ValueError, match="got 'V'"):
            L.Linear(3, 4).add_hook(make(weight_name="V"))
        with pytest.raises(ValueError, match="got 'W'"):
            L.Classifier(L.Linear(3, 4)).add_hook(make())
        with pytest.raises(NotImplementedError):
            with make():
                pass
        link = L.Linear(3, 4).add_hook(make(name="own"))
        assert list(link.local_link_hooks) == ["own"]
    with pytest.raises(AssertionError):
        SpectralNormalization(n_power_iteration=0)


def test_a_link_that_is_recomputed_twice():
    """Each call is recomputed with the vectors of its own power iteration."""

    def gradient(call):
        link = L.Linear(4, 4, initialW=W0).add_hook(SpectralNormalization())
        link.W_u[...] = 0.3
        first = call(lambda x: F.tanh(link(x)), renga.Variable(x0))
        loss = F.sum(call(lambda x: F.tanh(link(x)), first) ** 2)
        link.cleargrads()
        loss.backward()
        return link.W.grad

    W0, x0 = rng.normal(size=(4, 4)), rng.normal(size=(3, 4))
    expected = gradient(lambda f, x: f(x))
    numpy.testing.assert_allclose(gradient(F.forget), expected, rtol=1e-10)
