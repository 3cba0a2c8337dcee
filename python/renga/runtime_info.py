"""Versions of renga, its dependencies and the platform."""

from __future__ import annotations

import sys
from typing import Any

from renga import _core
from renga.backends import cuda

_OPTIONAL = ("mpi4py", "cupy", "h5py", "matplotlib", "scipy")


def print_runtime_info(out: Any = None) -> None:
    """Prints the versions of renga, its dependencies and the platform.

    ``out`` is a file, by default the standard output.
    """
    import platform

    lines = {
        "Platform": platform.platform(),
        "Python": platform.python_version(),
        "renga": _core.__version__,
        "Threads": _core.get_num_threads(),
        "CUDA": "available" if cuda.available else "not available",
        "NumPy": _version("numpy"),
        **{name: _version(name) for name in _OPTIONAL},
    }
    for name, value in lines.items():
        print(f"{name}: {value}", file=out or sys.stdout)


def _version(package: str) -> str:
    from importlib import metadata  # slow to import

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
