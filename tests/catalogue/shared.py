"""References and draws that more than one family uses."""

from __future__ import annotations

import numpy as np

from tests.fuzz.draw import Draw


def added_at(x, keys, y):
    z = x.copy()
    np.add.at(z, keys, y)
    return z


def philox(seed, n):
    """n numbers of Philox 4x32-10, written after the paper's description.

    Number j of each block of 64 is word j // 16 of the block's counter j % 16.
    """
    count = np.arange((n + 63) // 64 * 16, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c = [
        count & low,
        count >> np.uint64(32),
        np.zeros_like(count),
        np.zeros_like(count),
    ]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        k0, k1 = np.uint64(keys[0]), np.uint64(keys[1])
        c = [
            (p1 >> np.uint64(32)) ^ c[1] ^ k0,
            p1 & low,
            (p0 >> np.uint64(32)) ^ c[3] ^ k1,
            p0 & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    blocks = np.stack(c).reshape(4, -1, 16).transpose(1, 0, 2)
    return blocks.ravel()[:n].astype(np.float64)


SEED = 123456789012345


def interpolated(image, row, column):
    """Of the four pixels around a point, those outside being 0."""
    y, (h, w) = 0.0, image.shape
    for i in (int(np.floor(row)), int(np.floor(row)) + 1):
        for j in (int(np.floor(column)), int(np.floor(column)) + 1):
            if 0 <= i < h and 0 <= j < w:
                y = y + (1 - abs(row - i)) * (1 - abs(column - j)) * image[i, j]
    return y


def some(g: Draw, axes, *choices):
    """One number for all axes, or one for each."""
    return (
        g.pick(*choices)
        if g.chance(0.5)
        else tuple(g.pick(*choices) for _ in range(axes))
    )
