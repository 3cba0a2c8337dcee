"""Trains digits on two nodes with each kind of compression; draws the accuracies.

    python docs/examples/compression.py docs/images/compression.svg

The nodes are threads of this process. Prints the test accuracy after the last epoch,
its difference from training without compression, and the kilobytes that a node sends
in a step, as means over seeds.
"""

from __future__ import annotations

import argparse

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import compression, create_multi_node_optimizer

BATCH = 24  # of each rank
WAYS = {
    "none": None,
    "Cast": compression.Cast("bfloat16"),
    "QSGD(4)": compression.QSGD(bits=4),
    "TernGrad": compression.TernGrad(),
    "OneBit": compression.OneBit(),
    "TopK(.01)": compression.TopK(0.01),
    "RandomK(.25)": compression.RandomK(0.25),
    "DGC(.001)": compression.DGC(0.001, warmup_steps=30),
    "PowerSGD(4)": compression.PowerSGD(rank=4),
}

# Colours and dashes of the curves, which also those tell apart who see fewer colours.
STYLES = (
    *(("black", "-"), ("#4477aa", "--"), ("#66ccee", "-."), ("#228833", ":")),
    *(("#aa3377", "-"), ("#ee6677", "-"), ("#ccbb44", "-"), ("#777777", "-")),
    ("#228833", (0, (5, 1, 1, 1, 1, 1))),
)


def train(comm, name, seed, epochs):
    """The test accuracy after each epoch, and the bytes that were sent in a step."""
    draw = renga.initializers.HeNormal(rng=numpy.random.RandomState(seed))
    model = L.Classifier(
        renga.Sequential(
            *(L.Linear(64, 256, initialW=draw), F.relu),
            *(L.Linear(256, 256, initialW=draw), F.relu),
            L.Linear(256, 10, initialW=draw),
        )
    )
    if name.startswith("DGC"):  # which has a momentum of its own
        optimizer = renga.optimizers.SGD(0.02).setup(model)
    else:
        optimizer = renga.optimizers.MomentumSGD(0.02).setup(model)
    optimizer = create_multi_node_optimizer(optimizer, comm, compression=WAYS[name])
    (x, t), (x_test, t_test) = (
        renga.dataset.concat_examples(part) for part in renga.datasets.get_digits()
    )
    random = numpy.random.RandomState(seed)
    accuracies, steps = [], 0
    for _ in range(epochs):
        order = random.permutation(len(x)).reshape(-1, comm.size, BATCH)
        for batch in order[:, comm.rank]:
            optimizer.update(model, x[batch], t[batch])
            steps += 1
        with renga.using_config("train", False), renga.no_backprop_mode():
            model(x_test, t_test)
        accuracies.append(100 * float(model.accuracy.array))
    return accuracies, comm.traffic.bytes / steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("picture")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    curves, reference = {}, None
    for name in WAYS:
        runs = [
            local.run(train, name, seed, arguments.epochs, ranks=2, nodes=2)[0]
            for seed in range(arguments.seeds)
        ]
        curves[name] = numpy.mean([accuracies for accuracies, _ in runs], 0)
        reference = curves[name][-1] if reference is None else reference
        sent = numpy.mean([count for _, count in runs]) / 1000
        last = curves[name][-1]
        row = f"{name:>12}{last:9.2f}{last - reference:+9.2f}{sent:9.1f}"
        print(row, flush=True)
    draw(curves, arguments.picture)


def draw(curves, path):
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "renga"
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for (name, curve), (color, style) in zip(curves.items(), STYLES):
        epochs = range(1, len(curve) + 1)
        axes.plot(epochs, curve, color=color, linestyle=style, label=name)
    axes.set_xlabel("epoch")
    axes.set_ylabel("test accuracy, %")
    axes.set_ylim(80, 100)
    axes.grid(alpha=0.3)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
