"""``python -m tests.fuzz [--minutes M] [--seed S] [--processes P]``, or ``--only N``.

Prints the seed, every kind of fault with a command that repeats it, and how many calls
there were. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import secrets
import sys

from .check import Trial
from .runner import Campaign


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--seed", default="random")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, help="makes this one trial, here")
    parser.add_argument("--name", default="", help="the only function to call")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed == "random" else int(options.seed)
    if options.only is not None:
        return only(seed, options.only, options.name)
    print(f"seed {seed}", flush=True)
    campaign = Campaign(seed, options.processes, options.name)
    campaign.run(options.minutes * 60, options.trials)
    campaign.report()
    return 1 if campaign.faults else 0


def only(seed: int, number: int, name: str) -> int:
    trial = Trial(seed, number, name)
    findings = trial.check()
    print(trial.text())
    for finding in findings:
        print(finding.fault)
    return 1 if findings else 0


sys.exit(main())
