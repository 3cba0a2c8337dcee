"""How far predicted weights are from those that come, on digits."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import simulated
from renga.optimizers import MomentumSGD
from renga.parallel.pipeline import weights
from renga.pipeline import Pipeline, PipelineUpdater

STAGES, BATCH, EPOCHS = 4, 32, 2


class Recorded(weights.SpecTrain):
    """Keeps what it predicts, what it had then, and what came."""

    def __init__(self, *args):
        super().__init__(*args)
        self.guesses, self.versions = [], [self._values()]

    def of_forward(self, i):
        predicted = super().of_forward(i)
        guess = np.concatenate([predicted[id(p)].array.ravel() for p in self._params])
        self.guesses.append((self._updates, self._forward_steps(i), guess))
        return predicted

    def after_update(self):
        super().after_update()
        self.versions.append(self._values())

    def _values(self):
        return np.concatenate([p.array.ravel() for p in self._params])


class Small(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c0 = L.Convolution2D(1, 8, 3, pad=1)
            self.c1 = L.Convolution2D(8, 16, 3, pad=1)
            self.d0 = L.Linear(16 * 4 * 4, 32)
            self.d1 = L.Linear(32, 10)

    def forward(self, x):
        h = F.relu(self.c1(F.relu(self.c0(x))))
        return self.d1(F.relu(self.d0(F.max_pooling_2d(h, 2))))


def test_predicted_weights_are_nearer_than_stale_ones(monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setitem(weights.KINDS, "spectrain", Recorded)
    train, _ = renga.datasets.get_digits(ndim=3)

    def run(comm):
        np.random.seed(0)
        options = {"schedule": "pipedream", "weights": "spectrain"}
        example = renga.dataset.concat_examples(train[:BATCH])
        model = Pipeline(L.Classifier(Small()), comm, *example, **options)
        optimizer = MomentumSGD(0.01).setup(model)
        iterator = renga.iterators.SerialIterator(train, BATCH)
        updater = PipelineUpdater(iterator, optimizer)
        while iterator.epoch < EPOCHS:
            updater.update()
        recorded = model._runner._executor._weights
        ratios = []
        for now, steps, guess in recorded.guesses:
            if steps > 0 and 0 < now and now + steps < len(recorded.versions):
                stale, actual = recorded.versions[now], recorded.versions[now + steps]
                ratios.append(
                    np.linalg.norm(guess - actual) / np.linalg.norm(stale - actual)
                )
        return ratios

    for ratios in simulated.run(run, STAGES).results:
        assert len(ratios) > 60
        assert np.median(ratios) < 0.8
