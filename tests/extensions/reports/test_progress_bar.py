"""ProgressBar: on a terminal, in a file, and together with a table."""

import contextlib
import gc
import os
import pty
import re
import subprocess
import sys
import textwrap
import types

import pytest

from renga import extensions
from renga.testing import get_trainer_with_mock_updater


@pytest.fixture(autouse=True)
def capable(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


class Terminal:
    """A pseudo-terminal, and the screen that its input produces."""

    def __init__(self):
        self._outside, inside = pty.openpty()
        self.file = os.fdopen(inside, "w")

    def received(self):
        """Everything that was written."""
        self.file.close()
        pieces = []
        with contextlib.suppress(OSError):  # that is how a terminal ends
            while True:
                pieces.append(os.read(self._outside, 4096))
        os.close(self._outside)
        return b"".join(pieces).decode()

    def screen(self):
        """Lines of a screen that interprets the control sequences of the bars."""
        lines, row, column = {}, 0, 0
        for token in re.findall(r"\x1b\[[0-9]*[A-Z]|.|\n", self.received(), re.S):
            if token == "\r":
                column = 0
            elif token == "\n":
                row, column = row + 1, 0
            elif token == "\x1b[A":
                row -= 1
            elif token == "\x1b[K":
                lines[row] = lines.get(row, "")[:column]
            elif token == "\x1b[J":
                lines = {i: line for i, line in lines.items() if i <= row}
                lines[row] = lines.get(row, "")[:column]
            else:
                assert len(token) == 1, f"unknown sequence {token!r}"
                line = lines.get(row, "").ljust(column)
                lines[row] = line[:column] + token + line[column + 1 :]
                column += 1
        return [lines.get(i, "").rstrip() for i in range(max(lines, default=-1) + 1)]


def run(bar, *others, stop=(8, "iteration"), communicator=None, per_epoch=4):
    trainer = get_trainer_with_mock_updater(stop, iter_per_epoch=per_epoch)
    optimizer = types.SimpleNamespace(communicator=communicator)
    trainer.updater.get_all_optimizers()["main"] = optimizer
    for extension in others:
        trainer.extend(extension)
    trainer.extend(bar)
    trainer.run()


def capture(stop_at, *others, **kwargs):
    """The screen just after the bar was drawn at iteration ``stop_at``."""
    gc.collect()  # bars of other trainers, whose mocks refer to them, take lines
    terminal = Terminal()

    class Enough(Exception):
        pass

    def stop(trainer):
        if trainer.updater.iteration == stop_at:
            raise Enough

    bar = extensions.ProgressBar(update_interval=2, bar_length=20, out=terminal.file)
    bar.finalize = lambda: None  # leaves the screen as it is
    stop.priority = -1
    with pytest.raises(Enough):
        others = [make(terminal.file) for make in others]
        trainer = get_trainer_with_mock_updater(iter_per_epoch=4, **kwargs)
        for extension in [*others, bar, stop]:
            trainer.extend(extension)
        trainer.run(show_loop_exception_msg=False)
    return terminal.screen()


def test_bars_on_a_terminal():
    total, epoch, status = capture(6, stop_trigger=(8, "iteration"))
    assert re.fullmatch(r" +total \[(█{15}) {5}\] 75.00%", total)
    assert re.fullmatch(r"this epoch \[(█{10}) {10}\] 50.00%", epoch)
    pattern = r"6 iter, 1 epoch / 8 iterations, [\d.e+]+ iters/sec, 0:00:00 left"
    assert re.fullmatch(pattern, status)


def test_bars_leave_no_thread():
    # A daemon thread crashes an interpreter that ends beside it now and then.
    program = """
        import threading
        from renga.extensions.reports.terminal import bar_class
        with bar_class()(total=2) as bar:
            bar.update()
            print([thread.name for thread in threading.enumerate()])
        """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "['MainThread']\n"


def test_bars_are_cleared_at_the_end():
    terminal = Terminal()
    run(extensions.ProgressBar(update_interval=1, out=terminal.file))
    assert not any(terminal.screen())


def test_a_table_is_printed_above_the_bars():
    screen = capture(
        6,
        lambda out: extensions.LogReport(),
        lambda out: extensions.PrintReport(["epoch", "iteration"], out=out),
        stop_trigger=(2, "epoch"),
    )
    assert screen[:2] == ["epoch       iteration", "1           4"]
    assert "total" in screen[2] and "75.00%" in screen[2]
    assert "6 iter, 1 epoch / 2 epochs" in screen[4]
    assert len(screen) == 5


def test_lines_in_a_file(tmp_path):
    with open(tmp_path / "out", "w") as out:
        run(extensions.ProgressBar((16, "iteration"), update_interval=3, out=out))
    first, second = (tmp_path / "out").read_text().splitlines()
    assert first.startswith("total 18.75%, this epoch 75.00%, 3 iter, 0 epoch / 16 it")
    assert second.startswith("total 37.50%, this epoch 50.00%, 6 iter, 1 epoch / 16 i")
    assert second.endswith(" left")


def test_the_last_batch_may_begin_the_next_epoch(capsys):
    """Four batches of 0.3 epochs: training ends at 1.2 epochs, at 100 % of one."""
    run(extensions.ProgressBar(update_interval=2), stop=(1, "epoch"), per_epoch=10 / 3)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["total 60.00%", "total 100.00%"]


def test_without_a_training_length(capsys):
    run(
        extensions.ProgressBar(update_interval=5),
        stop=lambda trainer: trainer.updater.iteration == 8,
    )
    pattern = r"this epoch 25.00%, 5 iter, 1 epoch, [\d.e+]+ iters/sec\n"
    assert re.fullmatch(pattern, capsys.readouterr().out)


@pytest.mark.parametrize("rank, lines", [(0, 8), (1, 0)])
def test_only_rank_0_prints(capsys, rank, lines):
    communicator = types.SimpleNamespace(rank=rank)
    run(extensions.ProgressBar(update_interval=1), communicator=communicator)
    assert len(capsys.readouterr().out.splitlines()) == lines


def test_remaining_time_is_what_is_left_at_the_speed_so_far(monkeypatch, capsys):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(
        sys.modules["renga.extensions.reports.progress_bar"].time,
        "perf_counter",
        lambda: next(clock),
    )
    bar = extensions.ProgressBar((100, "epoch"), update_interval=4)
    trainer = get_trainer_with_mock_updater(iter_per_epoch=4)
    bar.initialize(trainer)
    for _ in range(4):
        trainer.updater.update()
    bar(trainer)  # one epoch of 100 in 10 seconds
    assert capsys.readouterr().out.endswith("0.4 iters/sec, 0:16:30 left\n")


def test_a_terminal_without_a_size():
    program = """
        from renga import extensions
        from renga.testing import get_trainer_with_mock_updater
        bar = extensions.ProgressBar(update_interval=1)
        get_trainer_with_mock_updater(extensions=[bar]).run()
    """
    terminal = Terminal()
    command = [sys.executable, "-c", textwrap.dedent(program)]
    subprocess.run(command, stdout=terminal.file, check=True)
    assert "100.00%" in terminal.received()


def test_lines_on_a_terminal_that_cannot_move_its_cursor(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    run(extensions.ProgressBar(update_interval=4, out=terminal.file))
    lines = terminal.received().splitlines()
    assert len(lines) == 2 and lines[0].startswith("total 50.00%, this epoch 0.00%, 4")
    assert not any("\x1b" in line for line in lines)
