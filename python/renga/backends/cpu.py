"""The CPU and the main memory."""

from __future__ import annotations

from typing import Any

import numpy

from renga.backends import cuda
from renga.backends.device import Device


class CpuDevice(Device):
    """The main memory; its arrays are NumPy's."""

    xp = numpy  # type: ignore[assignment]
    supported_array_types = (numpy.ndarray,)
    name = "@numpy"  # type: ignore[assignment]

    @staticmethod
    def from_array(array: object) -> CpuDevice | None:
        """The device if ``array`` is a NumPy array, else None."""
        return CpuDevice() if isinstance(array, numpy.ndarray) else None

    def __repr__(self) -> str:
        return "<CpuDevice (numpy)>"

    def _send(self, array: Any) -> Any:
        return (
            cuda.to_cpu(array)
            if isinstance(array, cuda.ndarray)
            else super()._send(array)
        )

    def send_array(self, array: object) -> numpy.ndarray:
        return numpy.asarray(array)
