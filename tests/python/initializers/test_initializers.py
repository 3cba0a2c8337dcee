"""Initializers: their distributions, against the published formulas and NumPy."""

import math

import numpy
import pytest

from renga import initializers
from renga.initializer import Initializer, get_fans
from renga.testing import assert_allclose

SHAPE = (64, 32, 3, 3)
FAN_IN, FAN_OUT = 32 * 9, 64 * 9
DEVIATIONS = {
    "LeCunNormal": math.sqrt(1 / FAN_IN),
    "GlorotNormal": math.sqrt(2 / (FAN_IN + FAN_OUT)),
    "HeNormal": math.sqrt(2 / FAN_IN),
}
BOUNDS = {
    "LeCunUniform": math.sqrt(3 / FAN_IN),
    "GlorotUniform": math.sqrt(6 / (FAN_IN + FAN_OUT)),
    "HeUniform": math.sqrt(6 / FAN_IN),
}


def generate(initializer, shape=SHAPE, dtype=None):
    return initializers.generate_array(initializer, shape, numpy, dtype)


def test_fans():
    assert get_fans((5, 4)) == (4, 5)
    assert get_fans(SHAPE) == (FAN_IN, FAN_OUT)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        get_fans((3,))


@pytest.mark.parametrize("name", DEVIATIONS)
def test_normal_deviation(name):
    rng = numpy.random.default_rng(0)
    values = generate(getattr(initializers, name)(1.5, rng=rng))
    assert values.dtype == numpy.float32
    # 18432 draws: the deviation is known to half a percent.
    assert values.std() == pytest.approx(1.5 * DEVIATIONS[name], rel=0.03)
    assert abs(values.mean()) < 0.03 * values.std()
    assert abs(values).max() > 3 * values.std()


@pytest.mark.parametrize("name", BOUNDS)
def test_uniform_bound(name):
    rng = numpy.random.default_rng(0)
    values = generate(getattr(initializers, name)(0.5, rng=rng))
    bound = 0.5 * BOUNDS[name]
    assert abs(values).max() <= bound
    assert values.max() > 0.99 * bound
    assert values.min() < -0.99 * bound
    assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.03)


def test_he_normal_by_fan_out():
    rng = numpy.random.default_rng(0)
    values = generate(initializers.HeNormal(fan_option="fan_out", rng=rng))
    assert values.std() == pytest.approx(math.sqrt(2 / FAN_OUT), rel=0.03)
    with pytest.raises(ValueError, match="fan_option"):
        generate(initializers.HeNormal(fan_option="fan"))


def test_seed_of_numpy_reproduces():
    expected = numpy.random.RandomState(3).normal(0, 0.1, (2, 5))
    numpy.random.seed(3)
    assert_allclose(generate(initializers.Normal(0.1), (2, 5)), expected, rtol=1e-6)
    numpy.random.seed(3)
    expected = numpy.random.RandomState(3).uniform(-0.1, 0.1, (2, 5))
    assert_allclose(generate(initializers.Uniform(0.1), (2, 5)), expected, rtol=1e-5)


def test_own_generator_does_not_change_the_global_one():
    numpy.random.seed(0)
    before = numpy.random.get_state()[1].copy()
    generate(initializers.Normal(rng=numpy.random.RandomState(1)))
    numpy.testing.assert_array_equal(numpy.random.get_state()[1], before)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (3, 2, 4), (7,), ()])
def test_orthogonal(shape):
    values = generate(initializers.Orthogonal(2.0), shape, numpy.float64)
    matrix = values.reshape(shape[0] if shape else 1, -1)
    if matrix.shape[0] < matrix.shape[1]:
        matrix = matrix.T
    product = matrix.T @ matrix
    assert_allclose(product, 4 * numpy.eye(len(product)), atol=1e-12)


def test_orthogonal_is_uniform_over_rotations():
    # The upper left entry of a random rotation of the plane is a cosine of a uniform
    # angle: its sign is as often positive as negative, and its square averages 1/2.
    rng = numpy.random.default_rng(0)
    initializer = initializers.Orthogonal(1.0, rng=rng)
    corner = numpy.array([generate(initializer, (2, 2))[0, 0] for _ in range(1000)])
    assert (corner > 0).mean() == pytest.approx(0.5, abs=0.05)
    assert (corner**2).mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("mode", "shape"),
    [("projection", (3, 2)), ("embedding", (2, 3)), ("basis", (3, 2))],
)
def test_orthogonal_mode_demands_a_shape(mode, shape):
    initializer = initializers.Orthogonal(mode=mode)
    with pytest.raises(ValueError, match=mode):
        generate(initializer, shape)
    fits = shape[::-1] if mode != "basis" else (3, 3)
    assert generate(initializer, fits).shape == fits


