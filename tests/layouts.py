"""Arrays with the numbers of a given one that a result cannot be written into."""

import numpy as np


def read_only(x):
    """``x`` itself, without permission to write."""
    x.flags.writeable = False
    return x


def unaligned(x):
    """A copy that begins one byte after an address that fits its dtype."""
    memory = np.zeros(x.nbytes + 1, np.uint8)
    y = memory[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y
