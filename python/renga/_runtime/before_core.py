"""What has to happen before the core is loaded.

The core is compiled for x86-64-v3. A CPU without these instructions would kill the
process, so they are checked. Wider ones (AVX-512, AMX) are detected at run time.

Idle OpenMP threads spin for milliseconds by default. Where others need the same
cores, that makes a training step several times as long. Spinning for 0.1 ms is as fast
on idle cores.
"""

from __future__ import annotations

import os

NEEDED = ("avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm")


def check(description: str) -> None:
    """Raises ImportError for a CPU that lacks instructions, described as in cpuinfo."""
    for line in description.splitlines():
        name, _, flags = line.partition(":")
        if name.strip() == "flags":
            missing = sorted(set(NEEDED) - set(flags.split()))
            if missing:
                raise ImportError(
                    "renga: expected a CPU with the instructions of x86-64-v3, got one "
                    f"without {', '.join(missing)}"
                )
            return


if os.uname().machine == "x86_64":
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            first = file.read(8192)  # the entry of one CPU; there may be hundreds
    except OSError:
        first = ""  # not Linux
    check(first)

os.environ.setdefault("GOMP_SPINCOUNT", "10000")
