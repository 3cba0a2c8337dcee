"""A classifier of real images, which says what it sees in images that were made up.

python recognize.py result/dcgan.npz
"""

import sys
from pathlib import Path

import numpy
from images import load
from matplotlib.figure import Figure
from pictures import draw_history

import renga
import renga.functions as F
import renga.links as L


class Classifier(renga.Chain):
    """Shapes: (N, colours, size, size) -> (N, 10)."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(None, 32, 3, pad=1)
            self.conv2 = L.Convolution2D(32, 64, 3, pad=1)
            self.out = L.Linear(None, 10)

    def forward(self, x):
        h = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.out(F.dropout(F.max_pooling_2d(h, 2)))


def train_classifier(images, labels, epochs=20, batch=32):
    """Shapes: images (n, colours, size, size), labels (n,)."""
    random = numpy.random.RandomState(0)
    model = Classifier()
    optimizer = renga.optimizers.Adam().setup(model)
    for _ in range(epochs):
        order = random.permutation(len(images))
        for chosen in numpy.split(order, range(batch, len(order), batch)):
            x, t = images[chosen].astype("f"), labels[chosen]
            optimizer.update(lambda x, t: F.softmax_cross_entropy(model(x), t), x, t)
    return model


def recognized(classifier, images, confidence=0.9):
    """The part of images that the classifier is sure of, and the classes it is sure of.

    Shapes: images (n, colours, size, size)
    """
    with renga.no_backprop_mode(), renga.using_config("train", False):
        y = F.softmax(classifier(images)).array
    sure = y.max(1) >= confidence
    return {
        "recognized": float(sure.mean()),
        "classes": sorted(set(y.argmax(1)[sure].tolist())),
    }


def main():
    path = Path(sys.argv[1])
    with numpy.load(path) as file:
        losses, *made_up = (file[name] for name in file.files)
        steps = [int(name.partition("_")[2]) for name in file.files[1:]]
    images = dict(zip(steps, made_up))
    figure = Figure((8, 7), layout="constrained")
    draw_history(figure, {"losses": losses, "images": images})
    figure.savefig(path.with_suffix(".png"), dpi=120)
    size = made_up[-1].shape[-1]
    classifier = train_classifier(*load(size=size, rgb=False)[0])
    for step, made in images.items():
        found = recognized(classifier, made)
        print(
            f"step {step}: the classifier is sure of {found['recognized']:.0%} of the "
            f"images, and of the digits {found['classes']}"
        )


if __name__ == "__main__":
    main()
