"""Train on handwritten digits by a loop of one's own instead of a Trainer.

    python custom_loop.py

Without a network it takes scikit-learn's digits: 98 % of those to test with are
recognized after 20 epochs, in about two seconds. The trained network is then saved,
loaded into a new one, and asked about one image.
"""

import argparse
import os

import numpy
from data import load
from train_mnist import MLP

import renga
import renga.functions as F
from renga.dataset import concat_examples


def train_batch(model, optimizer, batch):
    """Update the model once; returns the loss before it."""
    x, t = concat_examples(batch)
    loss = F.softmax_cross_entropy(model(x), t)
    model.cleargrads()
    loss.backward()
    optimizer.update()
    return float(loss.array)


def accuracy(model, iterator):
    """The fraction of a data set's images that the model recognizes."""
    iterator.reset()
    right = count = 0
    with renga.using_config("train", False), renga.no_backprop_mode():
        for batch in iterator:
            x, t = concat_examples(batch)
            right += float(F.accuracy(model(x), t).array) * len(t)
            count += len(t)
    return right / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=96)
    parser.add_argument("--epoch", type=int, default=20)
    parser.add_argument("--unit", type=int, default=300)
    parser.add_argument("--size", type=int, help="images to train with")
    parser.add_argument("--out", default="result", help="folder for the model")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, test, _ = load("mnist", size=args.size)
    train_iter = renga.iterators.SerialIterator(train, args.batchsize)
    test_iter = renga.iterators.SerialIterator(
        test, args.batchsize, repeat=False, shuffle=False
    )
    model = MLP(args.unit)
    optimizer = renga.optimizers.Adam()
    optimizer.setup(model)

    losses = []
    while train_iter.epoch < args.epoch:
        losses.append(train_batch(model, optimizer, train_iter.next()))
        if train_iter.is_new_epoch:
            loss, right = numpy.mean(losses), accuracy(model, test_iter)
            print(f"epoch {train_iter.epoch}: loss {loss:.4f}, accuracy {right:.4f}")
            losses.clear()

    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "mlp.npz")
    renga.serializers.save_npz(path, model)
    loaded = MLP(args.unit)
    renga.serializers.load_npz(path, loaded)
    x, t = test[0]
    with renga.using_config("train", False):
        y = int(loaded(x[None]).array.argmax())
    print(f"{path} takes the first test image for a {y}; it is a {t}")


if __name__ == "__main__":
    main()
