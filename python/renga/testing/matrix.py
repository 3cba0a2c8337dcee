"""Matrices to test linear algebra with."""

from __future__ import annotations

import numpy

from renga.core.types import DTypeLike
from renga.utils import argument


def generate_matrix(
    shape: tuple[int, ...], dtype: DTypeLike = float, **kwargs: object
) -> numpy.ndarray:
    """Random matrices with the singular values given.

    ``singular_values`` broadcasts to ``shape[:-2] + (min(shape[-2:]),)``.

    Raises:
        ValueError: there are fewer than two axes, or the dtype is not of floats.
        TypeError: no singular values are given.
    """
    (values,) = argument.parse_kwargs(kwargs, ("singular_values", None))
    if values is None:
        raise TypeError("generate_matrix: expected singular_values")
    if len(shape) < 2:
        raise ValueError(f"generate_matrix: expected two or more axes, got {shape}")
    dtype = numpy.dtype(dtype)
    if dtype.kind not in "fc":
        raise ValueError(f"generate_matrix: expected a float dtype, got {dtype}")
    draw = numpy.random.standard_normal(shape)
    if dtype.kind == "c":
        draw = draw + 1j * numpy.random.standard_normal(shape)
    u, _, vh = numpy.linalg.svd(draw, full_matrices=False)
    values = numpy.broadcast_to(values, shape[:-2] + (min(shape[-2:]),))
    return ((u * values[..., None, :]) @ vh).astype(dtype)
