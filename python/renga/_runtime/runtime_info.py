"""Versions of renga, its dependencies and the platform."""

from __future__ import annotations

import os
import platform
import sys
from typing import IO

from renga import _core
from renga.backends import cuda

_OPTIONAL = ("scikit-learn", "onnx", "mpi4py", "cupy", "h5py", "matplotlib", "scipy")


def print_runtime_info(out: IO[str] | None = None) -> None:
    """Prints the versions of renga, its dependencies and the platform.

    ``out`` is a file, by default the standard output.
    """
    for name, value in runtime_info().items():
        print(f"{name}: {value}", file=out or sys.stdout)


def runtime_info() -> dict[str, object]:
    """By name, the versions of renga and its dependencies, and the platform."""
    return {
        "Platform": platform.platform(),
        "Python": platform.python_version(),
        "renga": _core.__version__,
        "CPU": cpu(),
        "Tiles": tiles()[1],
        "Threads": _core.get_num_threads(),
        "Devices": ", ".join(_core.device_names()),
        "CUDA": _cuda(),
        "NumPy": _version("numpy"),
        "oneDNN": _version("onednn-cpu-gomp", otherwise="within the wheel of renga"),
        **{name: _version(name) for name in _OPTIONAL},
    }


def _cuda() -> str:
    """Whether there are devices, and the versions of what computes there."""
    if not cuda.available:
        return "not available"
    versions = cuda.load_plugin().versions()
    return ", ".join(["available", *(f"{name} {v}" for name, v in versions.items())])


def _cpu_entries() -> dict[str, str]:
    """What Linux says of the first processor."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = [line.split(":", 1) for line in file.read(8192).splitlines()]
    except OSError:
        return {}
    return {line[0].strip(): line[1].strip() for line in reversed(lines) if line[1:]}


def cpu() -> str:
    """The model of the CPU and those of its instruction sets that kernels use."""
    names = {"avx2", "avx512f", "avx512_bf16", "amx_bf16"}
    entries = _cpu_entries()
    found = [flag for flag in entries.get("flags", "").split() if flag in names]
    limits = [
        f"{name}={os.environ[name]}"
        for name in ("RENGA_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA")
        if name in os.environ
    ]
    return f"{entries.get('model name', 'unknown')}; {', '.join(found + limits)}"


def tiles() -> tuple[bool, str]:
    """Whether tiles are used as they should be, and what multiplies them.

    The host of a virtual machine may hide the tiles (AMX) that its processor has.
    """
    # Sapphire Rapids, Emerald Rapids and Granite Rapids.
    models_with_tiles = {"143", "207", "173", "174"}
    entries = _cpu_entries()
    if _core.tile_unit() == "amx":
        return True, "AMX"
    has_tiles = (
        entries.get("vendor_id") == "GenuineIntel"
        and entries.get("cpu family") == "6"
        and entries.get("model") in models_with_tiles
    )
    if has_tiles and "amx_bf16" not in entries.get("flags", "").split():
        return False, "none: the host hides the AMX of this processor"
    return True, "none"


def _version(package: str, otherwise: str = "not installed") -> str:
    from importlib import metadata  # slow to import

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return otherwise
