"""Train a vision transformer or a residual network on handwritten digits.

    python train_images.py
    python train_images.py --model resnet

The images, 8 × 8 in the data set, are enlarged to 32 × 32.
"""

import argparse

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.links.model.vision.residual_network import BasicBlock
from renga.training import extensions


class Residual(renga.Chain):
    """A residual network for small images of one channel.

    Shapes: (N, 1, 32, 32) -> (N, 10)
    """

    def __init__(self):
        super().__init__()
        block = BasicBlock
        with self.init_scope():
            self.conv = L.Convolution2D(1, 16, 3, 2, 1, nobias=True)
            self.bn = L.BatchNormalization(16)
            self.blocks = renga.Sequential(
                block(16, 16, 1), block(16, 32, 2), block(32, 64, 2)
            )
            self.fc = L.Linear(64, 10)

    def forward(self, x):
        h = self.blocks(F.relu(self.bn(self.conv(x))))
        return self.fc(F.average(h, axis=(2, 3)))


def transformer():
    """Patches of 4 × 4 pixels. Shapes: (N, 1, 32, 32) -> (N, 10)"""
    return L.VisionTransformer(32, 4, 4, 4, 64, 128, 10, dropout=0.1, in_channels=1)


MODELS = {"vit": transformer, "resnet": Residual}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="vit")
    parser.add_argument("--batchsize", type=int, default=48)
    parser.add_argument("--epoch", type=int, default=10)
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()

    numpy.random.seed(0)
    model = L.Classifier(
        MODELS[args.model](), lambda y, t: F.label_smoothing_cross_entropy(y, t, 0.1)
    )
    optimizer = renga.optimizers.AdamW(2e-3, weight_decay_rate=1e-4)
    optimizer.setup(model)

    train, test = renga.datasets.get_digits(ndim=3, upscale=32)
    train_iter = renga.iterators.SerialIterator(train, args.batchsize)
    test_iter = renga.iterators.SerialIterator(test, 357, repeat=False, shuffle=False)
    updater = training.updaters.StandardUpdater(train_iter, optimizer)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    steps = args.epoch * len(train) // args.batchsize
    trainer.extend(extensions.OneCycleShift("alpha", steps), trigger=(1, "iteration"))
    trainer.extend(extensions.Evaluator(test_iter, model))
    trainer.extend(extensions.LogReport())
    columns = ["epoch", "main/loss", "main/accuracy", "validation/main/accuracy"]
    trainer.extend(extensions.PrintReport([*columns, "elapsed_time"]))
    trainer.run()


if __name__ == "__main__":
    main()
