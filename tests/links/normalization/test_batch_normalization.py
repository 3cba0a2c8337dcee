"""BatchNormalization against NumPy: outputs, running statistics, dtypes, storage."""

import copy

import numpy
import pytest

import renga
import renga.links as L
from renga.serializers import DictionarySerializer, NpzDeserializer


def make_input(*shape):
    rng = numpy.random.default_rng(0)
    return rng.normal(1.0, 2.0, size=shape).astype(numpy.float32)


def normalize(x, mean, variance, gamma, beta, axis, eps=2e-5):
    def expand(a):
        return numpy.expand_dims(a, axis)

    y = (x - expand(mean)) / numpy.sqrt(expand(variance) + eps)
    return y * expand(gamma) + expand(beta)


CASES = [
    ((6, 3), (0,)),
    ((4, 3, 5, 2), (0, 2, 3)),
    ((4, 3, 5), (0,)),
    ((4, 5, 3), (0, 1)),
]


@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_training_and_after(shape, axis):
    kept = tuple(n for a, n in enumerate(shape) if a not in axis)
    gamma, beta = make_input(*kept), make_input(*kept) - 2
    link = L.BatchNormalization(
        axis=axis, decay=0.7, initial_gamma=gamma, initial_beta=beta
    )
    x = make_input(*shape)
    exact = x.astype("f8")
    mean, variance = exact.mean(axis), exact.var(axis)
    expected = normalize(exact, mean, variance, gamma, beta, axis)
    numpy.testing.assert_allclose(link(x).array, expected, rtol=1e-4, atol=1e-4)
    running_mean = 0.3 * mean
    running_var = 0.7 + 0.3 * exact.var(axis, ddof=1)
    numpy.testing.assert_allclose(link.avg_mean, running_mean, rtol=1e-4)
    numpy.testing.assert_allclose(link.avg_var, running_var, rtol=1e-4)
    with renga.using_config("train", False):
        y = link(x)
    expected = normalize(exact, running_mean, running_var, gamma, beta, axis)
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-4, atol=1e-4)
    numpy.testing.assert_allclose(link.avg_mean, running_mean, rtol=1e-4)


@pytest.mark.parametrize("use_gamma", [False, True])
@pytest.mark.parametrize("use_beta", [False, True])
def test_without_gamma_or_beta(use_gamma, use_beta):
    link = L.BatchNormalization(3, use_gamma=use_gamma, use_beta=use_beta)
    names = [name for name, _ in link.namedparams()]
    assert names == ["/beta"] * use_beta + ["/gamma"] * use_gamma
    assert (link.gamma is None, link.beta is None) == (not use_gamma, not use_beta)
    x = make_input(6, 3)
    expected = (x - x.mean(0)) / numpy.sqrt(x.var(0) + 2e-5)
    numpy.testing.assert_allclose(link(x).array, expected, rtol=1e-4, atol=1e-4)
    with renga.using_config("train", False):
        assert link(x).shape == x.shape


def test_gradients():
    link = L.BatchNormalization(3)
    link.cleargrads()
    x = make_input(6, 3)
    y = link(x)
    gy = y.grad = make_input(6, 3)
    y.backward()
    numpy.testing.assert_allclose(link.beta.grad, gy.sum(0), rtol=1e-4)
    numpy.testing.assert_allclose(
        link.gamma.grad, (gy * y.array).sum(0), rtol=1e-4, atol=1e-5
    )


def test_finetuning_averages_every_batch():
    link = L.BatchNormalization(3)
    batches = [make_input(8, 3) * k for k in (1, 2, 5)]
    for x in batches:
        link(x, finetune=True)
    assert link.N == 3
    mean = numpy.mean([x.mean(0) for x in batches], axis=0)
    variance = numpy.mean([x.var(0, ddof=1) for x in batches], axis=0)
    numpy.testing.assert_allclose(link.avg_mean, mean, rtol=1e-4)
    numpy.testing.assert_allclose(link.avg_var, variance, rtol=1e-4)
    link.start_finetuning()
    assert link.N == 0


def test_initial_statistics():
    link = L.BatchNormalization(
        2, initial_avg_mean=3.0, initial_avg_var=numpy.array([4, 9])
    )
    numpy.testing.assert_array_equal(link.avg_mean, [3, 3])
    numpy.testing.assert_array_equal(link.avg_var, [4, 9])
    x = numpy.array([[5, 6]], numpy.float32)
    with renga.using_config("train", False):
        numpy.testing.assert_allclose(link(x).array, [[1, 1]], rtol=1e-4)


def test_sizes():
    assert L.BatchNormalization((2, 3)).gamma.shape == (2, 3)
    with pytest.raises(RuntimeError, match="size or axis"):
        L.BatchNormalization()
    lazy = L.BatchNormalization(axis=0)
    assert not lazy.gamma.is_initialized
    assert lazy.avg_mean is None
    with pytest.raises(renga.utils.type_check.InvalidType):
        L.BatchNormalization(2)(make_input(4, 3))
    with pytest.raises(TypeError):
        L.BatchNormalization(3)(make_input(4, 3), nonsense=True)


@pytest.mark.parametrize(
    ("config", "given", "dtype"),
    [
        (numpy.float32, None, "f4"),
        (numpy.float16, None, "f2"),
        (renga.mixed16, None, "f4"),
        (numpy.float32, numpy.float64, "f8"),
    ],
)
def test_dtype(config, given, dtype):
    with renga.using_config("dtype", config):
        link = L.BatchNormalization(3, dtype=given)
    for array in (link.gamma.array, link.beta.array, link.avg_mean, link.avg_var):
        assert array.dtype == dtype


def test_given_initializer_keeps_its_dtype():
    initializer = renga.initializers.Constant(2.0)
    link = L.BatchNormalization(3, dtype="f8", initial_gamma=initializer)
    assert link.gamma.dtype == numpy.float64
    assert initializer.dtype is None


@pytest.mark.parametrize(
    "make", [lambda: L.BatchNormalization(3), lambda: L.BatchNormalization(axis=0)]
)
def test_save_and_load(make):
    source, target = make(), make()
    source(make_input(6, 3))
    saved = DictionarySerializer()
    source.serialize(saved)
    names = ["beta", "gamma", "N", "avg_mean", "avg_var"]
    assert list(saved.target) == names
    target.serialize(NpzDeserializer(copy.deepcopy(saved.target)))
    x = make_input(6, 3)
    with renga.using_config("train", False):
        numpy.testing.assert_array_equal(target(x).array, source(x).array)


def test_text():
    assert str(L.BatchNormalization(3)) == (
        "BatchNormalization(size=3, decay=0.9, eps=2e-05, dtype=float32, "
        "use_gamma=True, use_beta=True)"
    )
    assert "size=None" in str(L.BatchNormalization(axis=0))
