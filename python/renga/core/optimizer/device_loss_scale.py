"""A dynamic loss scale on a CUDA device, which masks the updates that overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy

from renga import _core
from renga._core import Variable
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import as_factor, as_variable

_BOOL, _FLOAT32, _FLOAT64 = map(
    numpy.dtype, (numpy.bool_, numpy.float32, numpy.float64)
)


class DeviceLossScale:
    """What ``LossScaling`` keeps, as numbers on a device: the host waits for none.

    An update after an overflow is started as any other, and changes nothing.
    """

    def __init__(self, device: str, scale: float, has_overflowed: bool) -> None:
        self.device = device
        self.scale = self._number(scale)
        self._has_overflowed = self._number(has_overflowed)
        self._overflows = self._number(0)  # of the last update, 1 or 0
        self._skipped = self._number(0)  # updates

    def _number(self, value: float) -> Any:
        number = _core.empty((), _FLOAT64, self.device)
        _core.fill_array(number, value)
        return as_variable(number)

    def backward(self, loss: Variable) -> None:
        """Computes the gradients, multiplied by the scale."""
        seed = _core.ops.cast(self.scale, loss.dtype)
        loss.grad = _core.ops.reshape(seed, loss.shape).array
        loss.backward()

    def check(self, grads: Iterable[Array]) -> None:
        """Finds out whether gradients have overflowed, and masks the update if so."""
        zeros = total_of_zeros(grads)
        self._overflows = _core.ops.cast(_core.ops.cast(zeros, _BOOL), _FLOAT64)
        mask = _core.ops.stack([self._overflows, self._skipped], 0)
        self._mask = _core.ops.cast(mask, _FLOAT32)

    def update(
        self,
        params: Iterable[Parameter],
        before_update: Callable[[Parameter], object] | None,
    ) -> None:
        """Updates parameters, unless gradients have overflowed."""
        for param in params:
            if before_update is not None:
                before_update(param)
            param.update_rule.mask = self._mask
            try:
                param.update()
            finally:
                param.update_rule.mask = None

    def adapt(self, growth: float, largest: float) -> None:
        """Changes the scale as ``LossScaling.update_loss_scale`` does."""
        where, overflows = _core.ops.where, _core.ops.cast(self._overflows, _BOOL)
        self._has_overflowed = _core.ops.maximum(self._has_overflowed, self._overflows)
        has_overflowed = _core.ops.cast(self._has_overflowed, _BOOL)
        grown = where(has_overflowed, self.scale * growth, self.scale * 2.0)
        scale = where(overflows, self.scale * 0.5, grown)
        self.scale = _core.ops.clip(scale, 1.0, largest)
        self._skipped = self._skipped + self._overflows

    def unscale(self, params: Iterable[Parameter]) -> None:
        """Divides the gradients by the scale, of float32 updates when they begin."""
        for param in params:
            rule = param.update_rule
            rule.device_scale = None
            if rule.updates_in_fp32(param):
                rule.device_scale = self.scale
            elif param.grad is not None:
                param.grad /= as_factor(self.scale, param.grad)

    def read(self) -> tuple[float, bool, bool, int]:
        """Waits for the scale, the flags of the past and of the last update, and the
        number of updates that changed nothing.
        """
        numbers = [self.scale, self._has_overflowed, self._overflows, self._skipped]
        scale, past, last, skipped = (number.item() for number in numbers)
        return scale, past > 0, last > 0, int(skipped)


def total_of_zeros(arrays: Iterable[Array]) -> Variable:
    """A number on the devices' side: 0 if all elements are finite, else NaN."""
    total: Any = None
    for x in arrays:
        zero = _core.ops.cast(_core.ops.sum(as_variable(x) * 0), _FLOAT32)
        total = zero if total is None else total + zero
    return total
