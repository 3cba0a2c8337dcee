"""Where the core's random operations get their seeds."""

import numpy

_draw = numpy.random.random_sample


def draw_seed() -> int:
    """53 bits from NumPy's global generator, so that seeding that one is enough."""
    return int(_draw() * 2**53)
