"""Times VGG-16 in evaluation, with packed weights cached and packed for each batch.

Run as ``python -m tests.benchmarks.evaluation --threads 1``. Prints the median
milliseconds of a batch both ways, in turn. Reading a parameter's array invalidates
the cache (docs/decisions.md, 4).
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
    """Medians with cached weights, and with weights packed for the batch."""
    cached, packed = [], []
    for _ in range(rounds):
        # Weights are cached from the second use on.
        for _ in range(2):
            model(x)
        cached.append(milliseconds(model, x))
        for param in model.params():
            assert param.array is not None
        packed.append(milliseconds(model, x))
    return statistics.median(cached), statistics.median(packed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    _core.set_num_threads(options.threads)
    model, rng = VGG(), np.random.default_rng(0)
    print(" batch cached packed  ratio")
    with renga.using_config("train", False), renga.no_backprop_mode():
        for batch in options.batches:
            x = rng.standard_normal((batch, 3, 32, 32)).astype("f")
            cached, packed = compare(model, x, options.rounds)
            print(f"{batch:6}{cached:7.2f}{packed:7.2f}{packed / cached:7.2f}")


if __name__ == "__main__":
    main()
