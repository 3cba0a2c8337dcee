"""The training loop: order, names, errors, what is saved."""

import functools

import numpy
import pytest

from renga import reporter
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.testing import get_trainer_with_mock_updater
from renga.training import (
    PRIORITY_EDITOR,
    PRIORITY_READER,
    PRIORITY_WRITER,
    Extension,
    Trainer,
    Updater,
    extensions,
    make_extension,
)


class Recorder(Extension):
    """Records every call in a list shared with other extensions."""

    def __init__(self, label, notes):
        self.label = label
        self.notes = notes

    def __call__(self, trainer):
        self.notes.append((self.label, trainer.updater.iteration))

    def initialize(self, trainer):
        self.notes.append((self.label, "initialize"))

    def on_error(self, trainer, exc, tb):
        self.notes.append((self.label, f"on_error {exc}"))
        assert tb is exc.__traceback__

    def finalize(self):
        self.notes.append((self.label, "finalize"))


class Failing(Updater):
    """Raises at the second update."""

    iteration = 0

    def __init__(self, notes=None):
        self.notes = notes

    def get_all_optimizers(self):
        return {}

    def update(self):
        if self.iteration == 1:
            raise ValueError("boom")
        self.iteration += 1

    def finalize(self):
        if self.notes is not None:
            self.notes.append(("updater", "finalize"))


def test_order_of_calls():
    notes = []
    trainer = get_trainer_with_mock_updater((2, "iteration"))
    trainer.extend(Recorder("r", notes))
    trainer.extend(Recorder("w", notes), priority=PRIORITY_WRITER)
    trainer.extend(Recorder("r2", notes), trigger=(2, "iteration"))
    trainer.extend(Recorder("e", notes), priority=PRIORITY_EDITOR)
    trainer.run()
    labels = ["w", "e", "r", "r2"]
    assert notes == [
        *((label, "initialize") for label in labels),
        *((label, 1) for label in labels[:3]),
        *((label, 2) for label in labels),
        *((label, "finalize") for label in labels),
    ]
    assert PRIORITY_WRITER > PRIORITY_EDITOR > PRIORITY_READER


def test_call_before_training():
    notes = []
    trainer = get_trainer_with_mock_updater((1, "iteration"))
    trainer.extend(
        lambda t: notes.append(t.is_before_training), call_before_training=True
    )
    trainer.run()
    assert notes == [True, False]


def test_what_is_reported_before_training_is_an_observation():
    @make_extension(trigger=(2, "iteration"), priority=PRIORITY_WRITER)
    def evaluate(trainer):
        reporter.report({"validation": 10 + trainer.updater.iteration})

    trainer = get_trainer_with_mock_updater((2, "iteration"), iter_per_epoch=2)
    for extension in (evaluate, extensions.LogReport()):
        trainer.extend(extension, call_before_training=True)
    trainer.run()
    log = trainer.get_extension("LogReport").log
    assert [(e["iteration"], e["validation"]) for e in log] == [(0, 10), (2, 12)]


def test_a_resumed_run_is_asked_to_stop_by_what_it_observed():
    def trainer_of(stop_iteration):
        def stops(trainer):
            found = trainer.observation.get("loss") == 1
            return found or trainer.updater.iteration == stop_iteration

        return Trainer(get_trainer_with_mock_updater().updater, stops)

    saved = DictionarySerializer()

    @make_extension(priority=PRIORITY_WRITER)
    def report_and_save(trainer):
        reporter.report({"loss": 1})
        trainer.serialize(saved)

    trainer = trainer_of(3)
    trainer.extend(report_and_save, trigger=(1, "iteration"))
    trainer.run()
    resumed = trainer_of(3)
    resumed.extend(lambda t: None, name="own", call_before_training=True)
    resumed.serialize(NpzDeserializer(saved.target))
    resumed.run()
    assert resumed.updater.iteration == trainer.updater.iteration == 1
    assert resumed.observation == {"loss": 1}


def test_observation_is_new_at_each_iteration():
    seen = []
    trainer = get_trainer_with_mock_updater((3, "iteration"))

    @make_extension(priority=PRIORITY_WRITER)
    def write(trainer):
        reporter.report({f"x{trainer.updater.iteration}": 1})

    trainer.extend(write)
    trainer.extend(lambda t: seen.append(dict(t.observation)))
    trainer.run()
    assert seen == [{"x1": 1}, {"x2": 1}, {"x3": 1}]


def test_names():
    trainer = get_trainer_with_mock_updater()
    first, second, third = (Recorder("", []) for _ in range(3))
    third.name = "own"
    trainer.extend(first)
    trainer.extend(second)
    trainer.extend(third)
    trainer.extend(make_extension(default_name="made")(lambda t: None))
    trainer.extend(lambda t: None, name="given")
    trainer.extend(lambda t: None, name="given")
    trainer.extend([].append)
    assert trainer.get_extension("Recorder") is first
    assert trainer.get_extension("Recorder_1") is second and second.name == "Recorder_1"
    assert trainer.get_extension("own") is third
    for name in ("made", "given", "given_1", "append"):
        assert trainer.get_extension(name) is not None
    with pytest.raises(ValueError, match="unknown"):
        trainer.get_extension("unknown")


def test_extensions_argument():
    first = Recorder("", [])
    trainer = get_trainer_with_mock_updater(extensions=[first])
    assert trainer.get_extension("Recorder") is first


