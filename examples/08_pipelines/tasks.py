"""What the pipelines are trained for: digits, and Python's documentation."""

import sys
from pathlib import Path

import numpy
from networks import LAYERS, VGG, LanguageModel

import renga
import renga.links as L
from renga import training
from renga.training import extensions, triggers

sys.path.append(str(Path(__file__).resolve().parents[1] / "06_sequences"))


class Task:
    """Data to train and to test with, a model, and how it is trained.

    ``layers`` are the paths of the links that a stage may start with.
    """

    def cuts(self, stages):
        """The links that start the second and later of ``stages`` stages.

        They have as many layers each, as far as possible: not the cuts that a Pipeline
        finds by measuring, so that every run has the same stages.
        """
        return [self.layers[k * len(self.layers) // stages] for k in range(1, stages)]

    def optimizer(self):
        """With the name of its learning rate."""
        return renga.optimizers.MomentumSGD(self.lr), "lr"

    def schedule(self, trainer, rate, epochs):
        """The learning rate falls to a tenth after three quarters of the epochs."""
        trainer.extend(
            extensions.ExponentialShift(rate, 0.1),
            trigger=triggers.ManualScheduleTrigger(epochs * 3 // 4, "epoch"),
        )


class Digits(Task):
    """Images of 16 × 16 pixels by VGG."""

    metric, batch_size, lr = "accuracy", 32, 0.05
    layers = [f"/predictor/conv{i}" for i, units in enumerate(LAYERS) if units]
    layers += ["/predictor/fc1", "/predictor/fc2"]

    def __init__(self, size=None, width=8):
        train, test = renga.datasets.get_digits(ndim=3, upscale=16)
        self.train, self.test, self.width = train[:size], test[:size], width

    def model(self):
        return L.Classifier(VGG(self.width))


class Text(Task):
    """The next word, by LSTMs; the text is cut into sequences of ``length`` words."""

    metric, batch_size, lr = "perplexity", 20, 0.005

    def __init__(self, size=None, length=20, units=64, layers=6):
        train, test, self.vocabulary = self.words(size)
        self.train, self.test = (sequences(text, length) for text in (train, test))
        self.units, self.lstms = units, layers
        self.layers = [
            "/predictor/embed",
            *(f"/predictor/lstms/{i}/0" for i in range(layers)),
            "/predictor/out",
        ]

    def words(self, size):
        from words import load

        return load(size)

    def model(self):
        words = len(self.vocabulary)
        model = L.Classifier(LanguageModel(words, self.units, self.lstms))
        model.compute_accuracy = False
        return model

    def optimizer(self):
        return renga.optimizers.Adam(self.lr), "alpha"


class TextByMomentum(Text):
    """The same by momentum SGD, and two LSTMs."""

    lr = 1.0

    def __init__(self, size=None):
        super().__init__(size, layers=2)

    def optimizer(self):
        return Task.optimizer(self)


class LongText(Text):
    """The same on five times as many words, the docstrings of Python's library, too."""

    def words(self, size):
        from words import docstrings, documentation

        train, test, vocabulary = documentation(docstrings(), rare=8)
        return train[:size], test[:size], vocabulary

    def schedule(self, trainer, rate, epochs):
        """A linear warm-up in the first twentieth, then half a cosine down to 0."""
        optimizer = trainer.updater.get_optimizer("main")
        total = epochs * len(self.train) // self.batch_size
        warmup = max(1, total // 20)

        def factor(i):
            if i < warmup:
                return i / warmup
            part = (i - warmup) / max(1, total - warmup)
            return max((1 + numpy.cos(numpy.pi * part)) / 2, 1e-4)

        @training.make_extension(trigger=(1, "iteration"))
        def shift(trainer):
            setattr(optimizer, rate, self.lr * factor(trainer.updater.iteration))

        setattr(optimizer, rate, self.lr / warmup)
        trainer.extend(shift, name="shift")


def sequences(text, length):
    """Pairs of ``length`` words and the words that follow each."""
    count = (len(text) - 1) // length
    x, t = (text[i : i + count * length].reshape(count, length) for i in (0, 1))
    return renga.datasets.TupleDataset(x.astype("i"), t.astype("i"))


TASKS = {
    "digits": Digits,
    "text": Text,
    "text-momentum": TextByMomentum,
    "long-text": LongText,
}


def perplexity(entry):
    """Adds the perplexity to the observations of an epoch."""
    for name in ("main", "validation/main"):
        if f"{name}/loss" in entry:
            entry[f"{name}/perplexity"] = float(numpy.exp(entry[f"{name}/loss"]))
