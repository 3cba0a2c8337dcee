"""Where the core's random operations get their seeds."""

import numpy


def draw_seed() -> int:
    """53 bits from NumPy's global generator, so that seeding that one is enough."""
    return int(numpy.random.random_sample() * 2**53)
