"""Examples of any kind, pickled one after the other into one file."""

from __future__ import annotations

import pickle
from multiprocessing import util
from typing import IO, Any

from renga.core.types import ArrayLike, Path
from renga.dataset import DatasetMixin
from renga.serializers.files import FileFormatError, name_of
from renga.utils.fork_safe_lock import ForkSafeLock


class PickleDatasetWriter:
    """Appends objects to a file that ``PickleDataset`` reads."""

    def __init__(
        self, writer: IO[bytes], protocol: int = pickle.HIGHEST_PROTOCOL
    ) -> None:
        self._writer = writer
        self._protocol = protocol

    def write(self, x: ArrayLike) -> None:
        """Append ``x``."""
        pickle.dump(x, self._writer, self._protocol)

    def flush(self) -> None:
        """Flushes everything written so far."""
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()

    def __enter__(self) -> PickleDatasetWriter:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.close()


class PickleDataset(DatasetMixin):
    """The objects of a file of ``PickleDatasetWriter``, read on demand.

    Only load files that you trust: pickles can run code. Processes that
    ``multiprocessing`` forks call ``reader.after_fork()``, if there is that. A reader
    without a name, such as ``BytesIO``, is pickled with the data set.

    Raises:
        FileFormatError: the last object is incomplete.
    """

    def __init__(self, reader: IO[bytes]) -> None:
        self._reader = reader
        self._register()
        self._lock = ForkSafeLock()
        self._starts = []
        reader.seek(0)
        while True:
            start = reader.tell()
            if not reader.read(1):
                break
            reader.seek(start)
            try:
                pickle.load(reader)
            except (EOFError, pickle.UnpicklingError) as error:
                raise FileFormatError(
                    f"PickleDataset: expected a complete pickle at byte {start} of "
                    f"{name_of(reader)!r}: {error}"
                ) from error
            self._starts.append(start)

    def _register(self) -> None:
        util.register_after_fork(self, PickleDataset._after_fork)

    def _after_fork(self) -> None:
        getattr(self._reader, "after_fork", lambda: None)()

    def __len__(self) -> int:
        return len(self._starts)

    def get_example(self, index: int) -> object:
        with self._lock:
            self._reader.seek(self._starts[index])
            return pickle.load(self._reader)

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()

    def __enter__(self) -> PickleDataset:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        name = getattr(self._reader, "name", None)
        source = {"reader": self._reader} if name is None else {"name": name}
        return {**source, "starts": self._starts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._reader = state.get("reader") or open(state["name"], "rb")
        self._register()
        self._starts = state["starts"]
        self._lock = ForkSafeLock()


def open_pickle_dataset(path: Path) -> PickleDataset:
    """The data set in the file at ``path``."""
    file = open(path, "rb")
    try:
        return PickleDataset(file)
    except BaseException:
        file.close()
        raise


def open_pickle_dataset_writer(
    path: Path, protocol: int = pickle.HIGHEST_PROTOCOL
) -> PickleDatasetWriter:
    """A writer of a new file at ``path``."""
    return PickleDatasetWriter(open(path, "wb"), protocol)
