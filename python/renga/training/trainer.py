"""The training loop."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from typing import Any, Callable

from renga.core.reporter import Reporter
from renga.core.serializer import AbstractSerializer, Serializer, serialize_part
from renga.core.types import Path
from renga.training.entry import ExtensionEntry
from renga.training.saved_state import serialize_observation, serialize_random_state
from renga.training.triggers.interval_trigger import (
    IntervalTrigger,
    TriggerLike,
    get_trigger,
)
from renga.training.updaters.updater import Updater
from renga.utils import argument


class Trainer:
    """Runs an updater, and extensions after each update, until a trigger fires.

    Args:
        updater: updates the model once per iteration.
        stop_trigger: ends the loop; (period, unit), a callable, or None: never.
        out: directory for files that extensions write.
        extensions: extensions added with ``extend``.
        fast_dev_run: tries a script out: the number of updates (True is one), after
            which every extension is called once, whatever its trigger. Evaluators
            read as many batches. Files go to a directory that is removed at the end.
    """

    def __init__(
        self,
        updater: Updater,
        stop_trigger: TriggerLike | None = None,
        out: Path = "result",
        extensions: Iterable[Callable[[Trainer], object]] | None = None,
        fast_dev_run: bool | int = False,
    ) -> None:
        argument.check_count("Trainer: fast_dev_run", fast_dev_run, 0)
        self.updater: Any = updater
        self.fast_dev_run = int(fast_dev_run)
        if fast_dev_run:
            stop_trigger = IntervalTrigger(self.fast_dev_run, "iteration")
        self.stop_trigger = get_trigger(stop_trigger)
        self.observation: dict[str, Any] = {}
        self.out = out
        self.reporter = Reporter()
        for name, optimizer in updater.get_all_optimizers().items():
            if optimizer.target is None:
                raise RuntimeError(
                    f"Trainer: optimizer {name!r} has no model: call "
                    "optimizer.setup(model) before"
                )
            self.reporter.add_links(name, optimizer.target)
        self._entries: dict[str, ExtensionEntry] = {}
        self._started: float | None = None
        self._elapsed_before = 0.0
        self._final_elapsed: float | None = None  # while it does not run
        self._has_ended = False
        updater.connect_trainer(self)
        for extension in extensions or ():
            self.extend(extension)

    @property
    def elapsed_time(self) -> float:
        """Duration of training in seconds, including the time before a resume.

        Raises:
            RuntimeError: training has not started.
        """
        if self._final_elapsed is not None:
            return self._final_elapsed
        if self._started is None:
            raise RuntimeError("Trainer: training has not been started yet")
        return time.perf_counter() - self._started + self._elapsed_before

    @property
    def is_before_training(self) -> bool:
        """Whether no update has been made yet."""
        return self.updater.iteration == 0

    def extend(
        self,
        extension: Callable[[Trainer], object],
        name: str | None = None,
        trigger: TriggerLike | None = None,
        priority: int | None = None,
        *,
        call_before_training: bool = False,
        **kwargs: object,
    ) -> None:
        """Adds a callable that is called with the trainer when ``trigger`` fires.

        Arguments left out are read from the attributes of the extension. A name that
        is taken gets a suffix ``_1``, ``_2``, …. With ``call_before_training`` it is
        called before the first iteration, too, but not when a run is resumed.

        Raises:
            ValueError: the name is ``"training"``.
        """
        argument.check_unexpected_kwargs(
            kwargs,
            invoke_before_training="Trainer.extend: invoke_before_training was "
            "removed; define initialize or give call_before_training",
        )
        argument.assert_kwargs_empty(kwargs)
        entry = ExtensionEntry(extension, trigger, priority, call_before_training)
        wanted = unique = name or entry.default_name()
        if wanted == "training":
            raise ValueError("Trainer.extend: no extension may be named 'training'")
        ordinal = 0
        while unique in self._entries:
            ordinal += 1
            unique = f"{wanted}_{ordinal}"
        with contextlib.suppress(AttributeError):  # a bound method has no own name
            extension.name = unique  # type: ignore[attr-defined]
        self._entries[unique] = entry

    def get_extension(self, name: str) -> Any:
        """The extension called ``name``; ValueError if there is none."""
        if name not in self._entries:
            raise ValueError(
                f"Trainer.get_extension: expected one of {sorted(self._entries)}, "
                f"got {name!r}"
            )
        return self._entries[name].extension

    def run(self, show_loop_exception_msg: bool = True) -> None:
        """Trains until the stop trigger fires; an exception is raised again at the end.

        Extensions and updater are finalized in any case. After an exception, as when a
        notebook's kernel is interrupted, another call goes on.

        Raises:
            RuntimeError: the stop trigger has fired before.
        """
        if self._has_ended:
            raise RuntimeError("Trainer: cannot run the training loop twice")
        with contextlib.ExitStack() as folders:
            if self.fast_dev_run:
                folders.callback(setattr, self, "out", self.out)
                self.out = folders.enter_context(tempfile.TemporaryDirectory())
            os.makedirs(self.out, exist_ok=True)
            self._run(show_loop_exception_msg)

    def _run(self, show_loop_exception_msg: bool) -> None:
        entries = sorted(
            self._entries.values(), key=lambda e: (-e.priority, e.saves_trainer)
        )
        if self._final_elapsed is not None:
            self._elapsed_before, self._final_elapsed = self._final_elapsed, None
        self._started = time.perf_counter()
        self._initialize(entries)
        with contextlib.ExitStack() as finalizers:  # all run, even if one raises
            finalizers.callback(self.updater.finalize)
            for entry in reversed(entries):
                finalizers.callback(entry.finalize)
            finalizers.callback(self._stop_clock)
            try:
                self._loop(entries)
            except Exception as error:
                if show_loop_exception_msg:
                    _print_error("Exception in main training loop", error)
                self._handle(error, entries)
                raise
        self._has_ended = True

    def _initialize(self, entries: list[ExtensionEntry]) -> None:
        # Extensions that restore the trainer come first: the others depend on its
        # state.
        for entry in sorted(entries, key=lambda e: not e.restores_trainer):
            entry.initialize(self)
        called = [entry for entry in entries if entry.call_before_training]
        # The stop trigger of a resumed run is asked again by what it observed.
        if not called or not self.is_before_training:
            return
        self.observation = {}
        with self.reporter.scope(self.observation):
            for entry in called:
                entry.extension(self)

    def _loop(self, entries: list[ExtensionEntry]) -> None:
        while not self.stop_trigger(self):
            self.observation = {}
            with self.reporter.scope(self.observation):
                self.updater.update()
                is_last = self.updater.iteration == self.fast_dev_run
                # Until all triggers have seen the iteration.
                waiting: list[ExtensionEntry] = []
                for entry in entries:
                    if entry.trigger(self) or is_last:
                        if waiting or entry.saves_trainer:
                            waiting.append(entry)
                        else:
                            entry.extension(self)
                for entry in waiting:
                    entry.extension(self)

    def _stop_clock(self) -> None:
        self._final_elapsed = self.elapsed_time

    def _handle(self, error: Exception, entries: list[ExtensionEntry]) -> None:
        for entry in entries:
            try:
                entry.on_error(self, error)
            except Exception as another:
                _print_error("Exception in error handler", another)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or restores the state of the training run.

        The stop trigger is saved as it was before this iteration, together with the
        observation by which a resumed run asks it again: it may then be another one.
        """
        self.updater.serialize(serializer["updater"])
        self.observation = serialize_observation(serializer, self.observation)
        serialize_part(self.stop_trigger, serializer, "stop_trigger")
        extensions = serializer["extensions"]
        triggers = serializer["extension_triggers"]
        for name, entry in self._entries.items():
            serialize_part(entry.extension, extensions, name)
            serialize_part(entry.trigger, triggers, name)
        if isinstance(serializer, Serializer):
            serializer("_snapshot_elapsed_time", self.elapsed_time)
        else:
            self._elapsed_before = serializer(
                "_snapshot_elapsed_time", self._elapsed_before
            )
        serialize_random_state(serializer)


def _print_error(title: str, error: Exception) -> None:
    print(f"{title}: {error}", file=sys.stderr)
    traceback.print_exception(type(error), error, error.__traceback__)
    sys.stderr.flush()
