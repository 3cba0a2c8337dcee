"""Arrays on other devices."""

from __future__ import annotations

from typing import Any

from renga.backend import get_device
from renga.placement import reads_elements
from renga.variable import Variable, as_array, as_variable


@reads_elements
def copy(x: Any, dst: Any) -> Variable:
    """``x`` copied to a device: a number, a specifier or a Device.

    Raises:
        RuntimeError: the device does not exist here.
    """
    device = get_device(dst)
    device.send(as_array(x))
    return as_variable(x) * 1
