"""An extension that saves the state of training."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, Union

from renga.extensions.snapshots import snapshot_writers
from renga.extensions.snapshots.files import find_snapshots, remove_old_snapshots
from renga.serializers import FileFormatError, npz
from renga.training import extension
from renga.training.trainer import Trainer
from renga.utils import argument

Filename = Union[str, Callable[[Trainer], str]]


def snapshot(
    savefun: Callable[..., object] | None = None,
    filename: Filename = "snapshot_iter_{.updater.iteration}",
    **kwargs: object,
) -> extension.Extension:
    """An extension that saves the trainer, so that training can be resumed exactly.

    A snapshot is written atomically; the previous one is never damaged.

    Args:
        savefun: function of (path, target); ``save_npz`` unless given.
        filename: format of the name, which is given the trainer; or a function of it.
        target: saved instead of the trainer.
        condition: function that returns whether to save when the trigger fires.
        writer: writes the files, instead of ``savefun``.
        snapshot_on_error: whether to save when training raises an exception.
        n_retains: number of snapshots to keep; all unless positive.
        autoload: whether to resume from the newest snapshot, an npz archive, in the
            trainer's directory. Damaged ones are skipped with a warning.

    Raises:
        TypeError: savefun and writer are both given.
        ValueError: autoload or n_retains would have to find files named by a function.
    """
    if "num_retain" in kwargs:
        warnings.warn(
            "snapshot: num_retain is deprecated, use n_retains",
            DeprecationWarning,
            stacklevel=2,
        )
        kwargs["n_retains"] = kwargs.pop("num_retain")
    target, condition, writer, snapshot_on_error, n_retains, autoload = (
        argument.parse_kwargs(
            kwargs,
            ("target", None),
            ("condition", None),
            ("writer", None),
            ("snapshot_on_error", False),
            ("n_retains", -1),
            ("autoload", False),
        )
    )
    if savefun is not None and writer is not None:
        raise TypeError("snapshot: savefun and writer cannot be given together")
    if writer is None:
        writer = snapshot_writers.SimpleWriter(savefun or npz.save_npz)
    return _Snapshot(
        target, condition, writer, filename, snapshot_on_error, n_retains, autoload
    )


def snapshot_object(
    target: object,
    filename: Filename,
    savefun: Callable[..., object] | None = None,
    **kwargs: object,
) -> extension.Extension:
    """An extension that saves an object; the arguments are those of ``snapshot``."""
    return snapshot(savefun, filename, target=target, **kwargs)


class _Snapshot(extension.Extension):
    trigger = (1, "epoch")
    priority = extension.PRIORITY_SNAPSHOT
    saves_trainer = True

    def __init__(
        self,
        target: Any,
        condition: Callable[[], bool] | None,
        writer: Any,
        filename: Filename,
        snapshot_on_error: bool,
        n_retains: int,
        autoload: bool,
    ) -> None:
        if callable(filename) and (autoload or n_retains > 0):
            raise ValueError(
                "snapshot: autoload and n_retains need a filename that is a format, "
                f"got {filename!r}"
            )
        self._target = target
        self.condition = condition
        self.writer = writer
        self.filename = filename
        self._snapshot_on_error = snapshot_on_error
        self.n_retains = n_retains
        self.autoload = autoload

    def initialize(self, trainer: Trainer) -> None:
        """Resumes from the newest snapshot if there is one and ``autoload`` is set."""
        if isinstance(self.filename, str):
            if self.autoload:
                found = find_snapshots(self.filename, trainer.out)
                _load_newest(found, self.target_in(trainer))
            if self.n_retains > 0:
                files = (self.filename, trainer.out, self.n_retains)
                hook = functools.partial(remove_old_snapshots, *files)
                self.writer._add_cleanup_hook(hook)

    def on_error(
        self, trainer: Trainer, exc: Exception, tb: TracebackType | None
    ) -> None:
        """Saves if ``snapshot_on_error`` is set."""
        if self._snapshot_on_error:
            self._save(trainer)

    def __call__(self, trainer: Trainer) -> None:
        """Saves if the condition holds."""
        if self.condition is None or self.condition():
            self._save(trainer)

    def target_in(self, trainer: Trainer) -> Any:
        """What is saved: the trainer, unless another object was given."""
        return trainer if self._target is None else self._target

    def _save(self, trainer: Trainer) -> None:
        serializer = npz.DictionarySerializer()
        serializer.save(self.target_in(trainer))
        if callable(self.filename):
            filename = self.filename(trainer)
        else:
            filename = self.filename.format(trainer)
        state = snapshot_writers.TakenState(serializer.target)
        self.writer(filename, trainer.out, state)

    def finalize(self) -> None:
        """Waits until everything is written."""
        self.writer.finalize()


def _load_newest(paths: list[str], target: Any) -> None:
    """Loads the newest of the snapshots, from old to new, that is not damaged.

    Raises:
        FileFormatError: all snapshots are damaged.
        KeyError, ValueError, TypeError, OSError: as ``load_npz``.
    """
    for path in reversed(paths):
        try:
            npz.load_npz(path, target)
            return
        except FileFormatError as error:
            if path == paths[0]:
                raise
            warnings.warn(f"snapshot: passed over: {error}", stacklevel=2)
