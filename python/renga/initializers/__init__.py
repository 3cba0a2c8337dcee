"""Initializers of parameters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Callable

import numpy

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.backends.device import DeviceLike
from renga.core import backend
from renga.core.dtypes import get_dtype
from renga.core.types import Array, DTypeLike, Initial
from renga.initializers.constant import (
    Constant as Constant,
    Identity as Identity,
    NaN as NaN,
    One as One,
    Zero as Zero,
)
from renga.initializers.orthogonal import Orthogonal as Orthogonal
from renga.initializers.random import (
    GlorotNormal as GlorotNormal,
    GlorotUniform as GlorotUniform,
    HeNormal as HeNormal,
    HeUniform as HeUniform,
    LeCunNormal as LeCunNormal,
    LeCunUniform as LeCunUniform,
    Normal as Normal,
    Uniform as Uniform,
)
from renga.initializers.sampling import (
    DownsamplingConvFilter as DownsamplingConvFilter,
    UpsamplingDeconvFilter as UpsamplingDeconvFilter,
)
from renga.utils.extents import check_memory, is_number


def generate_array(
    initializer: Callable[[Array], object],
    shape: int | Sequence[int],
    xp: ModuleType,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Array:
    """A new array of ``shape`` filled by ``initializer``.

    Its dtype is ``dtype``, else the initializer's own, else the configured one.

    Raises:
        ValueError: the first two dtypes differ, or an extent is negative.
        MemoryError: the array would not fit in memory.
    """
    own = getattr(initializer, "dtype", None)
    if dtype is not None and own is not None:
        if numpy.dtype(dtype) != numpy.dtype(own):
            raise ValueError(f"generate_array: expected dtype {own}, got {dtype}")
    dtype = get_dtype(own if dtype is None else dtype)
    extents: Any = (shape,) if is_number(shape) else shape
    shape = check_memory("generate_array", extents, dtype)
    if device is None:
        array = xp.empty(shape, dtype)
        initializer(array)
        return array
    device = backend.get_device(device)
    with backend.using_device(device):
        array = device.xp.empty(shape, dtype)
        initializer(array)
    return array


def get_initializer(initializer: Initial | None) -> Callable[[Array], object]:
    """``initializer``, with a number or an array as a constant and None as LeCun's."""
    if initializer is None:
        return LeCunNormal()
    array_types = backend.get_array_types()
    if numpy.isscalar(initializer) or isinstance(initializer, array_types):
        value: Any = initializer
        return Constant(value)
    if not callable(initializer):
        raise TypeError(
            "initializer: expected a number, an array or a callable, "
            f"got {type(initializer).__name__}"
        )
    return initializer


_get_initializer = get_initializer  # Chainer's name, which links of users call


def with_dtype(initial: Initial | None, dtype: DTypeLike) -> Callable[[Array], object]:
    """An initializer like ``initial`` that makes arrays of ``dtype``."""
    initializer: Any = copy.copy(get_initializer(initial))
    initializer.dtype = dtype
    return initializer


_suggest_names(__name__)
