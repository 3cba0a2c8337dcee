"""One seed for everything random."""

from __future__ import annotations

import random

import numpy

from renga.utils.argument import check_count


def seed_everything(seed: int) -> int:
    """Seeds Python's and NumPy's global generators; returns ``seed``.

    The core's generators are seeded from NumPy's, so initial values, dropout, orders of
    examples and :mod:`renga.transforms` repeat. Ranks that should draw different
    numbers, as for dropout, add their rank to the seed after making their models.

    Raises:
        TypeError, ValueError: it is not an integer from 0 to 2^32 - 1.
    """
    check_count("seed_everything: seed", seed, 0)
    if seed >= 2**32:
        raise ValueError(f"seed_everything: expected a seed below 2^32, got {seed}")
    random.seed(seed)
    numpy.random.seed(seed)
    return seed
