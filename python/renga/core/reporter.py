"""Observations: named values that a model reports while it runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from renga.core import configuration
from renga.core.link import Link
from renga.core.statistics import DictSummary, Summary
from renga.core.variable import Variable

_Self = TypeVar("_Self", bound="Reporter")

__all__ = [
    "DictSummary",
    "Reporter",
    "Summary",
    "get_current_reporter",
    "report",
    "report_scope",
]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.reporters: list[Reporter] = []


_stack = _Stack()


class Reporter:
    """Collects reported values in ``observation``, prefixed by their observer's name.

    A reporter is current in this thread while it is entered as a context.
    """

    def __init__(self) -> None:
        self.observation: MutableMapping[str, Any] = {}
        self._observer_names: dict[int, str] = {}

    def __enter__(self: _Self) -> _Self:
        _stack.reporters.append(self)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _stack.reporters.pop()

    @contextlib.contextmanager
    def scope(self, observation: MutableMapping[str, object]) -> Iterator[None]:
        """Context in which this reporter is current and fills ``observation``."""
        outer, self.observation = self.observation, observation
        try:
            with self:
                yield
        finally:
            self.observation = outer

    def add_observer(self, name: str, observer: object) -> None:
        """Sets the name of ``observer``, which prefixes the values it reports."""
        self._observer_names[id(observer)] = name

    def name_of(self, observer: object) -> str | None:
        """The name under which ``observer`` reports; None if it was not added."""
        return self._observer_names.get(id(observer))

    def add_observers(
        self, prefix: str, observers: Iterable[tuple[str, object]]
    ) -> None:
        """Names every observer of the pairs (name, observer), after ``prefix``."""
        for name, observer in observers:
            self.add_observer(prefix + name, observer)

    def add_links(self, name: str, model: Link) -> None:
        """Names a model, and its links after it."""
        self.add_observer(name, model)
        self.add_observers(name, model.namedlinks(skipself=True))

    def report(self, values: Mapping[str, object], observer: object = None) -> None:
        """Stores ``values`` in the observation, as observer's name/key if there is one.

        Variables are stored without their graph unless ``config.keep_graph_on_report``.

        Raises:
            KeyError: ``observer`` was not added.
        """
        prefix = ""
        if observer is not None:
            name = self.name_of(observer)
            if name is None:
                raise KeyError(f"report: {observer!r} is not registered as an observer")
            prefix = f"{name}/"
        keep_graph = configuration.config.keep_graph_on_report
        for key, value in values.items():
            if isinstance(value, Variable) and value.is_meta:
                continue  # another stage of a pipeline reports it
            if isinstance(value, Variable) and not keep_graph:
                value = Variable(value.array, requires_grad=False)
            self.observation[prefix + key] = value


class KeptReports(Reporter):
    """Keeps what is reported within it, with the observers, in ``all``."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[dict[str, Any], Any]] = []

    def report(self, values: Mapping[str, object], observer: object = None) -> None:
        self.all.append((dict(values), observer))


def get_current_reporter() -> Reporter:
    """The reporter entered last in this thread; IndexError when there is none."""
    if not _stack.reporters:
        raise IndexError("get_current_reporter: no reporter is current in this thread")
    return _stack.reporters[-1]


def report(values: Mapping[str, object], observer: object = None) -> None:
    """Reports ``values`` to the current reporter; does nothing when there is none."""
    if _stack.reporters:
        _stack.reporters[-1].report(values, observer)


@contextlib.contextmanager
def report_scope(observation: MutableMapping[str, object]) -> Iterator[None]:
    """Context in which the current reporter fills ``observation``."""
    reporter = get_current_reporter()
    outer, reporter.observation = reporter.observation, observation
    try:
        yield
    finally:
        reporter.observation = outer
