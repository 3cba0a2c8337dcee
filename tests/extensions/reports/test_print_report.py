"""PrintReport: the table, printing above bars, no output on other ranks."""

import io
import types

import pytest

from renga import extensions
from renga.testing import get_trainer_with_mock_updater
from renga.training import PRIORITY_WRITER


def run(report, log=True, rank=None):
    trainer = get_trainer_with_mock_updater((4, "iteration"), iter_per_epoch=2)
    if rank is not None:
        communicator = types.SimpleNamespace(rank=rank)
        optimizer = types.SimpleNamespace(communicator=communicator)
        trainer.updater.get_all_optimizers()["main"] = optimizer

    def observe(trainer):
        i = trainer.updater.iteration
        trainer.observation["main/loss"] = 1 / i
        if i > 2:
            trainer.observation["accuracy of late"] = i

    trainer.extend(observe, priority=PRIORITY_WRITER)
    if log:
        trainer.extend(
            extensions.LogReport(postprocess=lambda e: e.update(note="so far"))
        )
    trainer.extend(report)
    trainer.run()
    return trainer


COLUMNS = ["epoch", "main/loss", "accuracy of late", "note", "absent"]
TABLE = """\
epoch       main/loss   accuracy of late  note        absent
1           0.75                          so far
2           0.291667    3.5               so far
"""


def test_table():
    out = io.StringIO()
    run(extensions.PrintReport(COLUMNS, out=out))
    assert out.getvalue() == TABLE


def test_rows_erase_what_is_below_them_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    run(extensions.PrintReport(COLUMNS, out=out))
    header, *rows = TABLE.splitlines()
    assert out.getvalue().splitlines() == [header, *("\033[J" + row for row in rows)]


def test_standard_output_is_looked_up_at_each_call(capsys):
    run(extensions.PrintReport(COLUMNS))
    assert capsys.readouterr().out == TABLE


def test_own_log_report():
    out = io.StringIO()
    log_report = extensions.LogReport(["main/loss"], trigger=(1, "iteration"))
    run(extensions.PrintReport(["iteration"], log_report, out), log=False)
    assert out.getvalue().split() == ["iteration", "1", "2", "3", "4"]


@pytest.mark.parametrize("rank, lines", [(0, 3), (1, 0)])
def test_only_rank_0_prints(rank, lines):
    out = io.StringIO()
    trainer = run(extensions.PrintReport(COLUMNS, out=out), rank=rank)
    assert len(out.getvalue().splitlines()) == lines
    assert len(trainer.get_extension("LogReport").log) == 2
