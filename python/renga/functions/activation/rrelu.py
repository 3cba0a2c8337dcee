"""Rectifiers whose slope is drawn at random."""

from __future__ import annotations

from typing import Literal, overload

import numpy

from renga import _core
from renga._core import Variable
from renga.core.configuration import config
from renga.core.types import Array, ArrayLike
from renga.functions.check import check_arrays, check_floats, check_shape
from renga.functions.noise.seed import draw_seed
from renga.functions.on_host import beside
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_real


@overload
def rrelu(
    x: ArrayLike,
    l: float = 1.0 / 8,  # noqa: E741
    u: float = 1.0 / 3,
    *,
    r: ArrayLike | None = None,
    return_r: Literal[False] = False,
) -> Variable: ...
@overload
def rrelu(
    x: ArrayLike,
    l: float = 1.0 / 8,  # noqa: E741
    u: float = 1.0 / 3,
    *,
    r: ArrayLike | None = None,
    return_r: Literal[True],
) -> tuple[Variable, Array]: ...
def rrelu(
    x: ArrayLike,
    l: float = 1.0 / 8,  # noqa: E741
    u: float = 1.0 / 3,
    **kwargs: object,
) -> Variable | tuple[Variable, Array]:
    """``x``, or ``r x`` where ``x`` is negative, with ``r`` uniform in [l, u).

    Outside training ``r`` is ``(l + u) / 2``. The keyword ``r`` sets it;
    with ``return_r=True`` the result is ``(y, r)``.

    Raises:
        TypeError: ``l`` or ``u`` is not a number.
        ValueError: not ``0 <= l < u < 1``.
        InvalidType: ``x`` is not of floats, or ``r`` has another shape.

    Source: Xu et al., Empirical evaluation of rectified activations, 2015.
    """
    r, return_r = parse_kwargs(
        kwargs,
        ("r", None),
        ("return_r", False),
        train="rrelu: expected using_config('train', …), got train",
    )
    l, u = check_real("rrelu", "l", l), check_real("rrelu", "u", u)  # noqa: E741
    if not 0 <= l < u < 1:
        raise ValueError(f"rrelu: expected 0 <= l < u < 1, got {l} and {u}")
    check_floats("rrelu", x)
    if r is None and config.train:
        zeros = beside(x, numpy.zeros(x.shape, x.dtype))
        r = _core.ops.uniform(zeros, l, u, draw_seed(x)).array
    elif r is None and not return_r:
        return _core.ops.leaky_relu(x, (l + u) / 2)
    elif not config.train:
        r = beside(x, numpy.full(x.shape, (l + u) / 2, x.dtype))
    check_arrays("rrelu", r)
    check_shape("rrelu", r.shape == x.shape, "r of the shape of x", x, r)
    y = _core.ops.prelu(x, r)
    return (y, r) if return_r else y
