"""A child of the runner: makes trials until it is ended, one line about each."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys

from renga import _core

from .check import Trial

GIBIBYTE = 2**30


def address_space() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


def main(seed: int, number: int, step: int, name: str) -> None:
    faulthandler.enable()
    output = os.fdopen(os.dup(1), "w", buffering=1)
    for warm in range(3):  # threads and code of oneDNN, before memory is limited
        Trial(0, warm).check()
    start = address_space()
    limit = start + 3 * GIBIBYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # Ends when little is left, so that a want of memory has its cause in one trial.
    while address_space() < start + GIBIBYTE:
        trial = Trial(seed, number, name)
        findings = [vars(f) | {"key": f.key} for f in trial.check()]
        number += step
        message = {"next": number, "calls": trial.calls, "findings": findings}
        output.write(json.dumps(message) + "\n")
        if trial.spoiled:
            _core.empty_cache("cpu")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4])
