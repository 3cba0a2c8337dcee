"""The small functions on plain arrays in renga.utils."""

import os

import numpy
import pytest
from scipy import stats

from renga import utils
from renga.utils import argument


def test_force_array():
    x = numpy.zeros(3, "f")
    assert utils.force_array(x) is x
    assert utils.force_array(x, "d").dtype == numpy.float64
    y = utils.force_array(numpy.float32(2), "e")
    assert isinstance(y, numpy.ndarray)
    assert (y.shape, y.dtype) == ((), numpy.float16)


def test_force_type():
    dtype = numpy.dtype("f")
    assert utils.force_type(dtype, 3).dtype == dtype
    x = numpy.zeros(3, "f")
    assert utils.force_type(dtype, x) is x
    assert utils.force_type(dtype, x.astype("d")).dtype == dtype


@pytest.mark.parametrize("shape", [(), (3,), (1,), (2, 1), (1, 2, 1), (4, 2, 3)])
def test_sum_to_is_the_transpose_of_broadcasting(shape):
    rng = numpy.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=(4, 2, 3))
    total = utils.sum_to(y, shape)
    assert total.shape == shape
    assert (total * x).sum() == pytest.approx((y * x).sum())


def test_size_of_shape():
    assert utils.size_of_shape((2, 3)) == 6
    assert utils.size_of_shape(()) == 1


def test_tempdir():
    with utils.tempdir(prefix="renga") as path:
        assert os.path.isdir(path)
        with open(os.path.join(path, "file"), "w"):
            pass
    assert not os.path.exists(path)


def test_walker_alias_draws_by_weight():
    numpy.random.seed(0)
    weights = numpy.array([1, 2, 3, 0, 4.0])
    sampler = utils.WalkerAlias(weights)
    assert sampler.sample((2, 3)).shape == (2, 3)
    assert sampler.sample(1).dtype == numpy.int32
    counts = numpy.bincount(sampler.sample(100000), minlength=5)
    assert counts[3] == 0
    expected = weights / weights.sum() * 100000
    drawn = expected > 0
    assert stats.chisquare(counts[drawn], expected[drawn]).pvalue > 1e-3


def test_parse_kwargs():
    parse = argument.parse_kwargs
    assert parse({"a": 3}, ("a", 1), ("b", 2)) == (3, 2)
    handed_on = {"b": 4}
    assert parse(handed_on, ("a", 1), ("b", 2)) == (1, 4)
    assert handed_on == {}
    with pytest.raises(TypeError, match="'c'"):
        parse({"c": 3}, ("a", 1))
    with pytest.raises(ValueError, match="gone"):
        parse({"c": 3}, ("a", 1), c="gone")
    argument.assert_kwargs_empty({})
    with pytest.raises(TypeError, match="'c'"):
        argument.assert_kwargs_empty({"c": 1})


def test_experimental():
    with pytest.warns(FutureWarning, match="my.api"):
        utils.experimental("my.api")
