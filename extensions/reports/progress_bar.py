"""An extension that displays the progress of training."""

from __future__ import annotations

import collections
import datetime
import shutil
import sys
import time
from typing import Any, TextIO

from renga.extensions.reports.terminal import (
    bar_class,
    can_draw,
    in_notebook,
    is_first_rank,
)
from renga.training import extension
from renga.training.trainer import Trainer


class ProgressBar(extension.Extension):
    """Displays bars on a terminal or in a notebook; prints lines to any other file.

    A notebook needs ipywidgets for bars. A terminal that cannot move its cursor
    (``TERM=dumb``) gets lines, too. In a multi-node run only rank 0 prints.

    Args:
        training_length: (length, unit); by default that of the stop trigger.
        update_interval: iterations between updates.
        bar_length: width of the bars in characters.
        out: a text file; the standard output unless given.
    """

    def __init__(
        self,
        training_length: tuple[float, str] | None = None,
        update_interval: int = 100,
        bar_length: int = 50,
        out: TextIO | None = None,
    ) -> None:
        self._training_length = training_length
        self._update_interval = update_interval
        self._bar_length = bar_length
        self._out = out
        self._bars: list[Any] = []
        self._speaks = True
        self._recent: collections.deque = collections.deque(maxlen=100)

    def initialize(self, trainer: Trainer) -> None:
        """Determines the length of training."""
        self._speaks = is_first_rank(trainer)
        length = getattr(trainer.stop_trigger, "get_training_length", None)
        if self._training_length is None and length is not None:
            self._training_length = length()
        self._recent.append((time.perf_counter(), *_position(trainer)))

    def __call__(self, trainer: Trainer) -> None:
        """Displays the progress at every ``update_interval``-th iteration."""
        if not self._speaks or trainer.updater.iteration % self._update_interval:
            return
        self._recent.append((time.perf_counter(), *_position(trainer)))
        fractions = {"this epoch": trainer.updater.epoch_detail % 1}
        if self._training_length is not None:
            fractions = {"total": self._fraction_done(trainer), **fractions}
        out = self._out or sys.stdout
        if can_draw(out):
            self._draw(fractions, self._status(trainer), out)
        else:
            parts = [f"{name} {fraction:.2%}" for name, fraction in fractions.items()]
            print(", ".join([*parts, self._status(trainer)]), file=out, flush=True)

    def _fraction_done(self, trainer: Trainer) -> float:
        assert self._training_length is not None
        length, unit = self._training_length
        iteration, epoch_detail = _position(trainer)
        return min((epoch_detail if unit == "epoch" else iteration) / length, 1.0)

    def _status(self, trainer: Trainer) -> str:
        iteration, epoch_detail = _position(trainer)
        then, first_iteration, first_epoch = self._recent[0]
        seconds = max(self._recent[-1][0] - then, 1e-9)
        text = f"{iteration} iter, {trainer.updater.epoch} epoch"
        if self._training_length is None:
            return f"{text}, {(iteration - first_iteration) / seconds:.5g} iters/sec"
        length, unit = self._training_length
        if unit == "epoch":
            done, first = epoch_detail, first_epoch
        else:
            done, first = float(iteration), first_iteration
        left = max(length - done, 0) * seconds / max(done - first, 1e-9)
        speed = (iteration - first_iteration) / seconds
        remaining = datetime.timedelta(seconds=round(left))
        return f"{text} / {length} {unit}s, {speed:.5g} iters/sec, {remaining} left"

    def _draw(self, fractions: dict[str, float], status: str, out: TextIO) -> None:
        if not self._bars:
            self._bars = _new_bars(list(fractions), self._bar_length, out)
        for bar, fraction in zip(self._bars, fractions.values()):
            bar.n = fraction
        self._bars[-1].set_description_str(status, refresh=False)
        for bar in self._bars:
            bar.refresh()

    def finalize(self) -> None:
        """Clears the bars."""
        for bar in reversed(self._bars):
            bar.close()
        self._bars = []


def _position(trainer: Trainer) -> tuple[int, float]:
    return trainer.updater.iteration, trainer.updater.epoch_detail


def _new_bars(names: list[str], length: int, out: TextIO) -> list[Any]:
    """A bar for each name, and below them one that is only text."""
    new_bar = bar_class()
    if in_notebook():
        widgets = [new_bar(desc=name, total=1.0, leave=False) for name in names]
        for widget in widgets:
            widget.bar_format = "{desc}{bar}{percentage:.0f}%"
        return [*widgets, new_bar(total=1.0, bar_format="{desc}", leave=False)]
    # tqdm prints nothing on a terminal that reports 0 columns.
    columns, lines = shutil.get_terminal_size()
    form = f"{{desc}} [{{bar:{length}}}] {{percentage:.2f}}%"
    bars = [(f"{name:>10}", form) for name in names] + [("", "{desc}")]
    return [
        new_bar(
            desc=desc,
            total=1.0,
            bar_format=form,
            file=out,
            leave=False,
            ncols=columns,
            nrows=lines,
        )
        for desc, form in bars
    ]
