"""An extension that prints a table of the log."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

from renga.core.serializer import AbstractSerializer
from renga.extensions.reports.log_report import LogReport
from renga.extensions.reports.terminal import (
    can_draw,
    in_notebook,
    is_first_rank,
    print_above_bars,
)
from renga.training import extension
from renga.training.trainer import Trainer
from renga.utils.table import aligned, html_table

_ERASE_BELOW = "\033[J"  # for terminals


class PrintReport(extension.Extension):
    """Prints each new entry of a LogReport as a row of a table.

    In a notebook it is a table of HTML; on a terminal, what stands below the row is
    erased, as it may be a bar of the user's. In a multi-node run only rank 0 prints.

    Args:
        entries: keys of the log, one per column.
        log_report: name of the LogReport in the trainer, or a LogReport, which this
            extension then calls.
        out: a text file; the standard output unless given.
    """

    def __init__(
        self,
        entries: Sequence[str] | str,
        log_report: str | LogReport = "LogReport",
        out: TextIO | None = None,
    ) -> None:
        self._entries = [entries] if isinstance(entries, str) else list(entries)
        self._widths = [max(10, len(entry)) for entry in self._entries]
        self._log_report = log_report
        self._out = out
        self._printed = 0
        self._rows: list[list[str]] = []
        self._display: Any = None  # of a notebook
        self._missing = set(self._entries)
        self._speaks = True

    def initialize(self, trainer: Trainer) -> None:
        """Prints the names of the columns."""
        if isinstance(self._log_report, str):
            _find_log_report(trainer, self._log_report)
        self._speaks = is_first_rank(trainer)
        if self._speaks and self._out is None and in_notebook():
            self._display = _display(self._mime_bundle())
        else:
            self._print(self._entries)

    def __call__(self, trainer: Trainer) -> None:
        """Prints the new entries of the log."""
        log_report: Any = self._log_report
        if isinstance(log_report, str):
            log_report = _find_log_report(trainer, log_report)
        else:
            log_report(trainer)
        for entry in log_report.log[self._printed :]:
            self._missing -= entry.keys()
            self._rows.append([_cell(entry.get(name)) for name in self._entries])
            if self._display is None:
                self._print(self._rows[-1], _ERASE_BELOW)
        if self._display is not None and self._printed < len(log_report.log):
            self._display.update(self._mime_bundle(), raw=True)
        self._printed = len(log_report.log)

    def _mime_bundle(self) -> dict[str, str]:
        lines = aligned([self._entries, *self._rows])
        return {
            "text/plain": "\n".join(lines),
            "text/html": html_table(self._entries, self._rows),
        }

    def finalize(self) -> None:
        """Warns of columns that stayed empty."""
        if self._printed and self._missing and self._speaks:
            missing = [entry for entry in self._entries if entry in self._missing]
            warnings.warn(
                f"PrintReport: nothing was reported as {', '.join(missing)}",
                stacklevel=2,
            )

    def _print(self, cells: Sequence[str], before: str = "") -> None:
        if self._speaks:
            out = self._out or sys.stdout
            if before and can_draw(out):
                out.write(before)
            padded = (c.ljust(w) for c, w in zip(cells, self._widths))
            print_above_bars("  ".join(padded).rstrip(), out)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the LogReport that this extension calls."""
        if isinstance(self._log_report, LogReport):
            self._log_report.serialize(serializer["_log_report"])


def _find_log_report(trainer: Trainer, name: str) -> Any:
    try:
        return trainer.get_extension(name)
    except ValueError as error:
        raise ValueError(
            f"PrintReport: expected a LogReport called {name!r}, whose log it prints: "
            f"call trainer.extend(extensions.LogReport()), too ({error})"
        ) from None


def _display(bundle: dict[str, str]) -> Any:
    from IPython.display import display

    return display(bundle, raw=True, display_id=True)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, numbers.Real) else str(value)
