"""``chainer._runtime_info``, ``chainer._version``, ``chainer._environment_check``."""

from __future__ import annotations

import io
import platform

import numpy

from renga._runtime.runtime_info import print_runtime_info
from renga.chainer.package import VERSION

__version__ = VERSION


class _RuntimeInfo:
    """Versions; as a string what ``print_runtime_info`` prints."""

    chainer_version = VERSION
    chainerx_available = False
    numpy_version = numpy.__version__
    cuda_info = None
    ideep_version = None

    def __init__(self) -> None:
        self.platform_version = platform.platform()

    def __str__(self) -> str:
        text = io.StringIO()
        print_runtime_info(text)
        return text.getvalue()


def _get_runtime_info() -> _RuntimeInfo:
    return _RuntimeInfo()


def check() -> None:
    """Chainer warns of installations known to fail; renga has none."""
