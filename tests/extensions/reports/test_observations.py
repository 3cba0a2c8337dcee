"""Extensions that observe: observe_value, observe_lr, MicroAverage, FailOnNonNumber."""

import types

import numpy
import pytest

import renga
from renga import extensions
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.testing import get_trainer_with_mock_updater
from renga.training import PRIORITY_EDITOR, PRIORITY_WRITER


def test_observe_value_and_lr():
    trainer = get_trainer_with_mock_updater((4, "iteration"), iter_per_epoch=2)
    optimizer = types.SimpleNamespace(lr=0.25)
    trainer.updater.get_all_optimizers()["second"] = optimizer
    seen = []
    observe = extensions.observe_value("twice", lambda t: 2 * t.updater.iteration)
    trainer.extend(observe)
    trainer.extend(extensions.observe_lr("second", "rate"))
    trainer.extend(lambda t: seen.append(dict(t.observation)))
    trainer.run()
    assert seen == [{}, {"twice": 4, "rate": 0.25}, {}, {"twice": 8, "rate": 0.25}]
    assert observe.priority == PRIORITY_WRITER


N = [3, 1, 4, 1, 5, 9, 2]
D = [2, 7, 1, 8, 2, 8, 1]


@pytest.mark.parametrize("resume_at", [None, 1, 4, 5])
def test_micro_average_is_the_ratio_of_sums(resume_at):
    def make():
        return extensions.MicroAverage("n", "d", "ratio", trigger=(3, "iteration"))

    trainer = get_trainer_with_mock_updater()
    average = make()
    seen = {}
    for i, (n, d) in enumerate(zip(N, D), 1):
        trainer.updater.update()
        trainer.observation = {"n": renga.Variable(numpy.float32([n])[0:1].reshape(()))}
        trainer.observation["d"] = d
        with trainer.reporter.scope(trainer.observation):
            average(trainer)
        if "ratio" in trainer.observation:
            seen[i] = trainer.observation["ratio"]
        if i == resume_at:
            saved = DictionarySerializer()
            average.serialize(saved)
            average = make()
            average.serialize(NpzDeserializer(saved.target))
    assert seen == {3: 8 / 10, 6: 15 / 18}
    assert average.priority == PRIORITY_EDITOR


def test_micro_average_skips_iterations_without_its_observations():
    trainer = get_trainer_with_mock_updater()
    average = extensions.MicroAverage("n", "d", "ratio", trigger=lambda t: True)
    for observation, expected in (({"n": 1}, {}), ({"n": 1, "d": 4}, {"ratio": 0.25})):
        trainer.observation = observation
        reporter = renga.Reporter()
        with reporter:
            average(trainer)
        assert reporter.observation == expected


@pytest.mark.parametrize("bad", [numpy.nan, numpy.inf, -numpy.inf])
def test_fail_on_nonnumber(bad):
    weight = types.SimpleNamespace(array=numpy.ones((2, 3), "f"))
    bias = types.SimpleNamespace(array=None)
    target = types.SimpleNamespace(
        namedparams=lambda: [("/b", bias), ("/l1/W", weight)]
    )
    trainer = get_trainer_with_mock_updater((3, "iteration"))
    trainer.updater.get_all_optimizers()["main"] = types.SimpleNamespace(target=target)

    def diverge(trainer):
        if trainer.updater.iteration == 2:
            weight.array[1, 2] = bad

    trainer.extend(diverge)
    trainer.extend(extensions.FailOnNonNumber())
    with pytest.raises(RuntimeError, match="/l1/W of optimizer 'main'.*iteration 2"):
        trainer.run(show_loop_exception_msg=False)
