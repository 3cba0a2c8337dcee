"""What ranks reduce in tests, and what the definition says about the result."""

import functools

import numpy as np


@functools.lru_cache(16)  # of one test, whose references draw what its ranks have drawn
def drawn(rank, shape):
    return np.random.RandomState(rank).uniform(-4, 4, shape)


def data(rank, shape, dtype):
    return np.asarray(drawn(rank, shape)).astype(dtype)


def in_rank_order(xs, op):
    """What the definition says: neighbours pairwise, 16 bits in 32."""
    join = {
        "sum": np.add,
        "mean": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "prod": np.multiply,
    }[op]
    parts = [x.astype("float32") if x.dtype == "float16" else x for x in xs]
    over = len(parts) - 2 ** int(np.log2(len(parts)))
    pairs = [join(parts[2 * i], parts[2 * i + 1]) for i in range(over)]
    parts = pairs + parts[2 * over :]
    while len(parts) > 1:
        parts = [join(a, b) for a, b in zip(parts[::2], parts[1::2])]
    total = parts[0]
    if op == "mean":
        total = total / total.dtype.type(len(xs))
    return total.astype(xs[0].dtype)
