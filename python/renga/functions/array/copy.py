"""Arrays on other devices."""

from __future__ import annotations

from renga.backends.cuda import DummyDevice
from renga.backends.device import DeviceLike
from renga.core.around_call import reads_elements
from renga.core.backend import Device, get_device, get_device_from_array
from renga.core.function_node import FunctionNode
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_array, as_variable, holds_numbers
from renga.functions.check import check_arrays


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

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Variable, ...]
    ) -> tuple[Variable | None, ...]:
        return (copy(grad_outputs[0], self._source),)
