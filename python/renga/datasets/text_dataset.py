"""Lines of text files, read when they are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable

from renga.dataset import DatasetMixin


class TextDataset(DatasetMixin):
    """The lines of a text file, or tuples of the lines of several.

    Only where lines begin is kept in memory. ``encoding``, ``errors`` and ``newline``
    are those of ``open``, one for all files or one for each; ``filter_func`` is called
    with the lines of an example and says whether to keep it.

    Raises: ValueError where the files have different numbers of lines.
    """

    def __init__(
        self,
        paths: str | Sequence[str],
        encoding: str | Sequence[str | None] | None = None,
        errors: str | Sequence[str | None] | None = None,
        newline: str | Sequence[str | None] | None = None,
        filter_func: Callable[..., bool] | None = None,
    ) -> None:
        if isinstance(paths, str):
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
        starts = [_line_starts(file) for file in self._files]
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

    def get_example(self, idx: int) -> Any:
        """The line, with its end; a tuple of lines where there are several files."""
        lines = self._lines(idx)
        return lines if len(lines) > 1 else lines[0]

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
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
        self._files = [open(**options) for options in self._options]

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
    starts = [file.tell()]
    while file.readline():
        starts.append(file.tell())
    return starts[:-1]
