"""The types that annotations name: arrays, what stands for one, and their shapes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable, Optional, Protocol, Union

import numpy

from renga import _core

Array = numpy.ndarray
"""An array of any shape and dtype; one on a CUDA device has the same interface."""
ArrayLike = Union[_core.Variable, numpy.ndarray]
"""A Variable or an array: what functions and links compute with."""
Operand = Union[_core.Variable, numpy.ndarray, float]
"""A Variable, an array, or a number in place of all elements."""
Initial = Union[Callable[[Array], object], numpy.ndarray, float]
"""An initializer, which fills an array, or a parameter's first values or value."""
Shape = tuple[int, ...]
Indexes = tuple[int, ...]
Variables = tuple[_core.Variable, ...]
Grads = tuple[Optional[_core.Variable], ...]
"""The gradients of several Variables; None of one that none is known of."""
Extents = Union[int, Sequence[int]]
"""A number for each axis, or one for all of them."""

Path = Union[str, "os.PathLike[str]"]
"""The name of a file or of a folder."""
Random = Union["numpy.random.RandomState", "numpy.random.Generator"]
"""What draws random numbers on the host; NumPy loads it at first use."""


class HasDType(Protocol):
    """What NumPy makes a dtype of, as it has one; mixed16 has."""

    dtype: numpy.dtype


DTypeLike = Union[numpy.dtype, type, str, HasDType]
"""A NumPy dtype, or its class or name; "bfloat16" names one that NumPy lacks."""


class Dataset(Protocol):
    """What has examples: DatasetMixin, list, tuple and array are data sets."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...


class CalledFunction(Protocol):
    """What hooks are called around: a function node, or an operation of the core."""

    @property
    def label(self) -> str: ...
