"""Train the network of the first example by batches eight times as large.

LAMB gives each layer a step of its own length, the learning rate grows in proportion
to the batch in the first epochs, and labels are smoothed.
"""

import argparse
import sys
from pathlib import Path

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.training import extensions

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "01_digits"))
from network import VGG  # noqa: E402

SMALL_BATCH = 48


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batchsize", type=int, default=384, help="of all processes")
    parser.add_argument("--epoch", type=int, default=20)
    parser.add_argument(
        "--alpha", type=float, default=0.00125, help="for a batch of 48"
    )
    parser.add_argument("--warmup", type=float, default=3, help="epochs")
    parser.add_argument("--smoothing", type=float, default=0.1)
    parser.add_argument("--out", default="result", help="folder for the log")
    args = parser.parse_args()

    comm = renga.distributed.create_communicator()
    numpy.random.seed(comm.rank)

    def smoothed(y, t):
        return F.label_smoothing_cross_entropy(y, t, args.smoothing)

    model = L.Classifier(VGG(), lossfun=smoothed)
    optimizer = renga.optimizers.LAMB(args.alpha)
    optimizer = renga.distributed.create_multi_node_optimizer(optimizer, comm)
    optimizer.setup(model)

    train, test = renga.datasets.get_digits(ndim=3, upscale=16)
    train = renga.distributed.scatter_dataset(train, comm, shuffle=True, seed=0)
    test = renga.distributed.scatter_dataset(test, comm)
    own_batch = args.batchsize // comm.size
    train_iter = renga.iterators.SerialIterator(train, own_batch)
    test_iter = renga.iterators.SerialIterator(test, 357, repeat=False, shuffle=False)

    updater = training.updaters.StandardUpdater(train_iter, optimizer)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    factor = args.batchsize / SMALL_BATCH
    scaling = extensions.LinearScaling("alpha", args.alpha, factor, args.warmup)
    trainer.extend(scaling)
    evaluator = extensions.Evaluator(test_iter, model)
    evaluator = renga.distributed.create_multi_node_evaluator(evaluator, comm)
    trainer.extend(evaluator)
    if comm.rank == 0:
        trainer.extend(extensions.LogReport())
        keys = ["epoch", "iteration", "main/loss", "validation/main/accuracy"]
        trainer.extend(extensions.PrintReport(keys))
    trainer.run()


if __name__ == "__main__":
    main()