def test_make_extension():
    calls = []
    extension = make_extension(
        trigger=(2, "iteration"),
        priority=7,
        initializer=lambda t: calls.append("initialize"),
        finalizer=lambda: calls.append("finalize"),
    )(lambda t: calls.append(t.updater.iteration))
    trainer = get_trainer_with_mock_updater((5, "iteration"))
    trainer.extend(extension)
    trainer.run()
    assert calls == ["initialize", 2, 4, "finalize"]
    assert extension.priority == 7


@pytest.mark.parametrize(
    "extend, error",
    [
        (lambda t: t.extend(len, name="training"), ValueError),
        (lambda t: t.extend(len, prioriti=1), TypeError),
        (lambda t: t.extend(len, invoke_before_training=True), ValueError),
        (lambda t: t.extend(functools.partial(len, 1)), TypeError),
        (lambda t: make_extension(triger=1), TypeError),
        (lambda t: make_extension(invoke_before_training=True), ValueError),
        (lambda t: Extension()(t), NotImplementedError),
    ],
)
def test_refusals(extend, error):
    with pytest.raises(error):
        extend(get_trainer_with_mock_updater())


def test_elapsed_time():
    trainer = get_trainer_with_mock_updater((3, "iteration"))
    with pytest.raises(RuntimeError, match="not been started"):
        trainer.elapsed_time  # noqa: B018
    times = []
    trainer.extend(lambda t: times.append(t.elapsed_time))
    trainer.run()
    assert 0 < times[0] < times[1] < times[2] < trainer.elapsed_time
    assert trainer.elapsed_time == trainer.elapsed_time
    with pytest.raises(RuntimeError, match="twice"):
        trainer.run()


@pytest.mark.parametrize("show", [True, False])
def test_error_in_the_loop(tmp_path, capsys, show):
    notes = []
    trainer = Trainer(Failing(notes), (9, "iteration"), tmp_path)
    trainer.extend(Recorder("a", notes), trigger=(9, "iteration"))
    with pytest.raises(ValueError, match="boom"):
        trainer.run(show_loop_exception_msg=show)
    assert notes == [
        ("a", "initialize"),
        ("a", "on_error boom"),
        ("a", "finalize"),
        ("updater", "finalize"),
    ]
    printed = capsys.readouterr().err
    assert ("main training loop: boom" in printed) == show
    assert ("in update" in printed) == show


def test_errors_in_handlers_and_finalizers(tmp_path, capsys):
    class Clumsy(Extension):
        def __call__(self, trainer):
            pass

        def on_error(self, trainer, exc, tb):
            raise KeyError("clumsy")

        def finalize(self):
            raise RuntimeError("also clumsy")

    notes = []
    trainer = Trainer(Failing(notes), (9, "iteration"), tmp_path)
    trainer.extend(Clumsy())
    trainer.extend(Recorder("a", notes))
    with pytest.raises(RuntimeError, match="also clumsy") as caught:
        trainer.run(show_loop_exception_msg=False)
    assert str(caught.value.__context__) == "boom"
    assert "error handler: 'clumsy'" in capsys.readouterr().err
    assert notes[-3:] == [
        ("a", "on_error boom"),
        ("a", "finalize"),
        ("updater", "finalize"),
    ]


def test_interrupt_finalizes(tmp_path):
    notes = []

    def interrupt(trainer):
        raise KeyboardInterrupt

    trainer = Trainer(Failing(notes), (9, "iteration"), tmp_path)
    trainer.extend(interrupt)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert notes == [("updater", "finalize")]


def test_stop_trigger_may_be_a_function():
    trainer = get_trainer_with_mock_updater(lambda t: t.updater.iteration >= 4)
    trainer.run()
    assert trainer.updater.iteration == 4


def test_serialize_names_and_restores():
    def make():
        return get_trainer_with_mock_updater(
            (3, "iteration"), extensions=[extensions.LogReport()]
        )

    trainer = make()
    saved = DictionarySerializer()
    trainer.extend(lambda t: t.serialize(saved), trigger=(3, "iteration"))
    trainer.run()
    names = {
        "updater/iteration",
        "stop_trigger/previous_iteration",
        "extensions/LogReport/_log",
        "extension_triggers/LogReport/previous_iteration",
        "_snapshot_elapsed_time",
    }
    assert names <= saved.target.keys()
    resumed = make()
    resumed.serialize(NpzDeserializer(saved.target))
    assert resumed.updater.iteration == 3
    resumed.run()
    assert resumed.updater.iteration == 3
    assert resumed.elapsed_time > saved.target["_snapshot_elapsed_time"]


def test_random_state_is_part_of_the_trainer():
    trainer = get_trainer_with_mock_updater((1, "iteration"))
    trainer.run()
    numpy.random.seed(3)
    numpy.random.normal()  # leaves one buffered number in the generator
    saved = DictionarySerializer()
    trainer.serialize(saved)
    expected = numpy.random.normal(size=5), numpy.random.randint(9, size=5)
    numpy.random.seed(4)
    trainer.serialize(NpzDeserializer(saved.target))
    drawn = numpy.random.normal(size=5), numpy.random.randint(9, size=5)
    numpy.testing.assert_array_equal(drawn, expected)


def test_a_file_without_random_state_does_not_change_it():
    trainer = get_trainer_with_mock_updater((1, "iteration"))
    trainer.run()
    saved = DictionarySerializer()
    trainer.serialize(saved)
    del saved.target["numpy_random_state"]
    numpy.random.seed(5)
    expected = numpy.random.RandomState(5).rand(3)
    trainer.serialize(NpzDeserializer(saved.target))
    numpy.testing.assert_array_equal(numpy.random.rand(3), expected)
