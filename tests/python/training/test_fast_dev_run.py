"""Trainer(fast_dev_run=…): every part of a script runs once."""

import os

import numpy
import pytest

import renga
import renga.links as L
from renga.iterators import SerialIterator
from renga.training import StandardUpdater, Trainer, extensions

DATA = [(numpy.full(3, i, "f"), numpy.int32(i % 2)) for i in range(20)]


@pytest.mark.parametrize(("count", "updates"), [(True, 1), (3, 3)])
def test_every_extension_is_called_after_the_last_update(tmp_path, count, updates):
    model = L.Classifier(L.Linear(3, 2))
    optimizer = renga.optimizers.SGD().setup(model)
    updater = StandardUpdater(SerialIterator(DATA, 2), optimizer)
    out = tmp_path / "out"
    trainer = Trainer(updater, (1000, "epoch"), out=out, fast_dev_run=count)
    calls, files = [], []
    evaluated = []

    def observed(x, t):
        evaluated.append(len(x))
        return model(x, t)

    trainer.extend(
        extensions.Evaluator(
            SerialIterator(DATA, 2, repeat=False, shuffle=False),
            model,
            eval_func=observed,
        )
    )
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.snapshot(), trigger=(7, "epoch"))
    trainer.extend(
        lambda t: calls.append(t.updater.iteration), "rare", trigger=(100, "epoch")
    )
    trainer.extend(
        lambda t: files.extend(os.listdir(t.out)), "files", (1, "epoch"), priority=-999
    )
    trainer.run()
    assert optimizer.t == updates and calls == [updates]
    assert evaluated == [2] * updates
    assert f"snapshot_iter_{updates}" in files
    assert not out.exists() and trainer.out == out


def test_negative_counts_are_refused():
    optimizer = renga.optimizers.SGD().setup(L.Classifier(L.Linear(3, 2)))
    updater = StandardUpdater(SerialIterator(DATA, 2), optimizer)
    with pytest.raises(ValueError, match="fast_dev_run: expected at least 0, got -1"):
        Trainer(updater, fast_dev_run=-1)
