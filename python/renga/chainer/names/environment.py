"""Names of modules on what is installed: versions, devices, Graphviz, test tools."""

from __future__ import annotations

import io
import platform
import subprocess
from collections.abc import Sequence

import numpy

from renga._runtime.runtime_info import print_runtime_info
from renga.backends.device import Device as Device
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


def is_available() -> bool:
    """True: nothing else has to be installed."""
    return True


def check_available() -> None:
    """Does nothing: nothing else has to be installed."""


def get_error() -> None:
    """None: there was no error."""


def is_return_code_zero(args: Sequence[str]) -> bool:
    """Whether a command exists and succeeds; its output is dropped."""
    try:
        done = subprocess.run(args, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def is_graphviz_available() -> bool:
    """Whether Graphviz's ``dot`` can be run."""
    return is_return_code_zero(["dot", "-V"])
