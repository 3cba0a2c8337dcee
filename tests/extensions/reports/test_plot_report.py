"""PlotReport: curves, file, resume, behaviour without matplotlib."""

import importlib.util
import os
import subprocess
import sys

import numpy
import pytest

from renga import extensions
from renga.serializers import DictionarySerializer, NpzDeserializer
from renga.testing import get_trainer_with_mock_updater
from renga.training import PRIORITY_WRITER

LOSSES = numpy.random.RandomState(0).normal(size=12)


def run(report, iterations=12, resume=None):
    trainer = get_trainer_with_mock_updater((iterations, "iteration"), iter_per_epoch=4)

    def observe(trainer):
        i = trainer.updater.iteration
        trainer.observation["loss"] = LOSSES[i - 1]
        trainer.observation["time"] = 10 * i
        if i > 4:
            trainer.observation["late"] = i

    trainer.extend(observe, priority=PRIORITY_WRITER)
    trainer.extend(report)
    if resume is not None:
        trainer.serialize(NpzDeserializer(resume))
    trainer.run()
    return trainer


def curves(axes):
    return {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}


def drawn(*args, **kwargs):
    """The curves after each drawing."""
    history = []

    def look(figure, axes, summary):
        history.append(curves(axes))

    run(extensions.PlotReport(*args, postprocess=look, **kwargs))
    return history


def test_curves_are_the_means():
    first, _, last = drawn(["loss", "late", "absent"])
    means = LOSSES.reshape(3, 4).mean(1)
    assert set(first) == {"loss"} and set(last) == {"loss", "late"}
    numpy.testing.assert_allclose(last["loss"], numpy.c_[[4, 8, 12], means])
    assert last["late"] == [[8, 6.5], [12, 10.5]]


@pytest.mark.parametrize("x_key, xs", [("epoch", [1, 2, 3]), ("time", [25, 65, 105])])
def test_x_axis(x_key, xs):
    last = drawn("loss", x_key)[-1]
    assert [x for x, _ in last["loss"]] == xs


@pytest.mark.parametrize(
    "filename, magic", [("a.png", b"\x89PNG"), ("b.pdf", b"%PDF"), ("c", b"\x89PNG")]
)
def test_file(filename, magic):
    trainer = run(extensions.PlotReport("loss", filename=filename, marker=None))
    with open(os.path.join(trainer.out, filename), "rb") as file:
        assert file.read(4) == magic
    assert os.listdir(trainer.out) == [filename]


def test_old_name_of_filename():
    trainer = run(extensions.PlotReport(["loss"], file_name="old.png", grid=False))
    assert os.listdir(trainer.out) == ["old.png"]


def test_failure_leaves_the_old_plot():
    def fail(figure, axes, summary):
        if len(curves(axes)["x"]) == 2:
            figure.savefig = lambda file, **kwargs: file.write(b"half") and 1 / 0

    report = extensions.PlotReport(["x"], postprocess=fail)
    trainer = get_trainer_with_mock_updater((9, "iteration"), iter_per_epoch=4)
    trainer.extend(lambda t: t.observation.update(x=1), name="x", priority=999)
    trainer.extend(report)
    with pytest.raises(ZeroDivisionError):
        trainer.run(show_loop_exception_msg=False)
    assert os.listdir(trainer.out) == ["plot.png"]
    with open(os.path.join(trainer.out, "plot.png"), "rb") as file:
        assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize("at", [4, 6])
def test_resume(at):
    def final(resume=None):
        seen = []
        report = extensions.PlotReport(
            ["loss", "late"], postprocess=lambda f, a, s: seen.append(curves(a))
        )
        run(report, resume=resume)
        return seen[-1]

    saved = DictionarySerializer()
    run(extensions.PlotReport(["loss", "late"]), at).serialize(saved)
    assert final(saved.target) == final()


def test_without_matplotlib(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "matplotlib" else find_spec(name, *rest),
    )
    with pytest.warns(UserWarning, match="pip install matplotlib"):
        report = extensions.PlotReport(["loss"])
    assert not report.available()
    assert os.listdir(run(report).out) == []


def test_import_is_lazy():
    program = (
        "import sys, renga.extensions as e; e.PlotReport(['x']); e.ProgressBar();"
        "sys.exit(any(m in sys.modules for m in ('matplotlib', 'tqdm')))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
