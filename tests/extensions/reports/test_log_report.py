"""LogReport: means against NumPy, its file, resume."""

import json

import numpy
import pytest

from renga import extensions
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.testing import get_trainer_with_mock_updater
from renga.training import PRIORITY_WRITER

LOSSES = numpy.random.RandomState(0).normal(size=12).astype("f")


def run(log_report, iterations=12, resume=None):
    trainer = get_trainer_with_mock_updater((iterations, "iteration"), iter_per_epoch=4)

    def observe(trainer):
        i = trainer.updater.iteration
        trainer.observation["loss"] = LOSSES[i - 1]
        trainer.observation["text"] = numpy.array([1, 2])
        if i % 3 == 0:
            trainer.observation["rare"] = (i, 2)

    trainer.extend(observe, priority=PRIORITY_WRITER)
    trainer.extend(log_report)
    if resume is not None:
        trainer.serialize(NpzDeserializer(resume))
    trainer.run()
    return trainer


def written(trainer, name="log"):
    with open(f"{trainer.out}/{name}") as file:
        return json.load(file)


def test_means_over_epochs():
    trainer = run(extensions.LogReport())
    log = written(trainer)
    assert log == trainer.get_extension("LogReport").log
    means = LOSSES.astype(float).reshape(3, 4).mean(1)
    numpy.testing.assert_allclose([e["loss"] for e in log], means, rtol=1e-13)
    assert [entry["rare"] for entry in log] == [3, 6, 10.5]
    assert [(e["epoch"], e["iteration"]) for e in log] == [(1, 4), (2, 8), (3, 12)]
    assert 0 < log[0]["elapsed_time"] < log[1]["elapsed_time"]
    assert list(log[0]) == ["loss", "rare", "epoch", "iteration", "elapsed_time"]


def test_keys_trigger_postprocess_and_name():
    def postprocess(entry):
        entry["double"] = 2 * entry["rare"]

    log_report = extensions.LogReport(
        ["rare", "absent"], (6, "iteration"), postprocess, "log_{iteration}_{epoch}"
    )
    trainer = run(log_report)
    log = written(trainer, "log_12_3")
    assert [entry["double"] for entry in log] == [9, 21]
    assert "loss" not in log[0]
    assert log[:1] == written(trainer, "log_6_1")


def test_old_name_of_filename():
    assert written(run(extensions.LogReport(log_name="old")), "old")
    with pytest.raises(TypeError):
        extensions.LogReport(name="x")


@pytest.mark.parametrize("at", [3, 4, 6])
def test_resume(at):
    first = run(extensions.LogReport(), at)
    saved = DictionarySerializer()
    first.serialize(saved)
    resumed = written(run(extensions.LogReport(), resume=saved.target))
    uninterrupted = written(run(extensions.LogReport()))
    for entry in resumed + uninterrupted:
        del entry["elapsed_time"]
    assert resumed == uninterrupted


def test_a_subclass_begins_intervals():
    class EveryFifth(extensions.LogReport):
        def __call__(self, trainer):
            self._summary.add(trainer.observation)
            if trainer.updater.iteration % 5 == 0:
                self._log.append(self._summary.compute_mean())
                self._init_summary()

    log = run(EveryFifth(), iterations=10).get_extension("EveryFifth").log
    means = LOSSES[:10].astype(float).reshape(2, 5).mean(1)
    numpy.testing.assert_allclose([e["loss"] for e in log], means, rtol=1e-13)
