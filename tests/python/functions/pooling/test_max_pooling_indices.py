"""The indices that max pooling returns."""

import numpy

import renga
import renga.functions as F


def test_upsampling_of_windows_without_elements():
    """Windows in the padding alone have the index 0, as argmax finds it."""
    x = numpy.arange(4, dtype="f").reshape(1, 1, 2, 2)
    for ksize in (2, 16):
        y, at = F.max_pooling_2d(
            x, ksize, ksize, pad=ksize, cover_all=False, return_indices=True
        )
        assert at.min() >= 0 and at.max() < ksize * ksize
        F.upsampling_2d(y, at, ksize, pad=ksize, outsize=(2, 2), cover_all=False)


def test_indices_of_a_huge_window():
    """float32 counts in twos beyond 2^24, and such a window has more elements."""
    x = numpy.zeros((1, 4097, 4097, 2), "f")
    last = 4097 * 4097 - 2
    x.reshape(-1, 2)[last] = 1
    image = renga.Variable(x.transpose(0, 3, 1, 2))
    y, at = F.max_pooling_2d(image, 4097, return_indices=True)
    assert y.array.tolist() == [[[[1]], [[1]]]] and (at == last).all()
    F.sum(y).backward()
    found = image.grad.transpose(0, 2, 3, 1).reshape(-1, 2)
    assert (found[last] == 1).all() and found.sum() == 2
