"""What surrounds the calls of a thread's functions: a handler, as that of a pipeline.

It is called with each operation of the core (a ``_core.Call``), and with each
``FunctionNode`` and each function that :func:`reads_elements` (a
:class:`FunctionCall`)::

    def handler(call):
        call.operands = [replaced(x) for x in call.operands]  # if it wants others
        call.run()
        note(call.label, call.results)

    with surrounding(handler):
        model(x)
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, Union

from renga import _core
from renga._core import Variable
from renga.core.backend import get_array_types
from renga.core.types import ArrayLike, CalledFunction
from renga.utils.containers import leaves, map_leaves

Function = TypeVar("Function", bound=Callable[..., Any])


class FunctionCall:
    """A call of a function written in Python, as a handler sees it.

    Attributes:
        label: the name of the function.
        operands: the Variables among the arguments, in order.
        args, kwargs: the arguments.
        node: the FunctionNode; None for a function that reads elements.
        result: what the function has returned.
    """

    def __init__(
        self,
        function: Callable[..., object],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        node: CalledFunction | None = None,
    ) -> None:
        self.label: str = function.__name__ if node is None else node.label
        self.operands: Sequence[Any] = variables_in((args, kwargs))
        self.args, self.kwargs, self.node = args, kwargs, node
        self.result: Any = None
        self._function = function

    @property
    def results(self) -> list[Variable]:
        """The Variables in what the function has returned."""
        return variables_in(self.result)

    def run(self) -> None:
        """Calls the function with the operands."""
        self.result = self.result_of(self.operands)

    def result_of(self, operands: Sequence[object]) -> object:
        """What the function returns for other operands."""
        following = iter(operands)
        args, kwargs = map_variables(
            lambda _: next(following), (self.args, self.kwargs)
        )
        return self._function(*args, **kwargs)

    def tried_on(self, operands: Sequence[object]) -> object:
        """The same; arrays among the arguments, such as statistics, do not change."""
        following = iter(operands)

        def stand_in(leaf: Any) -> Any:
            if isinstance(leaf, _core.Variable):
                return next(following)
            is_array = isinstance(leaf, get_array_types())
            return leaf.copy() if is_array else leaf

        args, kwargs = map_leaves(stand_in, (self.args, self.kwargs))
        return self._function(*args, **kwargs)

    def surround(self, handler: Handler) -> Any:
        """The result with the handler around the call."""
        handler(self)
        return self.result


HandledCall = Union[_core.Call, FunctionCall]
"""What a handler is called with."""
Handler = Callable[[HandledCall], object]
"""What is around calls, and runs them."""


def inner_handler() -> Any:
    """The handler that this thread has set, inside of recorders, which only note."""
    handler = _core.own_around_call()
    while getattr(handler, "is_recorder", False):
        handler = handler.inner
    return handler


def set_inner_handler(handler: object) -> None:
    """Makes it, or none, the handler of this thread, inside of recorders."""
    recorder, present = None, _core.own_around_call()
    while getattr(present, "is_recorder", False):
        recorder, present = present, present.inner
    if recorder is None:
        _core.set_around_call(handler)
    else:
        recorder.inner = handler


@contextlib.contextmanager
def surrounding(handler: object) -> Iterator[None]:
    """A context in which a handler, or none, is around the calls of this thread."""
    before = inner_handler()
    set_inner_handler(handler)
    try:
        yield
    finally:
        set_inner_handler(before)


def run_within(handler: Handler | None, call: HandledCall) -> None:
    """Runs a call with another handler around it; None for none."""
    if handler is None:
        call.run()
    else:
        handler(call)


def tell_counted(function: str, counted: Callable[[], object]) -> None:
    """Says of which elements a function takes the mean, where others do not count.

    Who divides a batch, or trains on several, has to know that for each part.

    Args:
        function: its name.
        counted: computes an array, True for the elements that count; it is called only
            if someone wants to know.
    """
    in_stage = getattr(inner_handler(), "note_counted", None)  # of a pipeline
    notes = [note for note in (in_stage, _hearing.note) if note is not None]
    if notes:
        elements = counted()
        for note in notes:
            note(function, elements)


class _Hearing(threading.local):
    note: Callable[[str, object], object] | None = None


_hearing = _Hearing()


@contextlib.contextmanager
def hearing_counted(note: Callable[[str, object], object]) -> Iterator[None]:
    """A context in which ``note`` hears of what :func:`tell_counted` says.

    Args:
        note: called with the name of a function and an array, True for the elements
            that its mean is of.
    """
    before, _hearing.note = _hearing.note, note
    try:
        yield
    finally:
        _hearing.note = before


def require_own_graph(caller: str) -> None:
    """Raises RuntimeError in a program of which other ranks compute parts."""
    handler = inner_handler()
    if hasattr(handler, "require_own_graph"):  # a stage of a pipeline
        handler.require_own_graph(caller)


def prepare_unchain(x: object, is_backward: bool) -> None:
    """Tells the handler that a variable's creator, or the graph before it, is removed.

    The handler may refuse that, and removes parts of the graph that others have.
    """
    handler = inner_handler()
    if hasattr(handler, "prepare_unchain"):
        handler.prepare_unchain(x, is_backward)


def reads_elements(function: Function) -> Function:
    """Declares that a function reads the elements of its Variables in Python.

    Where they are on another stage of a pipeline, there are none: then the function is
    computed there, and only the shapes of its outputs here.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        handler = _core.around_call()
        if handler is None:
            return function(*args, **kwargs)
        return FunctionCall(function, args, kwargs).surround(handler)

    return call  # type: ignore[return-value]


def overridable(function: Function) -> Function:
    """Makes ``function`` one that a handler can replace, by its ``overrides``.

    For functions in which an element of the output depends on several pixels, which
    sharded images need in another implementation. ``overrides`` are by names; they are
    called with the original function, then with the arguments.
    """

    own_around_call = _core.own_around_call  # small functions are called often

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if own_around_call() is None:
            return function(*args, **kwargs)
        overrides = getattr(inner_handler(), "overrides", None)
        override = overrides.get(function.__name__) if overrides else None
        if override is None:
            return function(*args, **kwargs)
        return override(function, *args, **kwargs)

    return call  # type: ignore[return-value]


def variables_in(value: object) -> list[Variable]:
    """The Variables in lists, tuples and dictionaries, in order."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, _core.Variable)]


def map_variables(function: Callable[[Variable], object], value: object) -> Any:
    """``value`` with ``function(x)`` in place of each Variable in it, in order."""

    def replaced(leaf: ArrayLike) -> Any:
        return function(leaf) if isinstance(leaf, _core.Variable) else leaf

    return map_leaves(replaced, value)
