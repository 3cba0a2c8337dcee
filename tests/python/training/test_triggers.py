"""Triggers, against the iterations at which they must fire."""

import time
import warnings

import numpy
import pytest

from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.testing import get_trainer_with_mock_updater
from renga.training import get_trigger, triggers


def firings(make, iterations, per_epoch, values=None, resume_at=None, saves=True):
    """Iterations at which a trigger fires; at ``resume_at`` it is recreated."""
    trainer = get_trainer_with_mock_updater(iter_per_epoch=per_epoch)
    trigger = make()
    fired = []
    for i in range(1, iterations + 1):
        trainer.updater.update()
        trainer.observation = {} if values is None else {"main/loss": values[i - 1]}
        if trigger(trainer):
            fired.append(i)
        if i == resume_at:
            saved = DictionarySerializer()
            if saves:
                trigger.serialize(saved)
            trigger = make()
            trigger.serialize(NpzDeserializer(saved.target))
    return fired


LOSSES = [5, 4, 6, 3, 3, 4, 2, 7, 8, 9, 9, 9]

CASES = {
    "every 3": (lambda: triggers.IntervalTrigger(3, "iteration"), [3, 6, 9, 12]),
    "every epoch": (lambda: triggers.IntervalTrigger(1, "epoch"), [4, 8, 12]),
    "every half epoch": (
        lambda: triggers.IntervalTrigger(0.5, "epoch"),
        [2, 4, 6, 8, 10, 12],
    ),
    "every 1.5 epochs": (lambda: triggers.IntervalTrigger(1.5, "epoch"), [6, 12]),
    "at 2, 7": (lambda: triggers.ManualScheduleTrigger([2, 7], "iteration"), [2, 7]),
    "at 5": (lambda: triggers.ManualScheduleTrigger(5, "iteration"), [5]),
    "at 0.4 and 2 epochs": (
        lambda: triggers.ManualScheduleTrigger([0.4, 2], "epoch"),
        [2, 8],
    ),
    "once": (triggers.OnceTrigger, [1]),
    # the means over three iterations are 5, 10/3, 17/3, 9
    "least": (
        lambda: triggers.MinValueTrigger("main/loss", (3, "iteration")),
        [3, 6],
    ),
    "greatest": (
        lambda: triggers.MaxValueTrigger("main/loss", (3, "iteration")),
        [3, 9, 12],
    ),
    "best by hand": (
        lambda: triggers.BestValueTrigger(
            "main/loss", lambda best, new: new < best - 2, (3, "iteration")
        ),
        [3],
    ),
    # the means over two are 4.5, 4.5, 3.5, 4.5, 8.5, 9: the best is the third
    "early": (
        lambda: triggers.EarlyStoppingTrigger((2, "iteration"), patience=2),
        [10, 12],
    ),
    "early, at the latest": (
        lambda: triggers.EarlyStoppingTrigger(
            (2, "iteration"), patience=99, max_trigger=(11, "iteration")
        ),
        [11],
    ),
}


@pytest.mark.parametrize("resume_at", [None, 1, 4, 5, 7])
@pytest.mark.parametrize("case", CASES)
def test_firings(case, resume_at):
    make, expected = CASES[case]
    assert firings(make, 12, 4, LOSSES, resume_at) == expected


@pytest.mark.parametrize(
    "case", ["every 3", "every epoch", "at 2, 7", "at 5", "early, at the latest"]
)
def test_resume_from_a_file_without_the_trigger(case):
    make, expected = CASES[case]
    assert firings(make, 12, 4, resume_at=4, saves=False) == expected


def test_once_again_on_resume():
    def make():
        return triggers.OnceTrigger(call_on_resume=True)

    assert firings(make, 6, 2, resume_at=3) == [1, 4]


def test_finished():
    trainer = get_trainer_with_mock_updater()
    once = triggers.OnceTrigger()
    schedule = triggers.ManualScheduleTrigger([1, 2], "iteration")
    history = []
    for _ in range(3):
        trainer.updater.update()
        history.append((once.finished, schedule.finished))
        once(trainer), schedule(trainer)
    assert history == [(False, False), (True, False), (True, True)]


