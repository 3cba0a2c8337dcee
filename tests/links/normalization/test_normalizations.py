"""Normalizations of samples and of groups, against NumPy."""

import numpy
import pytest

import renga
import renga.links as L
from tests.catalogue.links.normalization import IMAGE, standardized


@pytest.mark.parametrize(
    "make",
    [
        lambda **initial: L.LayerNormalization(2, **initial),
        lambda **initial: L.GroupNormalization(1, 2, **initial),
    ],
)
def test_initial_values(make):
    assert make().gamma.array.tolist() == [1, 1]
    assert make().beta.array.tolist() == [0, 0]
    link = make(initial_gamma=numpy.array([2, 3]), initial_beta=4)
    assert link.gamma.array.tolist() == [2, 3]
    assert link.beta.array.tolist() == [4, 4]


def test_mixed_precision_keeps_scales_and_shifts_in_float32():
    with renga.using_config("dtype", renga.mixed16):
        link = L.GroupNormalization(2, 4)
        lazy = L.GroupNormalization(2)
        y = lazy(IMAGE.astype("e"))
    assert link.gamma.dtype == link.beta.dtype == lazy.beta.dtype == numpy.float32
    expected = standardized(IMAGE.reshape(2, 2, 12), 2, 1e-5).reshape(IMAGE.shape)
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-2, atol=1e-2)


def test_groups_that_do_not_fit():
    with pytest.raises(ValueError, match="in 3 groups"):
        L.GroupNormalization(3)(IMAGE.astype("f"))
    with pytest.raises(ValueError, match=r"\(N, C"):
        L.GroupNormalization(3)(numpy.ones(3, "f"))
    with pytest.raises(renga.utils.type_check.InvalidType):
        L.LayerNormalization(6)(IMAGE.astype("f"))
