"""What is measured in a process of a library's own Python."""

from __future__ import annotations

import os
import subprocess


def numbers_of(
    python: str | os.PathLike[str],
    module: str,
    *arguments: object,
    **environment: object,
) -> list[float]:
    """The numbers that a benchmark prints, with these variables in its environment."""
    done = subprocess.run(
        [python, "-m", f"tests.benchmarks.{module}", *map(str, arguments)],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [float(number) for number in done.stdout.split()]
