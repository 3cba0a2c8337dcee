"""Schedules for large batches, against their closed forms."""

import types

import numpy as np
import pytest

import renga
from renga import extensions
from renga.serializers import DictionarySerializer, NpzDeserializer


class Trainer:
    """At an epoch, with an optimizer and an iterator."""

    def __init__(self, **optimizer):
        self.optimizer = types.SimpleNamespace(**optimizer)
        self.iterator = types.SimpleNamespace(batch_size=32)
        self.updater = self
        self.epoch_detail = 0.0

    def get_optimizer(self, name):
        return self.optimizer

    def get_iterator(self, name):
        return self.iterator


def follow(extension, trainer, epochs, value):
    """``value()`` at each epoch, of which the first is where training starts."""
    seen = []
    for i, trainer.epoch_detail in enumerate(epochs):
        extension.initialize(trainer) if i == 0 else extension(trainer)
        seen.append(value())
    return seen


EPOCHS = np.linspace(0, 20, 41)


def test_linear_scaling():
    trainer = Trainer(lr=9.0)
    schedule = extensions.LinearScaling("lr", 0.1, 8, epochs=5)
    seen = follow(schedule, trainer, EPOCHS[:13], lambda: trainer.optimizer.lr)
    np.testing.assert_allclose(seen, np.interp(EPOCHS[:13], [0, 5], [0.1, 0.8]))
    trainer.optimizer.lr = 0.08  # another schedule's
    schedule(trainer)
    assert trainer.optimizer.lr == 0.08
    state = DictionarySerializer()
    schedule.serialize(state)
    resumed = extensions.LinearScaling("lr", 0.1, 8, epochs=5)
    resumed.serialize(NpzDeserializer(state.target))
    trainer.optimizer.lr = 0.1  # of a new optimizer
    resumed.initialize(trainer)
    assert trainer.optimizer.lr == 0.08


def test_linear_scaling_of_an_explicit_optimizer():
    other = types.SimpleNamespace(alpha=0.0)
    trainer = Trainer(alpha=3.0)
    extensions.LinearScaling("alpha", 1, 4, 2, other).initialize(trainer)
    assert (other.alpha, trainer.optimizer.alpha) == (1, 3)


def test_rmsprop_warmup():
    trainer = Trainer(sgd_share=1.0)
    schedule = extensions.RMSpropWarmup(center=10, period=5)
    seen = follow(schedule, trainer, EPOCHS, lambda: trainer.optimizer.sgd_share)
    early = 0.5 * np.exp(2 * (EPOCHS - 10) / 5)
    late = np.interp(EPOCHS, [10, 12.5], [0.5, 1])
    np.testing.assert_allclose(seen, np.where(EPOCHS < 10, early, late))


@pytest.mark.parametrize("start", [0, 15])
def test_batch_size_shift(start):
    trainer = Trainer()
    schedule = extensions.BatchSizeShift(2.5, [5, 10])
    epochs = EPOCHS[EPOCHS >= start]
    seen = follow(schedule, trainer, epochs, lambda: trainer.iterator.batch_size)
    assert seen == [32 if e < 5 else 80 if e < 10 else 200 for e in epochs]


def test_an_iterator_returns_the_larger_batches():
    iterator = renga.iterators.SerialIterator(list(range(64)), 4, shuffle=False)
    trainer = Trainer()
    trainer.iterator = iterator
    schedule = extensions.BatchSizeShift(4, [0.5])
    lengths = []
    schedule.initialize(trainer)
    while iterator.epoch < 1:
        lengths.append(len(iterator.next()))
        trainer.epoch_detail = iterator.epoch_detail
        schedule(trainer)
    assert lengths == [4] * 8 + [16, 16]