def test_time_trigger():
    trainer = get_trainer_with_mock_updater(stop_trigger=(40, "iteration"))
    trigger = triggers.TimeTrigger(0.05)
    times = []

    def tick(trainer):
        time.sleep(0.005)
        if trigger(trainer):
            times.append(trainer.elapsed_time)

    trainer.extend(tick)
    trainer.run()
    periods = numpy.array(times) // 0.05
    assert len(times) >= 3
    assert (numpy.diff(periods) >= 1).all()


@pytest.mark.parametrize(
    "monitor, mode, values, expected",
    [
        ("main/loss", "auto", [3, 2, 1, 2, 3], [5]),
        ("main/loss", "max", [1, 2, 3, 2, 1], [5]),
        ("main/loss", "min", [1, 2, 3, 2, 1], [3, 4, 5]),
    ],
)
def test_early_stopping_modes(monitor, mode, values, expected):
    def make():
        return triggers.EarlyStoppingTrigger(
            (1, "iteration"), monitor, patience=2, mode=mode
        )

    assert firings(make, 5, 5, values) == expected


def test_early_stopping_of_an_accuracy(capsys):
    trigger = triggers.EarlyStoppingTrigger(
        (1, "iteration"), "accuracy", patients=1, verbose=True
    )
    trainer = get_trainer_with_mock_updater(stop_trigger=trigger)
    values = iter([0.5, 0.75, 0.25, 1])
    trainer.extend(lambda t: t.observation.update(accuracy=next(values)))
    trainer.run()
    assert trainer.updater.iteration == 3
    assert "0.75" in capsys.readouterr().out


def test_early_stopping_warns_once_when_nothing_is_observed():
    trigger = triggers.EarlyStoppingTrigger((1, "iteration"), "absent")
    trainer = get_trainer_with_mock_updater()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            trainer.updater.update()
            assert not trigger(trainer)
    assert len(caught) == 1 and "absent" in str(caught[0].message)


def test_training_length():
    assert triggers.IntervalTrigger(7, "epoch").get_training_length() == (7, "epoch")
    early = triggers.EarlyStoppingTrigger(max_trigger=(9, "iteration"))
    assert early.get_training_length() == (9, "iteration")


def test_get_trigger():
    trainer = get_trainer_with_mock_updater()
    trainer.updater.update()
    assert not get_trigger(None)(trainer)
    assert get_trigger(len) is len
    assert str(get_trigger((2, "epoch"))) == "IntervalTrigger(2, 'epoch')"


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: get_trigger(3), TypeError),
        (lambda: get_trigger((3,)), TypeError),
        (lambda: get_trigger(("a", 3)), ValueError),
        (lambda: triggers.IntervalTrigger(1, "day"), ValueError),
        (lambda: triggers.IntervalTrigger(0, "epoch"), ValueError),
        (lambda: triggers.ManualScheduleTrigger(1, "day"), ValueError),
        (lambda: triggers.EarlyStoppingTrigger(patienc=1), TypeError),
    ],
)
def test_refusals(make, error):
    with pytest.raises(error):
        make()


def test_best_value_must_be_observed():
    trainer = get_trainer_with_mock_updater()
    trainer.updater.update()
    trainer.observation = {"other": 1}
    with pytest.raises(KeyError, match="other"):
        triggers.MaxValueTrigger("k", (1, "iteration"))(trainer)


def test_a_subclass_of_a_best_value_trigger_begins_intervals():
    class Own(triggers.MinValueTrigger):
        def __call__(self, trainer):
            self._summary.add({self._key: trainer.observation[self._key]})
            if not self._interval_trigger(trainer):
                return False
            value = self._summary.compute_mean()[self._key]
            self._init_summary()
            best = self._best_value
            self._best_value = value if best is None else min(best, value)
            return best is None or self._compare(best, value)

    def make():
        return Own("main/loss", (2, "iteration"))

    assert firings(make, 6, 2, [5, 3, 4, 6, 0, 1]) == [2, 6]


@pytest.mark.parametrize("name", ["MaxValueTrigger", "MinValueTrigger"])
def test_means_of_epochs_are_compared_by_default(name):
    trigger = getattr(triggers, name)("loss")
    trainer = get_trainer_with_mock_updater((6, "iteration"), 2)
    sign, fired = 1 if name == "MaxValueTrigger" else -1, []
    for value in (1, 3, 2, 1, 3, 2):  # means of 2, 1.5 and 2.5
        trainer.updater.update()
        trainer.observation = {"loss": sign * value}
        fired.append(trigger(trainer))
    assert fired == [False, True, False, False, False, True]
