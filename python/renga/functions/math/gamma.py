"""The logarithm of the gamma function, its derivatives, and Hurwitz's zeta."""

from __future__ import annotations

from typing import Any

import numpy

from renga import _core
from renga.core.around_call import reads_elements
from renga.core.variable import Variable, as_array
from renga.functions.check import check_arrays
from renga.functions.math.special import special
from renga.functions.on_host import on_host
from renga.utils.type_check import InvalidType


@on_host
def lgamma(x: Any) -> Variable:
    """``log |gamma(x)|``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    return special("gammaln", x, lambda x, y: digamma(x))


@on_host
def digamma(x: Any) -> Variable:
    """The derivative of ``log gamma(x)``.

    Raises:
        InvalidType: ``x`` is not of floats.
    """
    return special("digamma", x, lambda x, y: _polygamma(1, x))


@on_host
def polygamma(n: Any, x: Any) -> Variable:
    """The ``n``-th derivative of ``digamma(x)``; it has a gradient in ``x`` only.

    Shapes:
        n: integers, of a shape that broadcasts to that of x

    Raises:
        InvalidType: ``n`` is not of integers or ``x`` not of floats.
    """
    check_arrays("polygamma", x)
    n = numpy.asarray(as_array(n))
    if n.dtype.kind not in "iu":
        raise InvalidType(f"polygamma: expected n of integers, got {n.dtype}")
    n = n.astype(numpy.int64)  # n + 1 must not wrap around
    return _polygamma(n, _spread("polygamma", x, n))


def _polygamma(n: Any, x: Any) -> Variable:
    return special("polygamma", x, lambda x, y: _polygamma(n + 1, x), n)


@reads_elements
@on_host
def zeta(x: Any, q: Any) -> Variable:
    """``sum((k + q) ** -x)`` for k = 0, 1, …; it has a gradient in ``q`` only.

    Raises:
        InvalidType: ``x`` is not of real numbers or ``q`` not of floats.
    """
    check_arrays("zeta", q)
    x = numpy.asarray(as_array(x))
    if x.dtype.kind not in "biuf":
        raise InvalidType(f"zeta: expected x of real numbers, got {x.dtype}")
    x = x.astype(float)  # x + 1 must not be rounded
    q = _spread("zeta", q, x)
    return special("zeta", q, lambda q, y: -(zeta(x + 1, q) * x), x)


def _spread(name: str, x: Any, parameter: Any) -> Any:
    """``x`` in the shape that it has in common with a parameter."""
    try:
        shape = numpy.broadcast_shapes(x.shape, parameter.shape)
    except ValueError:
        raise InvalidType(
            f"{name}: expected shapes that go together, got {x.shape} and "
            f"{parameter.shape}"
        ) from None
    return x if shape == x.shape else _core.ops.broadcast_to(x, shape)
