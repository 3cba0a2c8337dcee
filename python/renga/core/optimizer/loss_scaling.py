"""LossScaling: the factor on the loss that keeps float16 gradients from vanishing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy

from renga.core.optimizer.device_loss_scale import DeviceLossScale, total_of_zeros
from renga.core.types import Array
from renga.utils.argument import check_number

# The largest float16; a larger scale would overflow the loss itself.
_MAX_SCALE = 65504.0


class LossScaling:
    """A constant scale, or one that grows until gradients overflow.

    Each update without overflow multiplies the scale, by two until the first
    overflow; each overflow halves it and skips the update.
    """

    target: Any
    _host_loss_scale: float | None = None
    _device_loss_scale: DeviceLossScale | None = None  # a dynamic one
    _loss_scaling_is_dynamic = False
    _loss_scaling_isnan = False
    _loss_scaling_isnan_ever = False
    _loss_scaling_multiplier = 1.0

    @property
    def has_dynamic_loss_scale(self) -> bool:
        """Whether the scale follows overflows of gradients."""
        return self._loss_scaling_is_dynamic

    @property
    def loss_scale(self) -> float | None:
        """The scale; one on a device is waited for."""
        self._read_device_loss_scale()
        return self._host_loss_scale

    @loss_scale.setter
    def loss_scale(self, scale: float | None) -> None:
        self._read_device_loss_scale()
        self._host_loss_scale = scale

    def _read_device_loss_scale(self) -> None:
        """Continues on the host what a device has counted, if one has."""
        on_device, self._device_loss_scale = self._device_loss_scale, None
        if on_device is None:
            return
        scale, past, last, skipped = on_device.read()
        self._host_loss_scale = scale
        self._loss_scaling_isnan_ever, self._loss_scaling_isnan = past, last
        for param in self.target.params():
            if param.update_rule is not None:
                param.update_rule.t -= skipped

    def _loss_scale_on(self, device: str) -> DeviceLossScale:
        """The dynamic scale, on a device from now on."""
        if self._device_loss_scale is None or self._device_loss_scale.device != device:
            scale = self.loss_scale or 1.0
            self._device_loss_scale = DeviceLossScale(
                device, scale, self._loss_scaling_isnan_ever
            )
        return self._device_loss_scale

    def _adapt_device_loss_scale(self, scale: DeviceLossScale) -> None:
        scale.adapt(self._loss_scaling_multiplier, _MAX_SCALE)

    def loss_scaling(self, interval: int = 1000, scale: float | None = None) -> None:
        """Sets a constant ``scale``, or without one a dynamic scale.

        A dynamic scale doubles in ``interval`` updates without overflow.
        """
        if scale is not None:
            self.set_loss_scale(scale)
            return
        if interval < 1:
            raise ValueError(f"loss_scaling: expected interval >= 1, got {interval}")
        self._read_device_loss_scale()
        self._loss_scaling_is_dynamic = True
        self._loss_scaling_isnan = self._loss_scaling_isnan_ever = False
        self._loss_scaling_multiplier = 2 ** (1 / interval)
        self.loss_scale = 1.0

    def set_loss_scale(self, loss_scale: float | None) -> None:
        """Sets a constant scale; None turns it off."""
        if loss_scale is not None:
            check_number("loss_scaling: scale", loss_scale)
            if not 0 < loss_scale < math.inf:
                raise ValueError(
                    f"loss_scaling: expected a positive, finite scale, got {loss_scale}"
                )
        self._read_device_loss_scale()
        self._loss_scaling_is_dynamic = self._loss_scaling_isnan = False
        self.loss_scale = loss_scale

    def check_nan_in_grads(self) -> None:
        """Records whether a gradient has overflowed, if the scale is dynamic.

        Raises:
            RuntimeError: in a pipeline without a flush.
        """
        if not self._loss_scaling_is_dynamic:
            return
        self._read_device_loss_scale()
        params = list(self.target.params(include_uninit=False))
        grads = [param.grad for param in params if param.grad is not None]
        overflows = float(not are_finite(grads))
        # The shards of another rank may overflow. The ranks of one parameter tell.
        sharded = next((param for param in params if param.is_divided), None)
        if sharded is not None:
            overflows = sharded.sum_over_shards(overflows)
        self.note_overflow(self.target.sum_over_stages(overflows) > 0)

    def note_overflow(self, has_overflowed: bool) -> None:
        """Records whether a gradient has overflowed."""
        self._loss_scaling_isnan = has_overflowed
        self._loss_scaling_isnan_ever |= has_overflowed

    def ignore_overflows(self) -> None:
        """Has each gradient update from now on; the scale is constant."""
        self._loss_scaling_is_dynamic = self._loss_scaling_isnan = False
        self._device_loss_scale = None

    def is_safe_to_update(self) -> bool:
        """Whether no gradient had overflowed at the last check."""
        self._read_device_loss_scale()
        return not self._loss_scaling_isnan

    def update_loss_scale(self) -> None:
        """Adapts a dynamic scale to the last check."""
        if not self._loss_scaling_is_dynamic or self.loss_scale is None:
            return
        if self._loss_scaling_isnan:
            factor = 0.5
        elif self._loss_scaling_isnan_ever:
            factor = self._loss_scaling_multiplier
        else:
            factor = 2.0
        self.loss_scale = min(max(self.loss_scale * factor, 1.0), _MAX_SCALE)


def are_finite(arrays: Iterable[Array]) -> bool:
    """Whether all elements are finite; waits once for the devices."""
    arrays = list(arrays)
    on_host = [x for x in arrays if isinstance(x, numpy.ndarray)]
    if not all(numpy.isfinite(x).all() for x in on_host):
        return False
    zeros = total_of_zeros(x for x in arrays if not isinstance(x, numpy.ndarray))
    return zeros is None or not math.isnan(zeros.item())