def test_orthogonal_refuses():
    with pytest.raises(ValueError, match="nonsense"):
        initializers.Orthogonal(mode="nonsense")
    with pytest.raises(ValueError, match="non-empty"):
        generate(initializers.Orthogonal(), (0, 3))


def test_identity():
    expected = [[3.0, 0.0], [0.0, 3.0]]
    numpy.testing.assert_array_equal(
        generate(initializers.Identity(3.0), (2, 2)), expected
    )
    for shape in [(2, 3), (2, 2, 2)]:
        with pytest.raises(ValueError, match="square"):
            generate(initializers.Identity(), shape)


@pytest.mark.parametrize(
    ("initializer", "value"),
    [
        (initializers.Zero(), 0.0),
        (initializers.One(), 1.0),
        (initializers.NaN(), numpy.nan),
        (initializers.Constant(2.5), 2.5),
    ],
)
def test_constants(initializer, value):
    numpy.testing.assert_array_equal(
        generate(initializer, (2, 3)), numpy.full((2, 3), value)
    )
    numpy.testing.assert_equal(initializer.fill_value, value)


def test_constant_copies_an_array():
    values = numpy.arange(6.0).reshape(2, 3)
    made = generate(initializers.Constant(values), (2, 3))
    numpy.testing.assert_array_equal(made, values)
    made[...] = 7
    assert values[0, 0] == 0


def test_dtype_of_a_new_array():
    assert generate(initializers.Normal(dtype="f8")).dtype == numpy.float64
    assert generate(initializers.Normal(), dtype="f2").dtype == numpy.float16
    with pytest.raises(ValueError, match="expected dtype"):
        generate(initializers.Normal(dtype="f8"), dtype="f4")
    assert generate(initializers.Normal(dtype="f4"), dtype=numpy.float32) is not None


def test_initializer_refuses_another_dtype():
    with pytest.raises(ValueError, match="float64"):
        initializers.Zero(dtype="f4")(numpy.empty(2))


def test_function_as_initializer():
    made = generate(lambda array: array.fill(4), (3,))
    numpy.testing.assert_array_equal(made, [4, 4, 4])
    with pytest.raises(NotImplementedError):
        Initializer()(numpy.empty(1))


def test_what_links_accept_as_initializer():
    choose = initializers.get_initializer
    assert isinstance(choose(None), initializers.LeCunNormal)
    assert choose(3).fill_value == 3
    assert isinstance(choose(numpy.zeros(2)), initializers.Constant)
    with pytest.raises(TypeError, match="list"):
        choose([1, 2])
    with pytest.raises(TypeError):
        initializers.Normal(1.0, nonsense=3)


@pytest.mark.parametrize(("size", "factor"), [(4, 2), (3, 2), (6, 3), (2, 1)])
def test_upsampling_interpolates_linearly(size, factor):
    """A ramp that a deconvolution enlarges is a ramp, away from its ends."""
    kernel = generate(initializers.UpsamplingDeconvFilter(), (1, 1, size), "d")[0, 0]
    ramp = numpy.arange(8.0)
    spread = numpy.zeros(factor * 8)
    spread[::factor] = ramp
    inner = numpy.convolve(spread, kernel)[size:-size]
    assert_allclose(numpy.diff(inner, 2), 0, atol=1e-12)
    assert_allclose(numpy.diff(inner)[0], 1 / factor)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_downsampling_keeps_the_mean(size):
    shape = (3, 3, size, size)
    small = generate(initializers.DownsamplingConvFilter(), shape, "d")
    large = generate(initializers.UpsamplingDeconvFilter(), shape, "d")
    assert_allclose(small.sum((2, 3)), numpy.eye(3))
    assert_allclose(large, small * ((size + 1) // 2) ** 2)
    alone = generate(initializers.DownsamplingConvFilter(), (3, 1, size, size), "d")
    assert_allclose(alone[:, 0], small[range(3), range(3)])


@pytest.mark.parametrize(
    "cls", [initializers.UpsamplingDeconvFilter, initializers.DownsamplingConvFilter]
)
def test_filters_that_cannot_be(cls):
    with pytest.raises(ValueError, match="cubic"):
        cls("cubic")
    with pytest.raises(ValueError, match="equal sides"):
        generate(cls(), (1, 1, 3, 2))
    with pytest.raises(AssertionError):
        generate(cls(), (2, 3, 3, 3))
    with pytest.raises(TypeError):
        generate(cls(), (2, 2))
