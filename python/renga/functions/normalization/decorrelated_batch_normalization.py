"""Batch normalization that also makes channels independent, and roots of matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from renga import _core
from renga.core.around_call import Function, reads_elements
from renga.core.configuration import config, using_config
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.functions.check import check_arrays, check_floats, check_shape, check_written
from renga.functions.math.average import average
from renga.functions.on_host import on_host
from renga.utils.argument import parse_kwargs
from renga.utils.extents import check_integer, check_real
from renga.utils.type_check import InvalidType


def _in_float32(function: Function) -> Function:
    """The function without products in bfloat16, for statistics."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        with using_config("dtype", numpy.dtype("f")):
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


@reads_elements
@on_host
@_in_float32
def decorrelated_batch_normalization(x: ArrayLike, **kwargs: object) -> Variable:
    """``P (x - mean)`` with P the covariance's inverse root, in groups of channels.

    Keywords: ``groups=16``, ``eps=2e-5`` added to the variances, ``running_mean=None``
    and ``running_projection=None``, updated in place, and their ``decay=0.9``.

    Shapes:
        x: (N, C, …)
        running_mean: (groups, C / groups)
        running_projection: (groups, C / groups, C / groups)

    Raises:
        TypeError: ``groups`` is not an integer, or ``eps`` or ``decay`` not a number.
        InvalidType: ``x`` is not of floats, has one axis only, or channels that cannot
            be divided into that many groups.

    Source: Huang et al., Decorrelated batch normalization, 2018.
    """
    groups, eps, running_mean, running_projection, decay = parse_kwargs(
        kwargs,
        ("groups", 16),
        ("eps", 2e-5),
        ("running_mean", None),
        ("running_projection", None),
        ("decay", 0.9),
    )
    name = "decorrelated_batch_normalization"
    for label, running in (
        ("running_mean", running_mean),
        ("running_projection", running_projection),
    ):
        if running is not None:
            check_written(name, label, running)
    eps, decay = check_real(name, "eps", eps), check_real(name, "decay", decay)
    pixels = _by_groups(name, x, groups)
    ops = _core.ops
    mean = average(pixels, (0, 3), keepdims=True)
    centred = ops.subtract(pixels, mean)
    count = pixels.shape[0] * pixels.shape[3]
    products = ops.matmul(centred, centred, transb=True)
    covariance = ops.sum(products, 0) / max(count, 1)
    diagonal = eps * numpy.eye(pixels.shape[2], dtype=pixels.dtype)
    projection = inverse_root(
        ops.add(covariance, numpy.broadcast_to(diagonal, covariance.shape))
    )
    if pixels.size and not config.in_recomputing:
        # The unbiased factor is Chainer's; that of variances would be its square root.
        unbiased = projection.array * (count / max(count - 1.0, 1.0))
        for running, batch_value in (
            (running_mean, mean.array[0, ..., 0]),
            (running_projection, unbiased),
        ):
            if running is not None:
                running *= decay
                running += ((1 - decay) * batch_value).astype(running.dtype)
    return _as_images(ops.matmul(projection, centred), x)


@_in_float32
def fixed_decorrelated_batch_normalization(
    x: ArrayLike, mean: ArrayLike, projection: ArrayLike, groups: int = 16
) -> Variable:
    """``projection (x - mean)`` in groups of channels.

    Shapes:
        x: (N, C, …)
        mean: (groups, C / groups)
        projection: (groups, C / groups, C / groups)

    Raises:
        InvalidType: shapes or dtypes do not fit.
    """
    name = "fixed_decorrelated_batch_normalization"
    pixels = _by_groups(name, x, groups)
    width = pixels.shape[2]
    check_arrays(name, mean, projection)
    fits = mean.shape == (groups, width) and projection.shape == (groups, width, width)
    check_shape(
        name, fits, f"{groups} means and projections of {width}", mean, projection
    )
    ops = _core.ops
    mean, projection = (ops.cast(x, pixels.dtype) for x in (mean, projection))
    centred = ops.subtract(pixels, ops.reshape(mean, (groups, width, 1)))
    return _as_images(ops.matmul(projection, centred), x)


def _by_groups(name: str, x: Any, groups: int) -> Variable:
    """(S, groups, C / groups, elements), in float32 for numbers of 16 bits.

    S is N, or 1 for samples of so few elements that products of each would take longer
    than a copy of ``x`` with channels first.
    """
    check_floats(name, x)
    check_shape(name, x.ndim >= 2, "(N, C, …)", x)
    groups = check_integer(name, "groups", groups)
    if groups < 1 or x.shape[1] % groups:
        raise InvalidType(f"{name}: expected {x.shape[1]} channels in {groups} groups")
    x = _core.ops.cast(x, numpy.dtype("f") if x.dtype.char == "e" else x.dtype)
    samples, channels = x.shape[:2]
    width, size = channels // groups, x.size // max(channels, 1)
    if size // max(samples, 1) < max(width, 32):
        x, samples = _swapped(x), 1
    shape = (samples, groups, width, size // max(samples, 1))
    return _core.ops.reshape(x, shape)


def _as_images(y: Variable, x: Any) -> Variable:
    ops = _core.ops
    if y.shape[0] == x.shape[0]:
        y = ops.reshape(y, x.shape)
    else:
        shape = (x.shape[1], x.shape[0], *x.shape[2:])
        y = _swapped(ops.reshape(y, shape))
    return ops.cast(y, x.dtype)


def _swapped(x: Any) -> Variable:
    return _core.ops.transpose(x, (1, 0, *range(2, x.ndim)))


def inverse_root(a: ArrayLike) -> Variable:
    """P with ``P P a = 1`` for symmetric positive matrices in the last two axes."""
    return _InverseRoot().apply((a,))[0]


class _InverseRoot(FunctionNode):
    label = "InverseRoot"

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        (a,) = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        values, vectors = numpy.linalg.eigh(a)
        scaled = vectors / numpy.sqrt(values)[..., None, :]
        return ((scaled @ numpy.swapaxes(vectors, -1, -2)).astype(a.dtype),)

    @_in_float32
    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        # With Q = a P, the root: dP = -P dQ P, and dQ Q + Q dQ = da.
        matmul = _core.ops.matmul
        (a,), (p,), (gp,) = (
            self.get_retained_inputs(),
            self.get_retained_outputs(),
            grad_outputs,
        )
        gq = -matmul(matmul(p, gp), p)
        return _Lyapunov().apply((matmul(a, p), gq))


class _Lyapunov(FunctionNode):
    """X with ``q X + X q = c`` for symmetric positive q."""

    label = "Lyapunov"

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        q, c = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        values, vectors = numpy.linalg.eigh((q + numpy.swapaxes(q, -1, -2)) / 2)
        back = numpy.swapaxes(vectors, -1, -2)
        inner = back @ c @ vectors / (values[..., :, None] + values[..., None, :])
        return ((vectors @ inner @ back).astype(c.dtype),)

    @_in_float32
    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Variable | None, ...]:
        matmul = _core.ops.matmul
        (q,), (x,) = self.get_retained_inputs(), self.get_retained_outputs()
        (gc,) = _Lyapunov().apply((q, grad_outputs[0]))
        gq = -(matmul(gc, x, transb=True) + matmul(x, gc, transa=True))
        return tuple((gq, gc)[i] for i in target_input_indexes)
