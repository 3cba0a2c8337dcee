"""One training run by one process, the same by two, and a table that compares them."""

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


def train(ranks, epochs, out):
    """Train with ``ranks`` processes of one thread each into the folder ``out``."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, COURSE / "train_digits.py"]
    if ranks > 1:
        command[1] = COURSE / "train_digits_data_parallel.py"
        command = [*mpiexec_command(ranks), *command]
    command += ["--batchsize", GLOBAL_BATCH // ranks, "--epoch", epochs, "--out", out]
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

    runs = {ranks: args.out / f"processes_{ranks}" for ranks in (1, 2)}
    for ranks, out in runs.items():
        train(ranks, args.epoch, out)
    difference = largest_difference(*(out / "model.npz" for out in runs.values()))

    print("\nprocesses     time   images/s   test accuracy   difference of parameters")
    accuracies = []
    for ranks, out in runs.items():
        last = json.loads((out / "log").read_text())[-1]
        seconds = last["elapsed_time"]
        accuracies.append(last["validation/main/accuracy"])
        row = f"{ranks:9}{seconds:7.1f} s{IMAGES * args.epoch / seconds:11.0f}"
        print(row + f"{accuracies[-1]:16.2%}" + f"{difference:27.1e}" * (ranks > 1))
    print(f"\nPlots of loss and accuracy: {args.out}/processes_*/*.png")
    if min(accuracies) < 0.97 or difference > 1e-4:
        sys.exit("demo: expected 97 % and parameters within 1e-4 of each other")


if __name__ == "__main__":
    main()
