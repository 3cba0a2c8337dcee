"""Rounding in NumPy, as the core rounds."""

import numpy as np

import renga
import renga.functions as F


def rounded_to_bfloat16(x):
    """Round to nearest even, by the bits."""
    bits = np.ascontiguousarray(x, "float32").view("uint32").astype("uint64")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype("uint32").view("f")


def as_bfloat16(x):
    """``x``, rounded, as a Variable held in bfloat16, as the result of a product is.

    While ``config.dtype`` is ``mixed_bfloat16``.
    """
    x = np.asarray(x, "f")
    column = renga.Variable(x.reshape(-1, 1))
    return F.reshape(F.matmul(column, np.ones((1, 1), "f")), x.shape)
