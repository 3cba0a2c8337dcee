"""Times training steps of renga and of PyTorch in turn, and prints the ratios.

Run as ``python -m tests.benchmarks.training --peer PYTHON_WITH_TORCH``. The steps
are in ``tests/benchmarks/steps``. Every round starts a process for each side, one
after the other, so that a machine whose speed drifts is the same for both; a side's
time is the median of its rounds' medians. PyTorch is taken at the better of plain
and channels-last memory. ``--dtype mixed`` is renga's mixed_bfloat16 and PyTorch's
bfloat16 autocast, ``--device @cupy:0`` a GPU for both. ``dcgan-graphs`` and
``vgg-graphs`` are renga's networks as graphs of CUDA, beside PyTorch's as they are;
``STATIC=1`` in the environment has renga record whole steps of classifiers, and
PyTorch compile their networks with graphs of CUDA (``mode="reduce-overhead"``).
"""

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.benchmarks.sides import numbers_of

SIDES = {
    "renga": ("renga_steps", "0"),
    "torch": ("torch_steps", "0"),
    "torch channels-last": ("torch_steps", "1"),
}


def measure(module: str, model: str, steps: int) -> float:
    """The median of ``steps`` steps in milliseconds; runs in a process of its own."""
    side = importlib.import_module(f"tests.benchmarks.steps.{module}")
    name = model.removesuffix("-graphs")
    options = {} if name == model else {"prepare": side.static}
    step = side.STEPS[name](**options)
    for _ in range(4):  # the third is recorded
        step()
    times = []
    for _ in range(steps):
        side.synchronize()
        start = time.perf_counter()
        step()
        side.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def run(side: str, model: str, threads: int, options: argparse.Namespace) -> float:
    """The same in a new process of the side's Python."""
    if side != "renga":
        model = model.removesuffix("-graphs")
    python = sys.executable if side == "renga" else options.peer
    module, channels_last = SIDES[side]
    arguments = "--measure", module, "--models", model, "--steps", options.steps
    (milliseconds,) = numbers_of(
        python,
        "training",
        *arguments,
        OMP_NUM_THREADS=threads,
        CHANNELS_LAST=channels_last,
        DTYPE=options.dtype,
        DEVICE=options.device,
    )
    return milliseconds


class Comparison(NamedTuple):
    """How many times as long PyTorch takes, in its better memory layout."""

    milliseconds: dict[str, float]  # by side
    ratio: float
    lowest: float  # of the rounds
    highest: float


def comparison(
    rounds: dict[str, list[float]],
    typical: Callable[[list[float]], float] = statistics.median,
) -> Comparison:
    """Of the milliseconds of each side's rounds; ``typical`` is one number of them."""
    milliseconds = {side: typical(times) for side, times in rounds.items()}
    others = [side for side in rounds if side != "renga"]
    best = min(others, key=milliseconds.__getitem__)
    ratios = [theirs / ours for theirs, ours in zip(rounds[best], rounds["renga"])]
    ratio = milliseconds[best] / milliseconds["renga"]
    return Comparison(milliseconds, ratio, min(ratios), max(ratios))


def compare(model: str, threads: int, options: argparse.Namespace) -> Comparison:
    """Times one model with all sides in turn."""
    rounds: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(options.rounds):
        for side, times in rounds.items():
            times.append(run(side, model, threads, options))
    return comparison(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=sys.executable, help="a Python with torch")
    parser.add_argument("--models", nargs="+", default=["vgg", "dcgan", "mlp"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--dtype", choices=["float32", "mixed"], default="float32")
    parser.add_argument("--device", default="@numpy")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(measure(options.measure, options.models[0], options.steps))
        return
    columns = "threads  renga ms  torch ms  channels-last ms   ratio  (spread)"
    print(f"       model  {columns}")
    for threads in options.threads:
        for model in options.models:
            found = compare(model, threads, options)
            ms = found.milliseconds
            row = f"{model:>12}{threads:9}{ms['renga']:10.1f}{ms['torch']:10.1f}"
            row += f"{ms['torch channels-last']:16.1f}{found.ratio:8.2f}"
            print(f"{row}  ({found.lowest:.2f}-{found.highest:.2f})", flush=True)


if __name__ == "__main__":
    main()
