"""Train DCGAN on square images, alone or on the ranks of mpiexec.

renga run -n 2 train_dcgan.py --strategy spatial
"""

import argparse
import json
import statistics
import time

import numpy
from dcgan import Discriminator, Generator
from images import load
from strategies import STRATEGIES

import renga
import renga.functions as F


def adam(strategy, model):
    optimizer = strategy.optimizer(renga.optimizers.Adam(2e-4, 0.5))
    optimizer.setup(model)
    return optimizer


def update(optimizer, model, loss):
    model.cleargrads()
    loss.backward()
    optimizer.update()
    return float(loss.array)


def train(
    strategy="alone", steps=20, batch=64, width=64, size=32, data="digits", hidden=100
):
    """Losses, milliseconds of a step and 16 images that were made up."""
    strategy = STRATEGIES[strategy]()
    numpy.random.seed(0)
    images = load(data, size)[0][0].astype("f")
    # All is drawn here, so that all strategies and all ranks see the same.
    chosen = [numpy.random.choice(len(images), batch, False) for _ in range(steps)]
    noise = numpy.random.uniform(-1, 1, (steps, batch, hidden)).astype("f")
    gen = strategy.model(Generator(width, hidden, size), noise[0])
    dis = strategy.model(Discriminator(width, size), images[:batch])
    optimizers = adam(strategy, gen), adam(strategy, dis)

    losses, times = [], []
    for indices, z in zip(chosen, noise):
        x, z = strategy.batch(images[indices]), strategy.batch(z)
        begin = time.perf_counter()
        real, made = dis(x), gen(z)
        fake = dis(made)
        count = len(z)
        loss_gen = F.sum(F.softplus(-fake)) / count
        loss_dis = F.sum(F.softplus(-real) + F.softplus(fake)) / count
        gen_loss = update(optimizers[0], gen, loss_gen)
        made.unchain_backward()
        dis_loss = update(optimizers[1], dis, loss_dis)
        losses.append((strategy.mean(gen_loss), strategy.mean(dis_loss)))
        del real, made, fake, loss_gen, loss_dis
        times.append(time.perf_counter() - begin)
    with renga.no_backprop_mode(), renga.using_config("train", False):
        y = gen(noise[0][:16])
    return {
        "losses": losses,
        "milliseconds": statistics.median(times[1:] or times) * 1e3,
        "images": y.array.tolist(),
        "rank": strategy.rank,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", choices=STRATEGIES, default="alone")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=64, help="channels at last")
    parser.add_argument("--size", type=int, default=32, help="pixels, a multiple of 8")
    parser.add_argument("--data", choices=["digits", "cifar10"], default="digits")
    result = train(**vars(parser.parse_args()))
    if result.pop("rank") == 0:
        del result["images"]
        print(json.dumps(result))


if __name__ == "__main__":
    main()
