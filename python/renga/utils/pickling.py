"""Pickles for other processes of this interpreter, of whatever pickle alone refuses."""

from __future__ import annotations

import copyreg
import io
import marshal
import pickle
import types
from typing import Any, Callable

# Methods by which a class says itself how it is pickled.
_OWN_PICKLING = frozenset(
    ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__")
)


def dumps(
    obj: object,
    protocol: int = pickle.HIGHEST_PROTOCOL,
    buffer_callback: Callable[[pickle.PickleBuffer], object] | None = None,
) -> bytes:
    """A pickle with functions and classes of a script or a notebook.

    These need cloudpickle; without it, only what has a name in a module is pickled.
    Exceptions may have constructors with other parameters than ``args``; attributes of
    theirs that cannot be pickled become a note.
    """
    file = io.BytesIO()
    pickler = _pickler(frozenset())
    pickler(file, protocol, buffer_callback=buffer_callback).dump(obj)
    return file.getvalue()


def _pickler(outer: frozenset[int]) -> Any:
    """A class of picklers of attributes of the exceptions with the ids ``outer``."""
    try:
        import cloudpickle
    except ImportError:
        base: Any = pickle.Pickler
    else:
        base = cloudpickle.Pickler

    class Pickler(base):  # type: ignore[misc]
        def reducer_override(self, obj: object) -> Any:
            if isinstance(obj, BaseException) and not _pickles_itself(type(obj)):
                return _load_exception, (type(obj), *_pickled_parts(obj, outer))
            # cloudpickle drops the file names of functions, and a traceback could not
            # show their lines.
            if isinstance(obj, types.CodeType):
                return marshal.loads, (marshal.dumps(obj),)
            own = getattr(super(), "reducer_override", None)
            return NotImplemented if own is None else own(obj)

    return Pickler


def parts_of_exception(
    error: BaseException,
) -> tuple[type[BaseException], tuple[object, ...], dict[str, Any]]:
    """The built-in base class of an exception, its arguments and all attributes."""
    kind = type(error)
    base: Any = next(k for k in kind.__mro__ if _is_builtin(k))
    _, arguments, *state = base.__reduce__(error)
    attributes = dict(state[0]) if state else {}
    others = copyreg._slotnames(kind)  # type: ignore[attr-defined]
    if isinstance(error, OSError):  # a subclass may have set them
        others = [*others, "errno", "strerror", "filename", "filename2"]
    for name in others:
        if getattr(error, name, None) is not None:
            attributes[name] = getattr(error, name)
    return base, arguments, attributes


def build_exception(
    kind: type[BaseException],
    base: type[BaseException],
    arguments: tuple[object, ...],
    attributes: dict[str, object],
) -> BaseException:
    """An exception with these parts, without a call of its own constructor.

    That may have other parameters than the exception has arguments.
    """
    error: BaseException = base.__new__(kind, *arguments)
    base.__init__(error, *arguments)
    for name, value in attributes.items():
        BaseException.__setattr__(error, name, value)
    return error


def add_note(attributes: dict[str, Any], note: str) -> None:
    """Adds what tracebacks show below the message from Python 3.11 on."""
    attributes["__notes__"] = [*attributes.get("__notes__", ()), note]


def defines(kind: type[BaseException], names: frozenset[str]) -> bool:
    """Whether a class, or a base of it that is not built in, has one of the methods."""
    own = [k for k in kind.__mro__ if not _is_builtin(k)]
    return any(not names.isdisjoint(vars(k)) for k in own)


def _is_builtin(kind: type) -> bool:
    return kind.__module__ == "builtins"


def _pickles_itself(kind: type[BaseException]) -> bool:
    return defines(kind, _OWN_PICKLING)


def _pickled_parts(error: BaseException, outer: frozenset[int]) -> Any:
    """The parts of an exception, with those attributes that can be pickled."""
    if id(error) in outer:
        raise pickle.PicklingError("an exception that refers to itself")
    base, arguments, attributes = parts_of_exception(error)
    pickler = _pickler(outer | {id(error)})
    notes = list(attributes.pop("__notes__", ()))
    pickled: dict[str, bytes] = {}
    for name, value in attributes.items():
        file = io.BytesIO()
        try:
            pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
        except Exception:  # what the attribute raises, an open file or a lock
            notes.append(f"its attribute {name} cannot be pickled")
        else:
            pickled[name] = file.getvalue()
    return base, arguments, pickled, notes


def _load_exception(
    kind: type,
    base: Any,
    arguments: tuple[Any, ...],
    pickled: dict[str, bytes],
    notes: list[str],
) -> BaseException:
    attributes = {name: pickle.loads(value) for name, value in pickled.items()}
    for note in notes:
        add_note(attributes, note)
    return build_exception(kind, base, arguments, attributes)
