"""DeformableConvolution2D: bilinear samples at offsets, in NumPy."""

import numpy
import pytest

import renga.links as L
from tests.links.cases import windows
from tests.links.cases.link_check import Case, check

rng = numpy.random.default_rng(0)
IMAGE = rng.normal(size=(2, 3, 6, 5))


def sample(image, row, column):
    """Bilinear interpolation, with zeros around the image."""
    top, left = int(numpy.floor(row)), int(numpy.floor(column))
    value = numpy.zeros(len(image))
    for r in (top, top + 1):
        for c in (left, left + 1):
            weight = (1 - abs(row - r)) * (1 - abs(column - c))
            if 0 <= r < image.shape[1] and 0 <= c < image.shape[2]:
                value += weight * image[:, r, c]
    return value


def sampler(x, offset, W, b, stride, pad):
    outputs, _, rows, columns = W.shape
    y = numpy.zeros((len(x), outputs, *offset.shape[2:]))
    for n, i, j in numpy.ndindex(len(x), *offset.shape[2:]):
        for k, (r, c) in enumerate(numpy.ndindex(rows, columns)):
            # The columns' offsets come first, then the rows'.
            dc, dr = offset[n, k, i, j], offset[n, k + rows * columns, i, j]
            row, column = i * stride - pad + r + dr, j * stride - pad + c + dc
            y[n, :, i, j] += W[:, :, r, c] @ sample(x[n], row, column)
    return y + windows.along_channels(b, 2) if numpy.ndim(b) else y


def deformable(p, x, stride=1, pad=0):
    offset = windows.convolution(
        x, p["/offset_conv/W"], p.get("/offset_conv/b", 0), stride, pad
    )
    W, b = p["/deform_conv/W"], p.get("/deform_conv/b", 0)
    return sampler(x, offset, W, b, stride, pad)


CASES = {
    "DeformableConvolution2D": Case(
        lambda: L.DeformableConvolution2D(3, 2, (3, 2), 2, 1),
        (IMAGE,),
        lambda p, x: deformable(p, x, 2, 1),
        lazy=lambda: L.DeformableConvolution2D(None, 2, (3, 2), 2, 1),
        half=False,  # a rounded offset may take another pixel
    ),
    "DeformableConvolution2D without biases": Case(
        lambda: L.DeformableConvolution2D(
            3, 2, 2, offset_nobias=True, deform_nobias=True
        ),
        (IMAGE,),
        deformable,
        half=False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])


def test_without_offsets_it_is_a_convolution():
    link = L.DeformableConvolution2D(
        3, 2, 3, pad=1, offset_initialW=0, deform_initialW=rng.normal(size=(2, 3, 3, 3))
    )
    expected = windows.convolution(IMAGE, link.deform_conv.W.array, pad=1)
    y = link(IMAGE.astype("f")).array
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
