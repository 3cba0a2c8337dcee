"""The default dtype."""

import copy
import pickle

import numpy
import pytest

import renga


def test_get_dtype():
    assert renga.get_dtype() == numpy.float32
    assert renga.get_dtype("float64") == numpy.float64
    with renga.using_config("dtype", numpy.float16):
        assert renga.get_dtype() == numpy.float16
        assert renga.get_dtype(numpy.int32) == numpy.int32


def test_mixed16_maps_to_the_requested_dtype():
    with renga.using_config("dtype", renga.mixed16):
        assert renga.get_dtype() == numpy.float16
        assert renga.get_dtype(map_mixed16=numpy.float32) == numpy.float32
    assert renga.get_dtype(None, map_mixed16=numpy.float64) == numpy.float32


@pytest.mark.parametrize("name", ["mixed16", "mixed_bfloat16"])
def test_names(name):
    mixed = getattr(renga, name)
    assert str(mixed) == name
    assert repr(mixed) == f"dtype('{name}')"
    assert pickle.loads(pickle.dumps(mixed)) is mixed
    assert copy.deepcopy(mixed) is mixed


def test_numpy_takes_a_mixed_dtype():
    assert numpy.dtype(renga.mixed16.dtype) == numpy.float16
    assert renga.get_dtype(renga.mixed_bfloat16) == numpy.float32
