"""What the folder of a run has."""

from __future__ import annotations

import csv
import dataclasses
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy

from renga.core.types import Path

_PICTURES = {".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp"}
_BINS = 40
Log = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Run:
    """The files of a run, or of its repetitions in folders of its own.

    Args:
        folder: of the run.
        folders: those that have a log, one for each repetition.
    """

    folder: pathlib.Path
    folders: tuple[pathlib.Path, ...]

    @property
    def name(self) -> str:
        """That of the folder."""
        return self.folder.name

    def place(self, path: pathlib.Path) -> str:
        """The name of one of the files, with its folders from that of the run on."""
        return path.relative_to(self.folder.parent).as_posix()

    @property
    def logs(self) -> list[Log]:
        """The entries of ``LogReport``, for each repetition."""
        return [json.loads((folder / "log").read_text()) for folder in self.folders]

    @property
    def pictures(self) -> list[pathlib.Path]:
        """Files of pictures, in the order of their names."""
        return [path for path in self._files() if path.suffix.lower() in _PICTURES]

    @property
    def tables(self) -> Iterator[tuple[pathlib.Path, list[list[str]]]]:
        """Rows of files of comma-separated values."""
        for path in self._files():
            if path.suffix == ".csv":
                with path.open(newline="") as file:
                    yield path, list(csv.reader(file))

    @property
    def histograms(self) -> dict[str, tuple[list[float], list[int]]]:
        """By name of an array of the newest npz file, centres of bins and counts."""
        files = [path for path in self._files() if path.suffix == ".npz"]
        if not files:
            return {}
        found = {}
        with numpy.load(max(files, key=lambda path: path.stat().st_mtime)) as arrays:
            for name in arrays:
                x = arrays[name]
                x = x[numpy.isfinite(x)] if x.dtype.kind == "f" else x[:0]
                if x.size > 1:
                    counts, edges = numpy.histogram(x, _BINS)
                    centres = (edges[:-1] + edges[1:]) / 2
                    found[name] = (centres.tolist(), counts.tolist())
        return found

    @property
    def traces(self) -> Iterator[tuple[pathlib.Path, list[dict[str, Any]]]]:
        """Events of traces, which profilers and planners write."""
        for path in self._files():
            if path.suffix == ".json":
                content = json.loads(path.read_text())
                if isinstance(content, dict) and "traceEvents" in content:
                    yield path, content["traceEvents"]

    @property
    def about(self) -> dict[str, dict[str, str]]:
        """Arguments and environment, as the extension ``HtmlReport`` wrote them."""
        path = self.folders[0] / "about.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def _files(self) -> list[pathlib.Path]:
        return [p for folder in self.folders for p in sorted(folder.iterdir())]


def read(folder: Path) -> Run:
    """The run in a folder.

    Raises:
        FileNotFoundError: neither the folder nor one of its folders has a log.
    """
    path = pathlib.Path(folder).resolve()
    logs = [path / "log"] if (path / "log").exists() else sorted(path.glob("*/log"))
    if not logs:
        raise FileNotFoundError(
            f"report: expected a file log of LogReport in {path} or in its folders"
        )
    return Run(path, tuple(log.parent for log in logs))
