"""Train a small VGG-style network on handwritten digits."""

import argparse

import numpy
from batches import SpreadBatches
from network import VGG

import renga
import renga.links as L
from renga import training
from renga.training import extensions


def load():
    return renga.datasets.get_digits(ndim=3, upscale=16)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batchsize", type=int, default=48, help="of each process")
    parser.add_argument("--epoch", type=int, default=10)
    parser.add_argument("--out", default="result", help="folder for log and plots")
    args = parser.parse_args()

    numpy.random.seed(0)
    model = L.Classifier(VGG())
    optimizer = renga.optimizers.MomentumSGD(lr=0.02)
    optimizer.setup(model)

    train, test = load()
    order = SpreadBatches(args.batchsize)
    train_iter = renga.iterators.SerialIterator(
        train, args.batchsize, order_sampler=order
    )
    test_iter = renga.iterators.SerialIterator(test, 357, repeat=False, shuffle=False)

    updater = training.updaters.StandardUpdater(train_iter, optimizer)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    losses = ["main/loss", "validation/main/loss"]
    accuracies = ["main/accuracy", "validation/main/accuracy"]
    reports = [
        extensions.Evaluator(test_iter, model),
        extensions.LogReport(),
        extensions.PrintReport(["epoch", *losses, *accuracies, "elapsed_time"]),
        extensions.PlotReport(losses, "epoch", filename="loss.png"),
        extensions.PlotReport(accuracies, "epoch", filename="accuracy.png"),
        extensions.ProgressBar(update_interval=10),
        extensions.snapshot_object(model, "model.npz"),
    ]
    for extension in reports:
        trainer.extend(extension)
    trainer.run()


if __name__ == "__main__":
    main()
