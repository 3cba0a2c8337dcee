"""Convolutions of every kind against sums over kernel elements."""

import functools

import numpy
import pytest

import renga
import renga.links as L
from tests.catalogue.links.convolution import rng


def test_cover_all_sees_every_element():
    x = numpy.arange(12, dtype="f").reshape(1, 2, 6)
    link = L.ConvolutionND(1, 2, 1, 3, 2, initialW=1, cover_all=True)
    # The last window has two elements of each channel and a zero of padding.
    numpy.testing.assert_allclose(link(x).array, [[[24, 36, 4 + 5 + 10 + 11]]])


@pytest.mark.parametrize("cls", [L.ConvolutionND, L.Convolution1D])
def test_from_params(cls):
    W, b = rng.normal(size=(4, 2, 3)).astype("f"), numpy.arange(4, dtype="f")
    link = cls.from_params(W, b, 2, 1, groups=2, dilate=2)
    assert type(link) is cls
    numpy.testing.assert_array_equal(link.W.array, W)
    numpy.testing.assert_array_equal(link.b.array, b)
    assert (link.stride, link.pad, link.dilate, link.groups) == (2, 1, (2,), 2)
    assert cls.from_params(W, b, nobias=True).b is None
    assert cls.from_params(W).b.array.tolist() == [0] * 4


@pytest.mark.parametrize("cls", [L.ConvolutionND, L.DeconvolutionND])
def test_sizes_that_do_not_fit(cls):
    with pytest.raises(ValueError, match="input channels .* 3 and 2"):
        cls(2, 3, 2, 3, groups=2)
    with pytest.raises(ValueError, match="output channels .* 3 and 2"):
        cls(2, 4, 3, 3, groups=2)
    with pytest.raises(AssertionError):
        cls(2, 4, 3, (3, 3, 3))
    with pytest.raises(renga.utils.type_check.InvalidType):
        cls(2, 3, 2, 3)(numpy.ones((1, 2, 5, 5), "f"))


@pytest.mark.parametrize("cls", [L.Convolution2D, L.Deconvolution2D])
def test_options_that_there_are_no_longer(cls):
    with pytest.raises(ValueError, match="cudnn_deterministic"):
        cls(3, 2, 3, deterministic=True)


def test_attributes():
    link = L.ConvolutionND(2, 4, 2, 3, stride=2, pad=(1, 0))
    assert (link.ksize, link.stride, link.pad) == ((3, 3), 2, (1, 0))
    assert L.DeconvolutionND(2, 4, 2, 3).outsize is None
    assert L.DepthwiseConvolution2D(3, 2, 3, 2).stride == (2, 2)


def test_windows_are_of_neighbours_by_default():
    x, one = numpy.arange(9.0).reshape(1, 1, 3, 3), numpy.ones((1, 1, 1, 1))
    for link in (L.Convolution2D, functools.partial(L.ConvolutionND, 2)):
        assert link(1, 1, 3, initialW=1)(x.astype("f")).array.tolist() == [[[[36]]]]
    for link in (L.Deconvolution2D, functools.partial(L.DeconvolutionND, 2)):
        y = link(1, 1, 3, initialW=1)(one.astype("f")).array
        assert y.tolist() == numpy.ones((1, 1, 3, 3)).tolist()
