"""Convolutions of every kind against sums over kernel elements."""

import numpy
import pytest

import renga
import renga.links as L
from tests.links.cases import windows
from tests.links.cases.link_check import Case, check

rng = numpy.random.default_rng(0)
IMAGE = rng.normal(size=(2, 4, 6, 5))
SMALL = rng.normal(size=(2, 4, 3, 3))
LINE = rng.normal(size=(2, 3, 7))
BODY = rng.normal(size=(1, 2, 4, 3, 3))


def convolution(**options):
    return lambda p, x: windows.convolution(x, p["/W"], p.get("/b", 0), **options)


def deconvolution(**options):
    return lambda p, x: windows.deconvolution(x, p["/W"], p.get("/b", 0), **options)


def depthwise(p, x, **options):
    W = p["/W"].transpose(1, 0, 2, 3)
    W = W.reshape(-1, 1, *W.shape[2:])
    return windows.convolution(x, W, p["/b"], groups=x.shape[1], **options)


def local(p, x, stride=1):
    W = p["/W"]
    y = sum(
        numpy.einsum("nihw,ohwi->nohw", elements, W[(..., *offset)])
        for offset, elements in windows.kernel_elements(x, W.shape[-2:], stride, 0, 1)
    )
    return y + p.get("/b", 0)


CASES = {
    "ConvolutionND": Case(
        lambda: L.ConvolutionND(2, 4, 2, (3, 2), 2, (1, 0), dilate=(1, 2), groups=2),
        (IMAGE,),
        convolution(stride=2, pad=(1, 0), dilate=(1, 2), groups=2),
        lazy=lambda: L.ConvolutionND(
            2, None, 2, (3, 2), 2, (1, 0), dilate=(1, 2), groups=2
        ),
    ),
    "ConvolutionND without bias": Case(
        lambda: L.ConvolutionND(2, 4, 2, 3, nobias=True), (IMAGE,), convolution()
    ),
    "Convolution1D": Case(
        lambda: L.Convolution1D(3, 2, 3, 2, 1),
        (LINE,),
        convolution(stride=2, pad=1),
        lazy=lambda: L.Convolution1D(None, 2, 3, 2, 1),
    ),
    "Convolution3D": Case(lambda: L.Convolution3D(2, 3, 2), (BODY,), convolution()),
    "Deconvolution2D": Case(
        lambda: L.Deconvolution2D(4, 2, 3, 2, 1, dilate=(1, 2), groups=2),
        (SMALL,),
        deconvolution(stride=2, pad=1, dilate=(1, 2), groups=2),
        lazy=lambda: L.Deconvolution2D(None, 2, 3, 2, 1, dilate=(1, 2), groups=2),
    ),
    "DeconvolutionND": Case(
        lambda: L.DeconvolutionND(2, 4, 2, 3, 2, outsize=(8, 7), groups=2),
        (SMALL,),
        deconvolution(stride=2, outsize=(8, 7), groups=2),
        lazy=lambda: L.DeconvolutionND(2, None, 2, 3, 2, outsize=(8, 7), groups=2),
    ),
    "Deconvolution1D": Case(
        lambda: L.Deconvolution1D(3, 2, 3, 2, 1, nobias=True),
        (LINE,),
        deconvolution(stride=2, pad=1),
    ),
    "Deconvolution3D": Case(
        lambda: L.Deconvolution3D(2, 3, 2),
        (BODY,),
        deconvolution(),
        lazy=lambda: L.Deconvolution3D(None, 3, 2),
    ),
    "DilatedConvolution2D": Case(
        lambda: L.DilatedConvolution2D(4, 2, 3, (1, 2), 1, (2, 1)),
        (IMAGE,),
        convolution(stride=(1, 2), pad=1, dilate=(2, 1)),
        lazy=lambda: L.DilatedConvolution2D(2, 3, None, (1, 2), 1, (2, 1)),
    ),
    "DepthwiseConvolution2D": Case(
        lambda: L.DepthwiseConvolution2D(4, 2, (2, 3), 2, 1),
        (IMAGE,),
        lambda p, x: depthwise(p, x, stride=2, pad=1),
        lazy=lambda: L.DepthwiseConvolution2D(None, 2, (2, 3), 2, 1),
    ),
    "LocalConvolution2D": Case(
        lambda: L.LocalConvolution2D(4, 2, (6, 5), 3, 2),
        (IMAGE,),
        lambda p, x: local(p, x, 2),
        lazy=lambda: L.LocalConvolution2D(None, 2, None, 3, 2),
    ),
    "LocalConvolution2D without bias": Case(
        lambda: L.LocalConvolution2D(4, 2, (6, 5), (2, 3), nobias=True),
        (IMAGE,),
        local,
        lazy=lambda: L.LocalConvolution2D(4, 2, None, (2, 3), nobias=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])


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
