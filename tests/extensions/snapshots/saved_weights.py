"""A small object to save, and trainers that take snapshots of it."""

import numpy

from renga import serializers
from renga.testing import get_trainer_with_mock_updater


class Weights:
    """A large array that changes in place."""

    def __init__(self, size=1000):
        self.w = numpy.zeros(size)

    def serialize(self, serializer):
        serializer("w", self.w)


def trainer_in(out, *extensions_, iterations=4):
    trainer = get_trainer_with_mock_updater((iterations, "iteration"), iter_per_epoch=1)
    trainer.out = str(out)
    for extension in extensions_:
        trainer.extend(extension)
    return trainer


def filling(weights):
    """An extension that writes the iteration into the weights."""
    fill = lambda t: weights.w.fill(t.updater.iteration)  # noqa: E731
    fill.priority = 999
    return fill


def loaded(path):
    weights = Weights()
    serializers.load_npz(path, weights)
    assert (weights.w == weights.w[0]).all()
    return weights.w[0]
