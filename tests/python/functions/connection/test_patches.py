"""Convolutions of patches, whose windows do not overlap, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import renga
import renga.functions as F
from tests.links.cases.windows import hold

# channels of x and y, patch, extents: some leave pixels that are in no patch
CASES = [
    (3, 64, (8, 8), (24, 16)),
    (3, 96, (16, 16), (50, 33)),
    (16, 64, (8, 4), (35, 20)),
    (128, 70, (2, 2), (9, 6)),
    (200, 64, (4,), (31,)),
    (64, 80, (2, 2, 2), (5, 4, 6)),
]


def cut(image, patch):
    """(N, channels, positions, numbers of a patch), a view of the covered pixels."""
    counts = [n // k for n, k in zip(image.shape[2:], patch)]
    covered = image[(..., *(slice(n * k) for n, k in zip(counts, patch)))]
    pairs = [extent for pair in zip(counts, patch) for extent in pair]
    axes = range(2, 2 + 2 * len(patch))
    split = covered.reshape(*image.shape[:2], *pairs)
    order = split.transpose(0, 1, *axes[::2], *axes[1::2])
    return order.reshape(*image.shape[:2], -1, int(np.prod(patch)))


@pytest.mark.parametrize("inputs, outputs, patch, extents", CASES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_all_passes(inputs, outputs, patch, extents, channels_last):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, inputs, *extents), "f")
    if channels_last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    W = rng.standard_normal((outputs, inputs, *patch), "f")
    images, filters = renga.Variable(x), renga.Variable(W)
    y = F.convolution_nd(images, filters, stride=patch)
    y.grad = gy = rng.standard_normal(y.shape, "f")
    y.backward()

    numbers = cut(x.astype("d"), patch)
    flat = W.astype("d").reshape(outputs, inputs, -1)
    expected = np.einsum("ncpk,ock->nop", numbers, flat)
    hold(y.array, expected.reshape(y.shape))
    grads = gy.astype("d").reshape(2, outputs, -1)
    hold(filters.grad, np.einsum("nop,ncpk->ock", grads, numbers).reshape(W.shape))
    gx = np.einsum("nop,ock->ncpk", grads, flat)
    hold(cut(images.grad, patch), gx)
    covered = cut(np.ones(x.shape), patch).size
    assert np.count_nonzero(images.grad) <= covered
