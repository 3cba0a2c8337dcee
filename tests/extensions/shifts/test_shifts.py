"""Schedules of hyperparameters, against their closed forms in NumPy float64."""

import types

import numpy
import pytest

from renga import extensions
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.testing import get_trainer_with_mock_updater

T = numpy.arange(13.0)

CASES = {
    "exponential": (
        lambda **k: extensions.ExponentialShift("lr", 0.5, **k),
        2 * 0.5**T,
    ),
    "exponential to a target": (
        lambda **k: extensions.ExponentialShift("lr", 0.5, target=0.3, **k),
        numpy.maximum(2 * 0.5**T, 0.3),
    ),
    "growing to a target": (
        lambda **k: extensions.ExponentialShift("lr", 1.5, init=3, target=20, **k),
        numpy.minimum(3 * 1.5**T, 20),
    ),
    "growing below zero": (
        lambda **k: extensions.ExponentialShift("lr", 2, init=-1, target=-9, **k),
        numpy.maximum(-(2**T), -9),
    ),
    "linear": (
        lambda **k: extensions.LinearShift("lr", (1, 3), (2, 6), **k),
        numpy.interp(T, [2, 6], [1, 3]),
    ),
    "inverse": (
        lambda **k: extensions.InverseShift("lr", 0.1, 0.5, **k),
        2 / numpy.sqrt(1 + 0.1 * T),
    ),
    "inverse to a target": (
        lambda **k: extensions.InverseShift("lr", 0.1, 1, init=4, target=2.5, **k),
        numpy.maximum(4 / (1 + 0.1 * T), 2.5),
    ),
    "polynomial": (
        lambda **k: extensions.PolynomialShift("lr", 2.0, 8, **k),
        2 * numpy.clip(1 - T / 8, 0, None) ** 2,
    ),
    "polynomial to a target": (
        lambda **k: extensions.PolynomialShift("lr", 1, 8, init=3, target=1, **k),
        numpy.maximum(3 * numpy.clip(1 - T / 8, 0, None), 1),
    ),
    "cosine": (
        lambda **k: extensions.CosineShift("lr", 8, 0.5, **k),
        1.25 + 0.75 * numpy.cos(numpy.pi * numpy.minimum(T, 8) / 8),
    ),
    # PyTorch 2.13 gave these: OneCycleLR(max_lr=2, total_steps=11, pct_start=4 / 11).
    "one cycle": (
        lambda **k: extensions.OneCycleShift("lr", 10, **k),
        [0.08000000000000007, 0.56, 1.5199999999999998, 2.0, 1.9009692640269473]
        + [1.6234913078995261, 1.2225240438725786, 0.7774839561274215]
        + [0.37651669210047395, 0.09903873597305257, 8e-6, 8e-6, 8e-6],
    ),
    "step": (
        lambda **k: extensions.StepShift("lr", 0.5, 3, **k),
        2 * 0.5 ** (T // 3),
    ),
    "multistep": (
        lambda **k: extensions.MultistepShift("lr", 0.1, [2, 5, 6], 4.0, **k),
        4 * 0.1 ** numpy.searchsorted([2, 5, 6], T, side="right"),
    ),
    "warmup": (
        lambda **k: extensions.WarmupShift("lr", 0.1, 5, 1.0, **k),
        numpy.interp(T, [0, 5], [0.1, 1]),
    ),
}


def trainer_of(optimizer):
    optimizer.target = types.SimpleNamespace(namedlinks=lambda skipself: [])
    trainer = get_trainer_with_mock_updater()
    trainer.updater.get_all_optimizers()["main"] = optimizer
    return trainer


def history(shift, calls, optimizer=None):
    main = types.SimpleNamespace(lr=2.0)
    trainer = trainer_of(main)
    changed = optimizer or main
    shift.initialize(trainer)
    values = [changed.lr]
    for _ in range(calls):
        shift(trainer)
        values.append(changed.lr)
    return values


@pytest.mark.parametrize("case", CASES)
def test_closed_form(case):
    make, expected = CASES[case]
    numpy.testing.assert_allclose(history(make(), 12), expected, rtol=1e-14)


@pytest.mark.parametrize("case", CASES)
def test_another_optimizer(case):
    make, expected = CASES[case]
    other = types.SimpleNamespace(lr=2.0)
    values = history(make(optimizer=other), 12, other)
    numpy.testing.assert_allclose(values, expected, rtol=1e-14)


@pytest.mark.parametrize("calls", [1, 4, 7])
@pytest.mark.parametrize("case", CASES)
def test_resume_continues_where_it_was(case, calls):
    make, _ = CASES[case]
    shift = make()
    uninterrupted = history(make(), 12)
    history(shift, calls)
    saved = DictionarySerializer()
    shift.serialize(saved)
    resumed = make()
    resumed.serialize(NpzDeserializer(saved.target))
    assert history(resumed, 12 - calls) == uninterrupted[calls:]


@pytest.mark.parametrize("calls", [1, 3, 8])
def test_resume_where_several_schedules_change_one_rate(calls):
    """One of them, or the program, has set the value that a resumed run begins with."""

    def make(optimizer):
        trainer = trainer_of(optimizer)
        warmup = extensions.WarmupShift("lr", 0.1, 2, 1.0)
        decay = extensions.StepShift("lr", 0.5, 2, init=1.0)
        return trainer, warmup, decay

    def run(trainer, warmup, decay, first, last):
        values = []
        for t in range(first, last):
            warmup(trainer)
            if t % 3 == 2:
                decay(trainer)
            if t == 6:
                optimizer.lr = 0.3
            values.append(optimizer.lr)
        return values

    optimizer = types.SimpleNamespace(lr=7.0)
    parts = make(optimizer)
    for shift in parts[1:]:
        shift.initialize(parts[0])
    run(*parts, 0, calls)
    saved = [DictionarySerializer(), DictionarySerializer()]
    for shift, serializer in zip(parts[1:], saved):
        shift.serialize(serializer)
    expected = [optimizer.lr, *run(*parts, calls, 12)]

    optimizer = types.SimpleNamespace(lr=7.0)
    parts = make(optimizer)
    for shift, serializer in zip(parts[1:], saved):
        shift.serialize(NpzDeserializer(serializer.target))
    for shift in parts[1:]:
        shift.initialize(parts[0])
    assert [optimizer.lr, *run(*parts, calls, 12)] == expected


def test_the_first_value_is_that_of_the_first_run():
    """Also where another schedule has changed what the optimizer has by then."""
    optimizer = types.SimpleNamespace(lr=8.0)
    trainer = trainer_of(optimizer)
    schedules = [extensions.WarmupShift("lr", 4.0, 1, 6.0)]
    schedules.append(extensions.ExponentialShift("lr", 0.5))
    for shift in schedules:
        shift.initialize(trainer)
    for shift in schedules:
        shift(trainer)
    saved = [DictionarySerializer() for _ in schedules]
    for shift, serializer in zip(schedules, saved):
        shift.serialize(serializer)
    assert optimizer.lr == 2.0
    optimizer.lr = 8.0
    schedules = [extensions.WarmupShift("lr", 4.0, 1, 6.0)]
    schedules.append(extensions.ExponentialShift("lr", 0.5))
    for shift, serializer in zip(schedules, saved):
        shift.serialize(NpzDeserializer(serializer.target))
    for shift in schedules:
        shift.initialize(trainer)
    assert optimizer.lr == 2.0
    for shift in schedules:
        shift(trainer)
    assert optimizer.lr == 1.0


def test_a_load_that_fails_changes_no_schedule():
    class Parts:
        def __init__(self, *parts):
            self.parts = parts

        def serialize(self, serializer):
            for i, part in enumerate(self.parts):
                part.serialize(serializer[str(i)])

    saved = DictionarySerializer()
    shift = extensions.ExponentialShift("lr", 0.5)
    history(shift, 3)
    shift.serialize(saved["0"])
    fresh = extensions.ExponentialShift("lr", 0.5)
    with pytest.raises(KeyError):
        NpzDeserializer(saved.target).load(Parts(fresh, fresh))
    assert history(fresh, 1) == [2.0, 1.0]


def test_files_without_the_value_can_be_loaded():
    shift = extensions.ExponentialShift("lr", 0.5)
    shift.serialize(NpzDeserializer({"_t": numpy.array(3)}))
    assert history(shift, 1) == [0.25, 0.125]


def test_warmup_stops_changing_the_rate():
    shift = extensions.WarmupShift("lr", 0.1, 2, 1.0)
    optimizer = types.SimpleNamespace(lr=2.0)
    trainer = trainer_of(optimizer)
    shift.initialize(trainer)
    for _ in range(2):
        shift(trainer)
    optimizer.lr = 7.0
    shift(trainer)
    assert optimizer.lr == 7.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: extensions.ExponentialShift("lr", -0.5),
        lambda: extensions.InverseShift("lr", -0.5, 1),
    ],
)
def test_refusals(make):
    with pytest.raises(ValueError, match="expected"):
        make()
