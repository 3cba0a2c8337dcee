"""Train a small VGG-style network whose layers are sharded over the ranks."""

import argparse
import os

import numpy
from batches import SpreadBatches
from network import VGG
from train_digits import load

import renga
import renga.links as L
from renga import training
from renga.training import extensions


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategy", choices=["channel", "spatial"], required=True)
    parser.add_argument("--batchsize", type=int, default=48, help="of all ranks")
    parser.add_argument("--epoch", type=int, default=10)
    parser.add_argument("--out", default="result", help="folder for log and plots")
    args = parser.parse_args()

    comm = renga.distributed.create_communicator()
    numpy.random.seed(0)
    train, test = load()
    images = numpy.stack([x for x, _ in train[: args.batchsize]])
    network = renga.distributed.parallelize(VGG(), comm, args.strategy, images)
    model = L.Classifier(network)
    optimizer = renga.optimizers.MomentumSGD(lr=0.02)
    optimizer.setup(model)

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
        extensions.LogReport(),
        extensions.PrintReport(["epoch", *losses, *accuracies, "elapsed_time"]),
        extensions.PlotReport(losses, "epoch", filename="loss.png"),
        extensions.PlotReport(accuracies, "epoch", filename="accuracy.png"),
        extensions.ProgressBar(update_interval=10),
    ]
    # All ranks together do what the model computes and saves.
    trainer.extend(extensions.Evaluator(test_iter, model))
    for extension in reports if comm.rank == 0 else []:
        trainer.extend(extension)
    trainer.run()
    path = os.path.join(args.out, "model.npz")
    renga.serializers.save_npz(path if comm.rank == 0 else os.devnull, model)


if __name__ == "__main__":
    main()
