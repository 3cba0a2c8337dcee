"""Train DCGAN on square images, alone or on the ranks of mpiexec.

renga run -n 2 train_dcgan.py --strategy spatial

The generator is told which digit to make, and the discriminator which it is to see
(Mirza and Osindero, arXiv 1411.1784). The digits of scikit-learn have 8 × 8 pixels, and
a step takes milliseconds. ``python recognize.py result/dcgan.npz`` draws what was made
up and tells how much of it a classifier recognizes.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy
from dcgan import Discriminator, Generator, with_classes
from images import load
from strategies import STRATEGIES

import renga
import renga.functions as F


def adam(strategy, model, alpha):
    optimizer = strategy.optimizer(renga.optimizers.Adam(alpha, 0.5))
    optimizer.setup(model)
    return optimizer


def update(optimizer, model, loss):
    model.cleargrads()
    loss.backward()
    optimizer.update()
    return float(loss.array)


def make_images(gen, z):
    with renga.no_backprop_mode(), renga.using_config("train", False):
        return gen(z).array


def train(
    strategy="alone",
    steps=20,
    batch=64,
    width=16,
    size=8,
    data="digits",
    hidden=20,
    alpha=1e-3,
    seed=0,
):
    """Losses, milliseconds of a step, and 64 images that were made up at five times.

    The learning rate falls to 0 in the second half, so that the images come to rest.
    """
    strategy = STRATEGIES[strategy]()
    numpy.random.seed(seed)
    # All ranks draw the same images and the same noise with every strategy.
    random = numpy.random.RandomState(seed)

    def noise(count):
        return random.normal(size=(count, hidden)).astype("f")

    images, labels = load(data, size, rgb=False)[0]
    images = images.astype("f")
    shown = with_classes(noise(64), numpy.arange(64) % 10)
    seen = with_classes(images[:64], labels[:64])
    colours, doublings = images.shape[1], 2 if size < 32 else 3
    gen = Generator(width, hidden + 10, size, colours, doublings)
    dis = Discriminator(width, size, colours + 10, doublings)
    gen, dis = strategy.model(gen, shown.array), strategy.model(dis, seen.array)
    optimizers = adam(strategy, gen, alpha), adam(strategy, dis, alpha)

    losses, times, made_up = [], [], {}
    for step in range(1, steps + 1):
        indices = random.choice(len(images), batch, False)
        chosen = images[indices], labels[indices], noise(batch)
        x, t, z = (strategy.batch(each) for each in chosen)
        begin = time.perf_counter()
        made = gen(with_classes(z, t))
        real, fake = (dis(with_classes(each, t)) for each in (x, made))
        loss_gen = F.mean(F.softplus(-fake))
        loss_dis = F.mean(F.softplus(-real)) + F.mean(F.softplus(fake))
        gen_loss = update(optimizers[0], gen, loss_gen)
        made.unchain_backward()
        dis_loss = update(optimizers[1], dis, loss_dis)
        losses.append((strategy.mean(gen_loss), strategy.mean(dis_loss)))
        del real, made, fake, loss_gen, loss_dis
        times.append(time.perf_counter() - begin)
        for optimizer in optimizers:
            optimizer.alpha = alpha * min(1, 2 - 2 * step / steps)
        if step in (steps // 50, steps // 10, steps // 4, steps // 2, steps):
            made_up[step] = make_images(gen, shown)
    return {
        "losses": losses,
        "milliseconds": statistics.median(times[1:] or times) * 1e3,
        "images": made_up,
        "rank": strategy.rank,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", choices=STRATEGIES, default="alone")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=16, help="channels at last")
    parser.add_argument("--size", type=int, default=8, help="pixels, a multiple of 8")
    parser.add_argument("--data", choices=["digits", "cifar10"], default="digits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = vars(parser.parse_args())
    out = Path(args.pop("out"))
    result = train(**args)
    if result.pop("rank") != 0:
        return
    out.mkdir(parents=True, exist_ok=True)
    images = {f"images_{step}": made for step, made in result["images"].items()}
    numpy.savez(out / "dcgan.npz", losses=result["losses"], **images)
    for step in range(0, args["steps"], max(1, args["steps"] // 20)):
        gen, dis = result["losses"][step]
        print(f"step {step + 1:5}: generator {gen:.3f}, discriminator {dis:.3f}")
    print(f"{result['milliseconds']:.1f} ms a step; wrote {out}/dcgan.npz")


if __name__ == "__main__":
    main()
