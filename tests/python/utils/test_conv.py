"""Windows: sizes, and columns against loops."""

import itertools

import numpy
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from renga.utils import conv, conv_nd

WINDOWS = [((3, 2), (2, 3), (1, 2), (2, 1)), ((1, 1), (1, 1), (0, 0), (1, 1))]


def reference(x, ksize, stride, pad, dilate):
    """Columns by NumPy's sliding windows."""
    padded = numpy.pad(x, ((0, 0), (0, 0), *((p, p) for p in pad)))
    reach = [(k - 1) * d + 1 for k, d in zip(ksize, dilate)]
    windows = sliding_window_view(padded, reach, axis=(2, 3))
    col = windows[:, :, :: stride[0], :: stride[1], :: dilate[0], :: dilate[1]]
    return col.transpose(0, 1, 4, 5, 2, 3)


@pytest.mark.parametrize("window", WINDOWS)
def test_columns_and_their_transpose(window):
    ksize, stride, pad, dilate = window
    rng = numpy.random.default_rng(0)
    x = rng.normal(size=(2, 3, 9, 8))
    col = conv.im2col(x, *ksize, *stride, *pad, dy=dilate[0], dx=dilate[1])
    numpy.testing.assert_array_equal(col, reference(x, *window))
    col_nd = conv_nd.im2col_nd(x, ksize, stride, pad, dilate=dilate)
    numpy.testing.assert_array_equal(col_nd, col)
    # <im2col(x), g> = <x, col2im(g)>
    g = rng.normal(size=col.shape)
    back = conv.col2im(g, *stride, *pad, 9, 8, *dilate)
    assert (back * x).sum() == pytest.approx((col * g).sum())
    back_nd = conv_nd.col2im_nd(g, stride, pad, (9, 8), dilate)
    numpy.testing.assert_array_equal(back_nd, back)


def test_cover_all_reaches_the_last_pixel():
    x = numpy.arange(1.0, 6).reshape(1, 1, 1, 5)
    col = conv.im2col(x, 1, 2, 1, 2, 0, 0, cover_all=True)
    assert col[0, 0, 0, 0].tolist() == [[1, 3, 5]]
    assert col[0, 0, 0, 1].tolist() == [[2, 4, 0]]
    ones = conv.im2col_cpu(x, 1, 2, 1, 2, 0, 0, pval=7, cover_all=True)
    assert ones[0, 0, 0, 1].tolist() == [[2, 4, 7]]


def test_a_window_that_does_not_fit():
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        conv.im2col(numpy.zeros((1, 1, 2, 2)), 3, 3, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("size", "k", "s", "p", "d"),
    list(itertools.product([5, 8], [1, 3], [1, 2], [0, 1], [1, 2])),
)
def test_sizes(size, k, s, p, d):
    fits = [i for i in range(0, size + 2 * p, s) if i + (k - 1) * d < size + 2 * p]
    assert conv.get_conv_outsize(size, k, s, p, d=d) == len(fits)
    big = conv.get_deconv_outsize(size, k, s, p, d=d)
    assert conv.get_conv_outsize(big, k, s, p, d=d) == size
    big = conv.get_deconv_outsize(size, k, s, p, cover_all=True, d=d)
    assert conv.get_conv_outsize(big, k, s, p, cover_all=True, d=d) == size


def test_as_tuple():
    assert conv_nd.as_tuple(2, 3) == (2, 2, 2)
    assert conv_nd.as_tuple([1, 2], 2) == (1, 2)
    with pytest.raises(AssertionError):
        conv_nd.as_tuple((1, 2), 3)
