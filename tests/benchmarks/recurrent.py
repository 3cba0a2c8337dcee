"""Times training steps of recurrent networks: renga, PyTorch and Chainer in turn.

Run as ``python -m tests.benchmarks.recurrent --torch PYTHON --chainer PYTHON`` with the
interpreters that have them; either may be left out. Every round starts a process for
each side, one after the other; a side's time is the least of its rounds' medians, in
milliseconds, and a ratio above 1 means that renga is faster.
"""

import argparse
import statistics
import sys
import time

from tests.benchmarks.sides import numbers_of
from tests.benchmarks.steps.recurrent_steps import SIDES, SIZES

KINDS = ("lstm", "gru", "rnn", "cell")


def measure(side, kind, size, seconds):
    """The median time of a step, for ``seconds``; runs in a process of its own."""
    step = SIDES[side](kind, size)
    for _ in range(3):
        step()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def run(side, kind, size, threads, options):
    python = sys.executable if side == "renga" else getattr(options, side)
    arguments = "--measure", side, kind, size, "--seconds", options.seconds
    (found,) = numbers_of(python, "recurrent", *arguments, OMP_NUM_THREADS=threads)
    return found


def compare(kind, size, threads, options):
    """Prints one row of the table."""
    sides = ["renga", *(s for s in ("torch", "chainer") if getattr(options, s))]
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(options.rounds):
        for side in sides:
            best[side] = min(best[side], run(side, kind, size, threads, options))
    row = f"{kind:5} {size:6} {threads} threads  renga {best['renga']:8.2f}"
    for side in sides[1:]:
        ratio = best[side] / best["renga"]
        row += f"  {side} {best[side]:8.2f} ({ratio:.2f})"
    print(row, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", help="a Python with PyTorch")
    parser.add_argument("--chainer", help="a Python with Chainer")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(measure(*options.measure, options.seconds))
        return
    for threads in options.threads:
        for kind in options.kinds:
            for size in options.sizes:
                compare(kind, size, threads, options)


if __name__ == "__main__":
    main()
