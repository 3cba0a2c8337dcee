"""A snapshot holds an iteration that everything else in the trainer has seen."""

import numpy
import pytest

import renga
from renga import serializers, training
from renga.testing import get_trainer_with_mock_updater
from renga.training import extensions, triggers

ITERATIONS, PER_EPOCH = 12, 3
# Reported in each iteration; the means of epochs are 4, 3, 5, 5.
VALUES = [4, 4, 4, 3, 3, 3, 9, 3, 3, 5, 5, 5]


def make(folder, log, stop_trigger, first=None):
    trainer = get_trainer_with_mock_updater(stop_trigger, PER_EPOCH)
    trainer.out = folder
    if first is not None:
        first(trainer)
    trainer.extend(
        lambda t: t.observation.update(value=VALUES[t.updater.iteration - 1]),
        name="report",
        priority=training.PRIORITY_WRITER,
    )
    when = {
        "max": triggers.MaxValueTrigger("value", (1, "epoch")),
        "min": triggers.MinValueTrigger("value", (2, "iteration")),
        "interval": triggers.IntervalTrigger(2, "iteration"),
        "schedule": triggers.ManualScheduleTrigger([2, 5, 6, 11], "iteration"),
        "once": triggers.OnceTrigger(),
    }
    for name, trigger in when.items():
        trainer.extend(
            lambda t, name=name: log.append((t.updater.iteration, name)),
            name=name,
            trigger=trigger,
            priority=training.extension.PRIORITY_SNAPSHOT,
        )
    trainer.extend(Counter(log), "counter", (1, "iteration"), -100)
    return trainer


class Counter(training.Extension):
    """An extension with a state that its calls change."""

    count = 0

    def __init__(self, log):
        self.log = log

    def __call__(self, trainer):
        self.count += 1
        self.log.append((trainer.updater.iteration, f"call {self.count}"))

    def serialize(self, serializer):
        self.count = serializer("count", self.count)


STOPS = {
    "interval": lambda: (ITERATIONS, "iteration"),
    "early": lambda: triggers.EarlyStoppingTrigger(
        (1, "epoch"), "value", patience=1, max_trigger=(ITERATIONS, "iteration")
    ),
    "later": lambda: triggers.EarlyStoppingTrigger(
        (1, "epoch"), "value", patience=2, max_trigger=(ITERATIONS, "iteration")
    ),
    # It reads the observation and has no state to save.
    "function": lambda: lambda t: t.observation.get("value") == 9,
}


def saving_first(trainer):
    trainer.extend(extensions.snapshot(), trigger=(1, "iteration"))


@pytest.mark.parametrize("stop", STOPS)
def test_a_resumed_run_goes_on_as_if_it_had_never_stopped(stop, tmp_path):
    log = []
    whole = make(tmp_path, log, STOPS[stop](), saving_first)
    whole.run()
    last = whole.updater.iteration
    for iteration in range(1, last + 1):
        rest = []
        trainer = make(tmp_path, rest, STOPS[stop]())
        path = tmp_path / f"snapshot_iter_{iteration}"
        serializers.load_npz(path, trainer)
        trainer.run()
        assert trainer.updater.iteration == last
        assert rest == [entry for entry in log if entry[0] > iteration]


def test_a_run_that_has_ended_goes_on_with_a_longer_stop_trigger(tmp_path):
    make(tmp_path, [], (5, "iteration"), saving_first).run()
    for stop in (5, 8):
        trainer = make(tmp_path, [], (stop, "iteration"))
        serializers.load_npz(tmp_path / "snapshot_iter_5", trainer)
        trainer.run()
        assert trainer.updater.iteration == stop


def test_extensions_of_lower_priority_see_the_file(tmp_path):
    seen = []
    trainer = make(tmp_path, [], (2, "iteration"))
    trainer.extend(
        lambda t: seen.append((tmp_path / "snapshot_iter_2").exists()),
        name="copy",
        trigger=(2, "iteration"),
        priority=-200,
    )
    # Not even a high priority puts it before what changes the trainer.
    trainer.extend(extensions.snapshot(), trigger=(1, "iteration"), priority=999)
    trainer.run()
    assert seen == [True]


def test_the_observation_is_saved_exactly(tmp_path):
    x = numpy.float32(0.1)
    observed = {
        "a/b": x,
        "variable": renga.Variable(numpy.array(0.3)),
        "nan": numpy.float64("nan"),
        "pair": (numpy.array(2.5), 3),
        "count": 2**60,
        "array": numpy.ones(3),
        "text": "no number",
        "pair with a text": (1.0, "no number"),
        "three numbers": (1.0, 2.0, 3.0),
    }
    trainer = get_trainer_with_mock_updater((1, "iteration"))
    trainer.extend(lambda t: t.observation.update(observed), name="report")
    trainer.extend(extensions.snapshot(), trigger=(1, "iteration"))
    trainer.out = tmp_path
    trainer.run()
    other = get_trainer_with_mock_updater()
    serializers.load_npz(tmp_path / "snapshot_iter_1", other)
    got = other.observation
    assert got.keys() == {"a/b", "variable", "nan", "pair", "count"}
    assert (got["a/b"], got["variable"], got["count"]) == (float(x), 0.3, 2**60)
    assert numpy.isnan(got["nan"]) and got["pair"] == (2.5, 3)


def test_a_load_that_fails_keeps_the_observation():
    trainer = get_trainer_with_mock_updater((1, "iteration"))
    trainer.extend(lambda t: t.observation.update(value=3), name="report")
    trainer.run()
    saved = serializers.npz.serialize(trainer)
    del saved["_snapshot_elapsed_time"]
    saved["observation"] = numpy.array('{"value": 4}')
    with pytest.raises(KeyError):
        serializers.NpzDeserializer(saved).load(trainer)
    assert trainer.observation == {"value": 3}
