"""Measures all rows, and records their shares of the machine's speed.

    python -m tests.benchmarks.functions.record [--only TEXT] [--record]

The table has, for a forward pass and for one with the gradients of all inputs: GB/s (or
GFLOP/s of products) and the share, which is the time of a copy of as many bytes (or of
a product of as many FLOPs) divided by that of the function. ``--record`` writes the
shares, of at most 1, to shares.json with the processor; the machine has to be idle.
"""

from __future__ import annotations

import argparse
import json
import pathlib

from renga._runtime import runtime_info
from tests.catalogue import CATALOGUE
from tests.catalogue.speed import Row

from .measure import Share, Trial

ROWS = [row for function in CATALOGUE.values() for row in function.speed]
FILE = pathlib.Path(__file__).with_name("shares.json")
_ROUNDS = 15


def measured(row: Row) -> dict[str, Share]:
    """By mode, the row's share; ``backward`` is both passes."""
    forward = Trial(row, backward=False)
    found = {"forward": forward.share(_ROUNDS)}
    if forward.is_differentiable:
        found["backward"] = Trial(row, backward=True).share(_ROUNDS)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    recorded = json.loads(FILE.read_text())["shares"] if FILE.exists() else {}
    shares = {}
    print("| function | ms | GB/s or GFLOP/s | share | with gradients: ms | | share |")
    print("|---|---|---|---|---|---|---|")
    for row in ROWS:
        if options.only not in row.name:
            if row.name in recorded:
                shares[row.name] = recorded[row.name]
            continue
        found = measured(row)
        shares[row.name] = {
            mode: round(min(x.share, 1.0), 4) for mode, x in found.items()
        }
        cells = [
            f"{1e3 * x.seconds:.3g} | {1e-9 * x.work / x.seconds:.3g} | {x.share:.2g}"
            for x in found.values()
        ]
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)
    if options.record:
        record = {"processor": runtime_info.cpu(), "shares": shares}
        FILE.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
