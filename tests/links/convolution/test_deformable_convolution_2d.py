"""DeformableConvolution2D: bilinear samples at offsets, in NumPy."""

import numpy

import renga.links as L
from tests.catalogue.links.convolution import PICTURE, rng
from tests.links.cases import windows


def test_without_offsets_it_is_a_convolution():
    link = L.DeformableConvolution2D(
        3, 2, 3, pad=1, offset_initialW=0, deform_initialW=rng.normal(size=(2, 3, 3, 3))
    )
    expected = windows.convolution(PICTURE, link.deform_conv.W.array, pad=1)
    y = link(PICTURE.astype("f")).array
    numpy.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_initial_values():
    link = L.DeformableConvolution2D(3, 2, 3)
    assert not link.deform_conv.W.array.any() and link.offset_conv.W.array.any()
    link = L.DeformableConvolution2D(None, 2, 2, 1, 0, False, 1, 2, False, 3, 4)
    y = link(numpy.zeros((1, 3, 4, 4), "f"))
    assert {float(p.array.min()) for p in link.params()} == {1, 2, 3, 4}
    assert (y.array == 4).all()
    half = L.DeformableConvolution2D(3, 2, 2, deform_initialW=1)
    assert half.deform_conv.W.shape == (2, 3, 2, 2)
