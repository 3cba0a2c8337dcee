"""An extension that prints a table of the log."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Mapping, Sequence
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

    # Subclasses that were written for Chainer may leave out the constructor, and may
    # print the header and the rows from _log_len on themselves.
    _entries: list[str] = []
    _log_report: str | LogReport = "LogReport"
    _log_len = 0  # entries that were printed
    _header: str | None = None  # until it is printed
    _stream: TextIO | None = None
    _display: Any = None  # of a notebook
    _speaks = True

    def __init__(
        self,
        entries: Sequence[str] | str,
        log_report: str | LogReport = "LogReport",
        out: TextIO | None = None,
    ) -> None:
        self._entries = [entries] if isinstance(entries, str) else list(entries)
        self._log_report = log_report
        self._stream = out
        self._header = self._line(self._entries) + "\n"
        self._rows: list[list[str]] = []
        self._seen: set[str] = set()  # what the printed entries had

    @property
    def _out(self) -> TextIO:
        return sys.stdout if self._stream is None else self._stream

    @_out.setter
    def _out(self, out: TextIO | None) -> None:
        self._stream = out

    def initialize(self, trainer: Trainer) -> None:
        """Looks the LogReport up."""
        if isinstance(self._log_report, str):
            _find_log_report(trainer, self._log_report)
        self._speaks = is_first_rank(trainer)
        if not self._speaks:
            self._header = None

    def __call__(self, trainer: Trainer) -> None:
        """Prints the names of the columns, once, and the new entries of the log."""
        log_report: Any = self._log_report
        if isinstance(log_report, str):
            log_report = _find_log_report(trainer, log_report)
        else:
            log_report(trainer)
        if self._header is not None:
            if self._stream is None and in_notebook():
                self._display = _display(self._mime_bundle())
            else:
                print_above_bars(self._header[:-1], self._out)
            self._header = None
        for entry in log_report.log[self._log_len :]:
            self._seen.update(entry)
            self._print(entry)
            self._log_len += 1

    def _mime_bundle(self) -> dict[str, str]:
        lines = aligned([self._entries, *self._rows])
        return {
            "text/plain": "\n".join(lines),
            "text/html": html_table(self._entries, self._rows),
        }

    def finalize(self) -> None:
        """Warns of columns that stayed empty."""
        seen = getattr(self, "_seen", ())
        missing = [entry for entry in self._entries if entry not in seen]
        if seen and missing and self._speaks:
            warnings.warn(
                f"PrintReport: nothing was reported as {', '.join(missing)}",
                stacklevel=2,
            )

    def _print(self, observation: Mapping[str, Any]) -> None:
        """Prints an entry of the log; subclasses override or call it."""
        self._seen.update(observation)
        cells = [_cell(observation.get(name)) for name in self._entries]
        self._rows.append(cells)
        if self._display is not None:
            self._display.update(self._mime_bundle(), raw=True)
        elif self._speaks:
            out = self._out
            if can_draw(out):
                out.write(_ERASE_BELOW)
            print_above_bars(self._line(cells), out)

    def _line(self, cells: Sequence[str]) -> str:
        widths = (max(10, len(entry)) for entry in self._entries)
        return "  ".join(c.ljust(w) for c, w in zip(cells, widths)).rstrip()

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
