"""Trains digits in every way on ranks of which one is slow, at three bandwidths.

    python compare.py
    python compare.py --ranks 64 --gbits 1 --methods synchronous A-SGD AD-PSGD

The ranks are virtual: they compute real gradients, and the times are those of a model
of the network (renga.communicators.simulated), in which a step of 24 images takes 10 ms
and 40 ms on the last rank. All ways see the same number of images. Prints the seconds,
the images per second and the test accuracy, and draws the loss in training against time
and against images (OUT/curves.png); OUT/curves.json has the numbers.
"""

import argparse
import contextlib
import json
import pathlib

import numpy
from methods import METHODS

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import simulated

BATCH = 24  # images of one step of a rank
SECONDS, SLOWER = 10e-3, 4


def network():
    draw = renga.initializers.HeNormal(rng=numpy.random.RandomState(0))
    layers = (
        *(L.Linear(64, 256, initialW=draw), F.relu),
        *(L.Linear(256, 256, initialW=draw), F.relu),
    )
    return L.Classifier(renga.Sequential(*layers, L.Linear(256, 10, initialW=draw)))


class Budget:
    """Steps for all ranks together: each takes one while there are any."""

    def __init__(self, steps, ranks, waits):
        self.left = steps
        self.each = steps // ranks if waits else None
        self.taken = [0] * ranks

    def take(self, worker):
        over = self.left == 0 if self.each is None else self.taken[worker] == self.each
        self.left -= not over
        self.taken[worker] += not over
        return not over


def train(comm, method, rate, budget, data):
    """One rank; the time, images and loss of each of its steps, and the accuracy."""
    (x, t), (x_test, t_test) = data
    model = network()
    optimizer = method.make(renga.optimizers.MomentumSGD(rate).setup(model), comm)
    if getattr(optimizer, "is_server", False):
        optimizer.serve()
        return None
    worker, workers = comm.rank - method.servers, comm.size - method.servers
    random = numpy.random.RandomState(worker)
    images = numpy.arange(worker, len(x), workers)
    steps = []
    while budget.take(worker):
        batch = random.choice(images, BATCH)
        comm.advance(worker == workers - 1)
        optimizer.update(model, x[batch], t[batch])
        steps.append((comm.clock, float(model.loss.array)))
    if hasattr(optimizer, "join"):
        optimizer.join()
    averaged = getattr(optimizer, "averaged", contextlib.nullcontext)
    with averaged(), renga.using_config("train", False), renga.no_backprop_mode():
        model(x_test, t_test)
    return steps, 100 * float(model.accuracy.array)


def compare(name, gbits, ranks, rate, total):
    """Seconds, accuracy and the curve of one method."""
    method = METHODS[name]
    budget = Budget(total, ranks, method.waits)
    data = [renga.dataset.concat_examples(part) for part in renga.datasets.get_digits()]
    outcome = simulated.run(
        lambda comm: train(comm, method, rate, budget, data),
        ranks + method.servers,
        simulated.Machine(latency=50e-6, bandwidth=gbits * 1e9 / 8),
        seconds_of=lambda rank, is_slow: SECONDS * (SLOWER if is_slow else 1),
    )
    results = [result for result in outcome.results if result is not None]
    # The sort is by time alone: ranks that end a step together are in their order.
    steps = sorted((s for steps, _ in results for s in steps), key=lambda s: s[0])
    times, losses = (numpy.array(column) for column in zip(*steps))
    return {
        "seconds": float(times[-1]),
        "images": len(times) * BATCH,
        "accuracy": results[0][1],
        "times": smooth(times),
        "losses": smooth(losses),
    }


def smooth(numbers, points=50):
    """Means of equal parts."""
    return [float(part.mean()) for part in numpy.array_split(numbers, points)]


def draw(found, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (4.2 * len(found) + 1.5, 7)
    figure, axes = plt.subplots(
        2, len(found), figsize=size, squeeze=False, sharey=True, layout="constrained"
    )
    for column, (gbits, curves) in zip(axes.T, found.items()):
        for i, (name, curve) in enumerate(curves.items()):
            color = f"C{i}"
            images = numpy.linspace(0, curve["images"], len(curve["losses"]))
            for ax, xs in zip(column, (curve["times"], images)):
                ax.plot(xs, curve["losses"], color=color, label=name, linewidth=1.2)
        column[0].set_title(f"{gbits} Gbit/s")
        column[0].set_xlabel("seconds")
        column[1].set_xlabel("images")
        for ax in column:
            ax.set_yscale("log")
            ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set_ylabel("loss in training")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--gbits", nargs="+", type=float, default=[10, 1, 0.1])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--epochs", type=float, default=20)
    parser.add_argument("--rate", type=float, default=0.02, help="learning rate")
    parser.add_argument("--out", default="result", help="folder of the results")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    images = len(renga.datasets.get_digits()[0])
    total = round(args.epochs * images / BATCH / args.ranks) * args.ranks
    found = {}
    head = ("Gbit/s", "method", "seconds", "images/s", "accuracy")
    print("".join(f"{name:>13}" for name in head))
    for gbits in args.gbits:
        found[gbits] = {}
        for name in args.methods:
            row = compare(name, gbits, args.ranks, args.rate, total)
            found[gbits][name] = row
            speed, accuracy = row["images"] / row["seconds"], row["accuracy"]
            numbers = f"{row['seconds']:13.2f}{speed:13.0f}{accuracy:13.1f}"
            print(f"{gbits:13g}{name:>13}{numbers}", flush=True)
    (out / "curves.json").write_text(json.dumps(found))
    draw(found, out / "curves.png")


if __name__ == "__main__":
    main()
