"""Train DCGAN, a generator of images against a discriminator (arXiv 1511.06434).

    python train_dcgan.py

One updater has both optimizers. Both networks are told which digit is to be seen.
Without a network the images are scikit-learn's digits of 8 × 8 pixels: after 90 epochs,
in about a minute, each column of ``result/made.png`` is one digit.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy
from data import load

import renga
import renga.functions as F
from renga import training
from renga.training import extensions

sys.path.append(str(Path(__file__).resolve().parents[1] / "02_parallel"))
from dcgan import Discriminator, Generator, with_classes  # noqa: E402

HIDDEN = 20


def noise(count):
    return numpy.random.normal(size=(count, HIDDEN)).astype("f")


class DCGANUpdater(training.updaters.StandardUpdater):
    """Trains the discriminator and the generator on the same batch."""

    def update_core(self):
        optimizers = self.get_all_optimizers()
        gen, dis = optimizers["gen"].target, optimizers["dis"].target
        x, t = self.converter(self.get_iterator("main").next(), self.device)
        made = gen(with_classes(gen.device.send(noise(len(x))), t))
        real, fake = (dis(with_classes(each, t)) for each in (x, made))

        loss_gen = F.mean(F.softplus(-fake))
        gen.cleargrads()
        loss_gen.backward()
        optimizers["gen"].update()

        made.unchain_backward()  # the generator is not to help the discriminator
        loss_dis = F.mean(F.softplus(-real)) + F.mean(F.softplus(fake))
        dis.cleargrads()
        loss_dis.backward()
        optimizers["dis"].update()
        renga.report({"loss": loss_gen}, gen)
        renga.report({"loss": loss_dis}, dis)


def make_optimizer(model, alpha):
    optimizer = renga.optimizers.Adam(alpha, beta1=0.5)
    optimizer.setup(model)
    return optimizer


def drawing(gen, columns=10):
    """An extension that draws what the generator makes of the same noise each time."""
    z = with_classes(noise(columns**2), numpy.arange(columns**2) % 10).array

    @training.make_extension(trigger=(1, "epoch"))
    def draw(trainer):
        import matplotlib.image

        with renga.using_config("train", False), renga.no_backprop_mode():
            made = renga.cuda.to_cpu(gen(gen.device.send(z)).array)
        rows = [numpy.concatenate(list(row), 2) for row in numpy.split(made, columns)]
        # Shape: rows, columns, colours
        picture = numpy.concatenate(rows, 1).transpose(1, 2, 0)
        picture = numpy.broadcast_to(picture, (*picture.shape[:2], 3))
        path = os.path.join(trainer.out, "made.png")
        matplotlib.image.imsave(path, (picture + 1) / 2)

    return draw


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=64)
    parser.add_argument("--epoch", type=int, default=90)
    parser.add_argument("--width", type=int, default=16, help="channels at last")
    parser.add_argument("--alpha", type=float, default=1e-3, help="of Adam")
    parser.add_argument("--size", type=int, help="images to train with")
    parser.add_argument("--device", default="@numpy", help="or @cupy:0, a GPU")
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, _, _ = load("mnist", ndim=3, size=args.size)
    images = renga.datasets.TransformDataset(train, lambda e: (2 * e[0] - 1, e[1]))
    device = renga.get_device(args.device)
    colours, size, _ = images[0][0].shape
    gen = Generator(args.width, HIDDEN + 10, size, colours, 2).to_device(device)
    dis = Discriminator(args.width, size, colours + 10, 2).to_device(device)
    models = {"gen": gen, "dis": dis}
    updater = DCGANUpdater(
        renga.iterators.SerialIterator(images, args.batchsize),
        {name: make_optimizer(m, args.alpha) for name, m in models.items()},
        device=device,
    )

    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    steps = args.epoch * len(images) // args.batchsize
    for name, optimizer in updater.get_all_optimizers().items():
        shift = extensions.LinearShift(
            "alpha", (args.alpha, 0), (steps // 2, steps), optimizer
        )
        trainer.extend(shift, name=f"shift_{name}", trigger=(1, "iteration"))
    trainer.extend(extensions.LogReport())
    trainer.extend(
        extensions.PrintReport(["epoch", "gen/loss", "dis/loss", "elapsed_time"])
    )
    trainer.extend(drawing(gen))
    trainer.extend(extensions.snapshot_object(gen, "generator.npz"))
    trainer.run()


if __name__ == "__main__":
    main()
