"""Measures how much memory training steps of renga and of PyTorch need.

Run as ``python -m tests.benchmarks.memory --peer PYTHON_WITH_TORCH``. The steps
are in ``tests/benchmarks/steps``. Every figure is the greatest resident set of a
process of its own after three steps on one thread, less what it was when the
package had been imported, in MiB.
"""

import argparse
import importlib
import resource
import sys

from tests.benchmarks.sides import numbers_of
from tests.benchmarks.training import SIDES


def most_resident() -> float:
    """The greatest resident set of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(module: str, model: str) -> tuple[float, float]:
    """What the import takes, and building a model and three steps on top of that."""
    steps = importlib.import_module(f"tests.benchmarks.steps.{module}").STEPS
    imported = most_resident()
    step = steps[model]()
    for _ in range(3):
        step()
    return imported, most_resident() - imported


def run(side: str, model: str, options: argparse.Namespace) -> tuple[float, ...]:
    """The same in a new process of the side's Python."""
    python = sys.executable if side == "renga" else options.peer
    module, channels_last = SIDES[side]
    environment = {"CHANNELS_LAST": channels_last, "DTYPE": options.dtype}
    arguments = "--measure", module, "--models", model
    found = numbers_of(python, "memory", *arguments, OMP_NUM_THREADS=1, **environment)
    return tuple(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=sys.executable, help="a Python with torch")
    parser.add_argument("--models", nargs="+", default=["vgg", "dcgan", "mlp"])
    parser.add_argument("--dtype", choices=["float32", "mixed"], default="float32")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(*measure(options.measure, options.models[0]))
        return
    print(f"{'MiB':>26}{'import':>8}{'steps':>8}")
    for model in options.models:
        for side in SIDES:
            imported, steps = run(side, model, options)
            print(f"{model:>6}{side:>20}{imported:8.0f}{steps:8.0f}", flush=True)


if __name__ == "__main__":
    main()
