"""Train VGG-16 on small images, alone or on the ranks of mpiexec.

renga run -n 2 train_vgg.py --strategy channel
"""

import argparse
import json
import statistics
import time

import numpy
from images import load
from strategies import STRATEGIES
from vgg import VGG16

import renga
import renga.functions as F


def train(
    strategy="alone", steps=20, batch=64, width=64, data="digits", size=32, lr=0.01
):
    """Losses, milliseconds of a step and the accuracy on 256 test images."""
    strategy = STRATEGIES[strategy]()
    numpy.random.seed(0)
    (images, labels), (test_images, test_labels) = load(data, size)
    images, test_images = images.astype("f"), test_images[:256].astype("f")
    # All is drawn here, so that all strategies and all ranks see the same.
    chosen = [numpy.random.choice(len(images), batch, False) for _ in range(steps)]
    model = strategy.model(VGG16(width), images[:batch])
    optimizer = strategy.optimizer(renga.optimizers.MomentumSGD(lr))
    optimizer.setup(model)

    def loss_of(x, t):
        return F.softmax_cross_entropy(model(x), t)

    losses, times = [], []
    for indices in chosen:
        x, t = (strategy.batch(a[indices]) for a in (images, labels))
        begin = time.perf_counter()
        loss = loss_of(x, t)
        model.cleargrads()
        loss.backward()
        losses.append(strategy.mean(float(loss.array)))
        del loss
        optimizer.update()
        times.append(time.perf_counter() - begin)
    with renga.no_backprop_mode(), renga.using_config("train", False):
        y = model(test_images).array
    return {
        "losses": losses,
        "milliseconds": statistics.median(times[1:] or times) * 1e3,
        "accuracy": float((y.argmax(1) == test_labels[:256]).mean()),
        "rank": strategy.rank,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", choices=STRATEGIES, default="alone")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=64, help="channels at first")
    parser.add_argument("--data", choices=["digits", "cifar10"], default="digits")
    parser.add_argument("--size", type=int, default=32, help="of digits, in pixels")
    result = train(**vars(parser.parse_args()))
    if result.pop("rank") == 0:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
