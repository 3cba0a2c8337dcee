"""The CPU instructions that the core needs, checked before it is loaded.

The core is compiled for x86-64-v3; on a CPU without these instructions the process
would be killed. Wider ones (AVX-512, AMX) are detected at run time.
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
