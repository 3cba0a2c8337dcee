"""Exceptions that are raised again elsewhere: in another process or by another rank."""

from __future__ import annotations

import pickle
import traceback
from typing import Any, Callable, NamedTuple

from renga.utils import pickling

# Why spawned processes may die at once.
MAIN_GUARD = (
    "A spawned process begins by importing the main program, which has to be a file "
    'whose commands are under `if __name__ == "__main__":`'
)


class RemoteTraceback(Exception):
    """The traceback of an exception that was raised in another process; its cause."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


class SentException(NamedTuple):
    """An exception as text, and as bytes from which it is made again where possible.

    Attributes:
        text: the name of its type and its message.
        traceback: with its causes and the members of a group.
        pickled: the exception; None if it cannot be pickled.
    """

    text: str
    traceback: str
    pickled: bytes | None

    def unpack(self) -> BaseException:
        """The exception, whose cause is the traceback.

        It has the original type, message, arguments and attributes. If that type cannot
        be pickled or imported here, or does not give the same message, it is a
        RuntimeError with the name of the type and the message.
        """
        error: Any = None
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception:  # what a class raises, or the import of its module
                error = None
        if not isinstance(error, BaseException) or describe(error) != self.text:
            error = RuntimeError(self.text)
        cause = RemoteTraceback(self.traceback)
        BaseException.__setattr__(error, "__cause__", cause)
        return error


class CallOutcome:
    """What a call has returned or raised. Pickled, it raises the same elsewhere.

    Args:
        function: that is called at once with the other arguments.
    """

    def __init__(
        self, function: Callable[..., object], *args: object, **kwargs: object
    ) -> None:
        self._value: Any = None
        self.error: BaseException | None = None
        try:
            self._value = function(*args, **kwargs)
        except Exception as error:
            self.error = error

    def get(self) -> Any:
        """Returns or raises it."""
        if self.error is not None:
            raise self.error
        return self._value

    def __getstate__(self) -> tuple[Any, SentException | None]:
        return self._value, None if self.error is None else pack(self.error)

    def __setstate__(self, state: tuple[Any, SentException | None]) -> None:
        self._value, sent = state
        self.error = None if sent is None else sent.unpack()


def pack(error: BaseException) -> SentException:
    """What another process needs to raise an exception of this one; never fails."""
    try:
        pickled = pickling.dumps(error)
    except Exception:  # what an argument raises that cannot be pickled
        pickled = None
    return SentException(describe(error), traceback_of(error), pickled)


def traceback_of(error: BaseException) -> str:
    """What Python prints of an exception; never fails."""
    kind, trace = type(error), error.__traceback__
    try:
        lines = traceback.format_exception(kind, error, trace)
    except Exception:  # of a class whose attributes raise
        lines = [*traceback.format_tb(trace), f"{describe(error)}\n"]
    return "".join(lines)


def describe(error: BaseException) -> str:
    """The name of an exception's type and its message, in characters of UTF-8."""
    try:
        text = str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:  # an error in the class of an error
        text = "<its message cannot be made>"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def with_prefix(error: BaseException, prefix: str) -> BaseException:
    """A copy of an exception whose message begins with ``prefix``.

    A message that is more than the text of one argument stays as it is, and ``prefix``
    becomes a note of the exception. So does that of SystemExit, which is a status.
    """
    kind, text = type(error), describe(error)
    try:
        base, arguments, attributes = pickling.parts_of_exception(error)
        if _is_text_of_one_argument(error, arguments):
            message = f"{prefix}: {error}" if arguments else prefix
            return pickling.build_exception(kind, base, (message,), attributes)
        pickling.add_note(attributes, prefix)
        copy = pickling.build_exception(kind, base, arguments, attributes)
    except Exception:  # of a class that cannot be made without its constructor
        return RuntimeError(f"{prefix}: {text}")
    return copy if describe(copy) == text else RuntimeError(f"{prefix}: {text}")


def _is_text_of_one_argument(error: BaseException, arguments: tuple[Any, ...]) -> bool:
    is_text = not arguments or [type(a) for a in arguments] == [str]
    is_own = pickling.defines(type(error), frozenset(("__str__",)))
    return is_text and not is_own and not isinstance(error, SystemExit)
