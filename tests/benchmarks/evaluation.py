"""Times VGG-16 in evaluation, with its filters' forms kept and made for each batch.

Run as ``python -m tests.benchmarks.evaluation --threads 1``. Prints the median
milliseconds of a batch both ways, in turn. Looking at the weights is what makes
renga forget their forms (docs/decisions.md).
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np

import renga
from renga import _core
from tests.benchmarks.steps.renga_steps import VGG


def milliseconds(model: Any, x: np.ndarray) -> float:
    start = time.perf_counter()
    model(x)
    return (time.perf_counter() - start) * 1e3


def compare(model: Any, x: np.ndarray, rounds: int) -> tuple[float, float]:
    """With forms kept, and with them made."""
    kept, made = [], []
    for _ in range(rounds):
        # They are kept from the second use on.
        for _ in range(2):
            model(x)
        kept.append(milliseconds(model, x))
        for param in model.params():
            assert param.array is not None
        made.append(milliseconds(model, x))
    return statistics.median(kept), statistics.median(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    _core.set_num_threads(options.threads)
    model, rng = VGG(), np.random.default_rng(0)
    print(" batch   kept   made  ratio")
    with renga.using_config("train", False), renga.no_backprop_mode():
        for batch in options.batches:
            x = rng.standard_normal((batch, 3, 32, 32)).astype("f")
            kept, made = compare(model, x, options.rounds)
            print(f"{batch:6}{kept:7.2f}{made:7.2f}{made / kept:7.2f}")


if __name__ == "__main__":
    main()
