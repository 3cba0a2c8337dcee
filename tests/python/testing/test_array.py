"""assert_allclose for arrays and Variables."""

import numpy
import pytest

import renga
from renga.testing import assert_allclose


def test_assert_allclose():
    x = numpy.ones(3)
    assert_allclose(renga.Variable(x), x + 1e-5)
    assert_allclose(x, x * 1.5, atol=0, rtol=0.4)
    with pytest.raises(AssertionError):
        assert_allclose(x, renga.Variable(x + 1e-3))
    with pytest.raises(AssertionError):
        assert_allclose(x, x[:2])
