"""What ranks reduce in tests, and what the definition says about the result."""

import numpy as np


def data(rank, shape, dtype):
    values = np.random.RandomState(rank).uniform(-4, 4, shape)
    return values.astype(dtype)


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
