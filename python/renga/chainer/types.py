"""The types that annotations of Chainer's scripts name."""

import numbers
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Callable, Union

import numpy

from renga.backends.device import Device

Shape = tuple[int, ...]
ShapeSpec = Union[int, Sequence[int]]
DTypeSpec = Any
NdArray = numpy.ndarray
Xp = ModuleType
AbstractInitializer = Callable[[Any], None]
ScalarValue = Union[numpy.generic, bytes, str, memoryview, numbers.Number]
InitializerSpec = Union[AbstractInitializer, ScalarValue, numpy.ndarray]
DeviceSpec = Union[Device, str, tuple[str, int], ModuleType]
CudaDeviceSpec = Any
