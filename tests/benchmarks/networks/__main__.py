"""Times 48 networks with renga and with PyTorch in turn, and prints the ratios.

Run as ``python -m tests.benchmarks.networks --peer PYTHON_WITH_TORCH``, with names for
some of the networks only. Each network is written once, over the layers and functions
of a library (``library.py``), and each library has a file of them. Every round starts
a process for each side, one after the other; a side's time is the least of its rounds'
medians. PyTorch is taken at the best of plain and channels-last memory and, with
``--compiled``, of a compiled network. ``--dtype mixed`` is renga's mixed_bfloat16 and
PyTorch's bfloat16 autocast, ``--evaluate`` times outputs in place of training steps.
A side that fails has an infinite time, and its traceback is printed.
"""

import argparse
import importlib
import statistics
import subprocess
import sys
import time

from tests.benchmarks.networks import (  # noqa: F401
    generative,
    graphs_and_tables,
    images,
    sequences,
)
from tests.benchmarks.networks.library import NETWORKS
from tests.benchmarks.sides import numbers_of
from tests.benchmarks.training import Comparison, comparison

# The module of each side, and its options.
SIDES = {
    "renga": ("renga_side", {}),
    "torch": ("torch_side", {}),
    "channels-last": ("torch_side", {"channels_last": True}),
    "compiled": ("torch_side", {"compiled": True}),
}


def function_of(side, name, dtype="float32", evaluate=False, **sizes):
    """A function that takes a training step, or evaluates, and returns a number."""
    module, options = SIDES[side]
    module = importlib.import_module(f"tests.benchmarks.networks.{module}")
    library = module.Side(mixed=dtype == "mixed", **options)
    task = library.build(NETWORKS[name], **sizes)
    return (library.evaluation if evaluate else library.training)(task)


def measure(side, name, options):
    """The median milliseconds of a call, and the first call's number."""
    call = function_of(side, name, options.dtype, options.evaluate)
    first, *_ = (call() for _ in range(4))
    times = []
    for _ in range(options.steps):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3, first


def run(side, name, options):
    """The milliseconds in a new process of the side's Python."""
    python = sys.executable if side == "renga" else options.peer
    arguments = ["--measure", side, name, "--dtype", options.dtype]
    arguments += ["--evaluate"] if options.evaluate else []
    arguments += ["--steps", options.steps]
    try:
        milliseconds, _ = numbers_of(
            python, "networks", *arguments, OMP_NUM_THREADS=options.threads
        )
    except subprocess.CalledProcessError:
        return float("inf")
    return milliseconds


def compare(name, sides, options):
    """Times one network with these sides in turn."""
    rounds = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side, times in rounds.items():
            times.append(run(side, name, options))
    return comparison(rounds, min)


def header(sides):
    """The first line of the table."""
    cells = "".join(f"{side + ' ms':>17}" for side in sides)
    return f"{'network':>16}{cells}   ratio  (spread)"


def row(name: str, found: Comparison) -> str:
    """The line of a network."""
    cells = "".join(f"{ms:17.2f}" for ms in found.milliseconds.values())
    spread = f"({found.lowest:.2f}-{found.highest:.2f})"
    return f"{name:>16}{cells}{found.ratio:8.2f}  {spread}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--peer", default=sys.executable, help="a Python with torch")
    parser.add_argument("--compiled", action="store_true", help="PyTorch, too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "mixed"], default="float32")
    parser.add_argument("--evaluate", action="store_true", help="and do not train")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(*measure(*options.measure, options))
        return
    unknown = sorted({*options.names} - {*NETWORKS})
    if unknown:
        parser.error(f"expected names of {', '.join(NETWORKS)}, got {unknown}")
    sides = [side for side in SIDES if side != "compiled" or options.compiled]
    print(header(sides))
    for name in options.names or NETWORKS:
        print(row(name, compare(name, sides, options)), flush=True)


if __name__ == "__main__":
    main()
