"""Chainer's iDeep device, which never exists: renga's own kernels replace it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy

from renga.backends.device import Device


class mdarray:
    """The type of iDeep's arrays; no array has it."""


class Intel64Device(Device):
    """The processor through iDeep."""

    xp = numpy  # type: ignore[assignment]
    supported_array_types = (numpy.ndarray, mdarray)
    name = "@intel64"  # type: ignore[assignment]

    def __init__(self) -> None:
        check_ideep_available()

    @staticmethod
    def from_array(array: object) -> Intel64Device | None:
        """The device of an iDeep array, None for anything else."""
        return Intel64Device() if isinstance(array, mdarray) else None


def is_ideep_available() -> bool:
    """False: renga does not use iDeep."""
    return False


def check_ideep_available() -> NoReturn:
    """Raises RuntimeError."""
    raise RuntimeError(
        "intel64: expected iDeep, got renga, whose '@numpy' device is as fast"
    )


def should_use_ideep(level: str) -> bool:
    """False: renga does not use iDeep."""
    return False


def inputs_all_ready(
    inputs: Sequence[object], supported_ndim: Sequence[int] = (2, 4)
) -> bool:
    """False: no array is ready for iDeep."""
    return False
