"""Training by one process and by two with three parallel strategies, in a table."""

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


# The script, the number of ranks and the options of each run.
RUNS = {
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


def train(name, epochs, out):
    """Train one of the RUNS, on one thread for each rank, into the folder ``out``."""
    shutil.rmtree(out, ignore_errors=True)
    script, ranks, options = RUNS[name]
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

    folders = {name: args.out / name.replace(" ", "_") for name in RUNS}
    for name, out in folders.items():
        train(name, args.epoch, out)
    one, *others = (out / "model.npz" for out in folders.values())
    differences = [0.0, *(largest_difference(one, other) for other in others)]

    print("\nrun               ranks     time   images/s   test accuracy   difference")
    accuracies = []
    for (name, out), difference in zip(folders.items(), differences):
        last = json.loads((out / "log").read_text())[-1]
        seconds = last["elapsed_time"]
        accuracies.append(last["validation/main/accuracy"])
        row = f"{name:18}{RUNS[name][1]:5}{seconds:7.1f} s"
        row += f"{IMAGES * args.epoch / seconds:11.0f}{accuracies[-1]:16.2%}"
        print(row + f"{difference:13.1e}" * (RUNS[name][1] > 1))
    print("\nThe difference is the largest of any parameter from the one process's.")
    print(f"Plots of loss and accuracy: {args.out}/*/*.png")
    if min(accuracies) < 0.97 or max(differences) > 1e-4:
        sys.exit("demo: expected 97 % and parameters within 1e-4 of each other")


if __name__ == "__main__":
    main()
