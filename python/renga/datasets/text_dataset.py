"""Lines of text files, read on demand."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Sequence
from typing import Any, Callable

from renga.core.types import Path
from renga.dataset import DatasetMixin
from renga.serializers.files import parsing


class TextDataset(DatasetMixin):
    """The lines of a text file, or tuples of the lines of several.

    Only the offsets of lines are kept in memory. ``encoding``, ``errors`` and
    ``newline`` are those of ``open``, one for all files or one for each;
    ``filter_func`` is called with the lines of an example and returns whether to keep
    it.

    Raises:
        ValueError: the files have different numbers of lines.
        FileFormatError: a file is not in the encoding.
    """

    def __init__(
        self,
        paths: Path | Sequence[Path],
        encoding: str | Sequence[str | None] | None = None,
        errors: str | Sequence[str | None] | None = None,
        newline: str | Sequence[str | None] | None = None,
        filter_func: Callable[..., bool] | None = None,
    ) -> None:
        if isinstance(paths, (str, os.PathLike)):
            paths = [paths]
        if not paths:
            raise ValueError("TextDataset: expected at least one path")
        self._options = [
            {"file": path, "encoding": e, "errors": s, "newline": n}
            for path, e, s, n in zip(
                paths,
                _each(encoding, len(paths)),
                _each(errors, len(paths)),
                _each(newline, len(paths)),
            )
        ]
        self._open()
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            starts = [_line_starts(file) for file in self._files]
            undo.pop_all()
        lengths = [len(each) for each in starts]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"TextDataset: expected files of one length, got {lengths} lines"
            )
        self._starts = list(zip(*starts))
        if filter_func is not None:
            kept = [filter_func(*self._lines(i)) for i in range(lengths[0])]
            self._starts = list(itertools.compress(self._starts, kept))

    def __len__(self) -> int:
        return len(self._starts)

    def get_example(self, idx: int) -> tuple[str, ...] | str:
        """The line, with its end; a tuple of lines where there are several files."""
        lines = self._lines(idx)
        return lines if len(lines) > 1 else lines[0]

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close()

    def __del__(self) -> None:
        for file in getattr(self, "_files", ()):  # none if they could not be opened
            file.close()

    def __enter__(self) -> TextDataset:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_starts": self._starts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def _open(self) -> None:
        with contextlib.ExitStack() as opened:
            self._files = [
                opened.enter_context(open(**options)) for options in self._options
            ]
            opened.pop_all()

    def _lines(self, i: int) -> tuple[str, ...]:
        lines = []
        for file, start in zip(self._files, self._starts[i]):
            file.seek(start)
            lines.append(file.readline())
        return tuple(lines)


def _each(value: Any, count: int) -> Sequence[Any]:
    if value is None or isinstance(value, str):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"TextDataset: expected one setting for each of {count} files, got "
            f"{list(value)}"
        )
    return value


def _line_starts(file: Any) -> list[int]:
    with parsing(f"{file.name}: expected text in {file.encoding}", file):
        starts = [file.tell()]
        while file.readline():
            starts.append(file.tell())
    return starts[:-1]
