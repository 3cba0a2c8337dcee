"""One training run by one process, the same by two in three ways, and a table."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy

from renga.launch import mpiexec_command, mpiexec_environment

COURSE = Path(__file__).resolve().parent / "01_digits"
GLOBAL_BATCH = 48
IMAGES = 1440


# Each way with its script, its ranks and its options.
WAYS = {
    "one process": ("train_digits.py", 1, ["--batchsize", GLOBAL_BATCH]),
    "data-parallel": (
        "train_digits_data_parallel.py",
        2,
        ["--batchsize", GLOBAL_BATCH // 2],
    ),
    "channel-parallel": (
        "train_digits_model_parallel.py",
        2,
        ["--strategy", "channel", "--batchsize", GLOBAL_BATCH],
    ),
    "spatial": (
        "train_digits_model_parallel.py",
        2,
        ["--strategy", "spatial", "--batchsize", GLOBAL_BATCH],
    ),
}


def train(way, epochs, out):
    """Train in one of the WAYS, on one thread each, into the folder ``out``."""
    shutil.rmtree(out, ignore_errors=True)
    script, ranks, options = WAYS[way]
    command = [sys.executable, COURSE / script, *options]
    if ranks > 1:
        command = [*mpiexec_command(ranks), *command]
    command += ["--epoch", epochs, "--out", out]
    command = [str(word) for word in command]
    print("\n$", " ".join(command), flush=True)
    env = mpiexec_environment(ranks) | {"OMP_NUM_THREADS": "1"}
    if not sys.stdout.isatty():
        env["TERM"] = "dumb"  # mpiexec gives rank 0 a terminal even so
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, check=True)


def largest_difference(one, other):
    """The largest absolute difference between the parameters in two files."""
    with numpy.load(one) as a, numpy.load(other) as b:
        if set(a) != set(b):
            raise ValueError(f"{one} and {other} hold different parameters")
        return max(float(abs(a[name] - b[name]).max()) for name in a)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epoch", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("result"))
    args = parser.parse_args()

    runs = {way: args.out / way.replace(" ", "_") for way in WAYS}
    for way, out in runs.items():
        train(way, args.epoch, out)
    one, *others = (out / "model.npz" for out in runs.values())
    differences = [0.0, *(largest_difference(one, other) for other in others)]

    print("\nway               ranks     time   images/s   test accuracy   difference")
    accuracies = []
    for (way, out), difference in zip(runs.items(), differences):
        last = json.loads((out / "log").read_text())[-1]
        seconds = last["elapsed_time"]
        accuracies.append(last["validation/main/accuracy"])
        row = f"{way:18}{WAYS[way][1]:5}{seconds:7.1f} s"
        row += f"{IMAGES * args.epoch / seconds:11.0f}{accuracies[-1]:16.2%}"
        print(row + f"{difference:13.1e}" * (WAYS[way][1] > 1))
    print("\nThe difference is the largest of any parameter from the one process's.")
    print(f"Plots of loss and accuracy: {args.out}/*/*.png")
    if min(accuracies) < 0.97 or max(differences) > 1e-4:
        sys.exit("demo: expected 97 % and parameters within 1e-4 of each other")


if __name__ == "__main__":
    main()
