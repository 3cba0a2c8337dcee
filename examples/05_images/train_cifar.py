"""Train VGG-16 on images of 32 × 32 pixels that are shifted and mirrored by chance.

    python train_cifar.py

Without a network it takes scikit-learn's digits, enlarged and in three equal colours
(and not mirrored, as digits have a right and a left): 99.7 % of those to test with
are recognized after 6 epochs, in about six seconds. For CIFAR-10 itself, take the
paper's ``--width 64`` and a hundred epochs or more.
"""

import argparse
import sys
from pathlib import Path

import numpy
from data import load

import renga
import renga.links as L
from renga import training
from renga.training import extensions

sys.path.append(str(Path(__file__).resolve().parents[1] / "02_parallel"))
from vgg import VGG16  # noqa: E402


class Augment:
    """Shifts an image by up to ``reach`` pixels; mirrors it with probability 1/2."""

    def __init__(self, mirrored, reach=2):
        self.mirrored, self.reach = mirrored, reach

    def __call__(self, example):
        x, t = example
        reach, (height, width) = self.reach, x.shape[1:]
        padded = numpy.pad(x, [(0, 0), (reach, reach), (reach, reach)])
        top, left = numpy.random.randint(0, 2 * reach + 1, 2)
        x = padded[:, top : top + height, left : left + width]
        if self.mirrored and numpy.random.rand() < 0.5:
            x = x[:, :, ::-1]
        return x, t


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=48)
    parser.add_argument("--epoch", type=int, default=6)
    parser.add_argument("--width", type=int, default=16, help="channels at first")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--size", type=int, help="images to train with")
    parser.add_argument("--device", default="@numpy", help="or @cupy:0, a GPU")
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, test, source = load("cifar10", ndim=3, size=args.size)
    augmented = renga.datasets.TransformDataset(train, Augment(source == "cifar10"))
    train_iter = renga.iterators.SerialIterator(augmented, args.batchsize)
    test_iter = renga.iterators.SerialIterator(
        test, args.batchsize, repeat=False, shuffle=False
    )

    device = renga.get_device(args.device)
    model = L.Classifier(VGG16(width=args.width)).to_device(device)
    optimizer = renga.optimizers.MomentumSGD(args.lr)
    optimizer.setup(model)
    optimizer.add_hook(renga.optimizer_hooks.WeightDecay(5e-4))

    updater = training.updaters.StandardUpdater(train_iter, optimizer, device=device)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    trainer.extend(extensions.Evaluator(test_iter, model, device=device))
    # Half the learning rate after each third of the epochs.
    trainer.extend(
        extensions.ExponentialShift("lr", 0.5),
        trigger=(max(args.epoch // 3, 1), "epoch"),
    )
    trainer.extend(extensions.observe_lr())
    trainer.extend(extensions.LogReport())
    columns = ["epoch", "lr", "main/loss", "main/accuracy", "validation/main/accuracy"]
    trainer.extend(extensions.PrintReport([*columns, "elapsed_time"]))
    trainer.extend(extensions.snapshot_object(model, "model.npz"))
    trainer.run()


if __name__ == "__main__":
    main()
