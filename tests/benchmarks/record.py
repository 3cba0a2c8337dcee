"""Compares training steps with PyTorch's and with the recorded ratios of this CPU.

    python -m tests.benchmarks.record --peer PYTHON_WITH_TORCH [--update]

Each row is the time of PyTorch divided by that of renga, measured in turn
(``training.py``). A row fails if all of its rounds are below those of the record: then
renga is slower by more than the spread. The exit status is 1 if a row fails.
``--update`` writes the record, ``tests/benchmarks/record.json``.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from typing import Any

from tests.benchmarks.training import Comparison, compare

RECORD = pathlib.Path(__file__).with_name("record.json")
ROWS = [
    (model, threads, dtype)
    for dtype in ("float32", "mixed")
    for threads in (1, 2)
    for model in ("vgg", "dcgan", "mlp")
    if (model, dtype) != ("mlp", "mixed")
]


def cpu() -> str:
    """The model of this machine's CPU, by which records are kept."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = re.search(r"^model name\s*: (.*)$", text, re.M)
    return found.group(1) if found else "unknown"


def verdict(found: Comparison, recorded: dict[str, float] | None) -> str:
    """What a row says of a measurement."""
    if recorded is None:
        return "no record"
    if found.highest < recorded["lowest"]:
        return "SLOWER"
    return "faster" if found.lowest > recorded["highest"] else "as recorded"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="a Python with torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    records: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    recorded, measured, verdicts = records.get(cpu(), {}), {}, []
    for model, threads, dtype in ROWS:
        options.dtype, options.device = dtype, "@numpy"
        found = compare(model, threads, options)
        name = f"{model}, {dtype}, {threads} threads"
        verdicts.append(verdict(found, recorded.get(name)))
        numbers = {
            k: round(getattr(found, k), 3) for k in ("ratio", "lowest", "highest")
        }
        measured[name] = numbers
        spread = f"({found.lowest:.2f}-{found.highest:.2f})"
        print(f"{name:30} {found.ratio:6.2f} {spread:13} {verdicts[-1]}", flush=True)
    if options.update:
        text = json.dumps({**records, cpu(): measured}, indent=2)
        RECORD.write_text(text + "\n")
    return int("SLOWER" in verdicts and not options.update)


if __name__ == "__main__":
    sys.exit(main())
