"""Hidden units that keep their old values at random."""

from __future__ import annotations

from renga import _core
from renga.core.configuration import config
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.array.cast import promoted
from renga.functions.check import check_arrays, check_shape
from renga.functions.noise.seed import generator
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_real


def zoneout(
    h: ArrayLike, x: ArrayLike, ratio: float = 0.5, **kwargs: object
) -> Variable:
    """Elements of ``h`` with probability ``ratio``, of ``x`` elsewhere.

    Outside training it is ``x``.

    Raises:
        TypeError: the ratio is not a number.
        ValueError: the ratio is not in [0, 1].
        InvalidType: shapes differ.

    Source: Krueger et al., Zoneout: regularizing RNNs by randomly preserving hidden
    activations, 2016.
    """
    parse_kwargs(kwargs, train="zoneout: expected using_config('train', …), got train")
    if not config.train:
        return as_variable(x)
    check_arrays("zoneout", h, x)
    check_shape("zoneout", h.shape == x.shape, "arrays of one shape", h, x)
    ratio = check_real("zoneout", "ratio", ratio)
    if not 0 <= ratio <= 1:
        raise ValueError(f"zoneout: expected a ratio in [0, 1], got {ratio}")
    return _core.ops.where(generator(h).random_sample(h.shape) < ratio, *promoted(h, x))
