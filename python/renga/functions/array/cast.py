"""Arrays in another dtype, and on another device."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from renga import _core
from renga.backends.cuda import DummyDevice
from renga.backends.device import DeviceLike
from renga.core.around_call import reads_elements
from renga.core.backend import Device, get_device, get_device_from_array
from renga.core.configuration import config
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike, DTypeLike, Grads, Indexes, Variables
from renga.core.variable import Variable, as_array, as_variable, holds_numbers
from renga.functions.check import check_arrays
from renga.utils.type_check import InvalidType


def cast(x: ArrayLike, typ: DTypeLike) -> Variable:
    """``x`` in dtype ``typ``: a new Variable, even if it has that already.

    In ``no_backprop_mode`` a Variable that has it is returned itself.
    """
    check_arrays("cast", x)
    # Not skipped for equal dtypes: the core's bfloat16 arrays report float32.
    try:
        y = _core.ops.cast(as_variable(x), typ)  # type: ignore[arg-type]
    except InvalidType:
        if holds_numbers(x):
            raise
        return Variable(as_array(x).astype(typ), requires_grad=False)
    return _core.ops.identity(y) if y is x and config.enable_backprop else y


def cast_floats(name: str, x: ArrayLike, *ys: ArrayLike | None) -> list[Any]:
    """The arrays ``ys``, in the dtype of ``x`` where both are floats; None as it is.

    Raises:
        TypeError: one is not an array.
    """
    check_arrays(name, x, *(y for y in ys if y is not None))
    dtype = x.dtype
    return [
        y
        if y is None or y.dtype == dtype or not dtype.kind == y.dtype.kind == "f"
        else cast(y, dtype)
        for y in ys
    ]


def with_cast_params(
    error: InvalidType,
    function: Callable[..., Variable],
    x: ArrayLike,
    *params: ArrayLike | None,
    **options: object,
) -> Variable:
    """``function(x, *params)`` after an error, the parameters in the dtype of ``x``.

    Without type checks alone, as in numerical gradients, which are more exact in
    float64 than in the dtype of the parameters; else it raises the error.
    """
    if config.type_check:
        raise error
    return function(x, *cast_floats(function.__name__, x, *params), **options)


def promoted(*xs: ArrayLike) -> list[ArrayLike]:
    """The arrays, cast to the dtype that NumPy would compute with."""
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = numpy.promote_types(dtype, x.dtype)
    return [x if x.dtype == dtype else cast(x, dtype) for x in xs]


def in_nominal_dtype(x: ArrayLike) -> Variable:
    """``x`` in the dtype that Python sees; the core may hold it as bfloat16."""
    return _core.ops.cast(x, x.dtype)


@reads_elements
def copy(x: ArrayLike, dst: DeviceLike) -> Variable:
    """``x`` copied to a device: a number, a specifier, a Device or a ``DummyDevice``.

    Raises:
        RuntimeError: the device does not exist here.
    """
    check_arrays("copy", x)
    device = get_device(-1 if dst is DummyDevice else dst)
    if not holds_numbers(as_array(x)) or x.dtype.kind == "b":
        return Variable(device.send(as_array(x)).copy(), requires_grad=False)
    x = as_variable(x)
    return x * 1 if x.device == device else Copy(device).apply((x,))[0]


class Copy(FunctionNode):
    """A copy on another device."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        self._source = get_device_from_array(*inputs)
        return (self._device.send(inputs[0]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        return (copy(grad_outputs[0], self._source),)
