"""What a call does beside its result: attributes that it sets, values it reports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, TypeVar

from renga import _core
from renga.backends.cuda_loader import loaded
from renga.core.link import Link
from renga.core.link.traces import Items
from renga.core.reporter import report
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable

_Result = TypeVar("_Result")

# The attributes of a link and the name of one of them.
_Place = tuple[dict[str, Any], str]


class SetAttributes:
    """The attributes that ordinary calls of a chain have set."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str], _Place] = {}

    def watch(self, chain: Link, call: Callable[[], _Result]) -> _Result:
        """The result of a call, which is seen to set attributes."""
        before = attributes_of(chain)
        result = call()
        for (values, kept), _ in zip(before, attributes_of(chain)):
            for name, value in values.items():
                if kept.get(name) is not value:
                    self._places[id(values), name] = values, name
        return result

    @contextlib.contextmanager
    def hidden(self, chain: Link) -> Iterator[None]:
        """A context in which a call cannot read arrays that the call before has set.

        A result that depended on them would not in what is recorded. After an error,
        all attributes are as before.
        """
        before, hidden = attributes_of(chain), []
        for values, name in self._places.values():
            if _is_on_device(values.get(name)):
                hidden.append((values, name, values[name]))
                values[name] = _SetByTheCallBefore(name)
        try:
            yield
        except BaseException:
            for values, kept in before:
                values.clear()
                values.update(kept)
            raise
        for values, name, value in hidden:
            if isinstance(values.get(name), _SetByTheCallBefore):
                values[name] = value


class _SetByTheCallBefore:
    """Stands for an attribute, of which nothing can be read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"{self._name!r}, which the call before has set"

    def __getattr__(self, attribute: str) -> Any:
        raise RuntimeError(f"it reads {self!r}")

    def _refuse(self, *_: Any) -> Any:
        raise RuntimeError(f"it reads {self!r}")

    __len__ = __getitem__ = __iter__ = __neg__ = __bool__ = __float__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __pow__ = _refuse


class Effects:
    """What a recorded call has done, to be done again where it is replayed.

    Args:
        before: the attributes of the chain's links before the call.
        reports: what it has reported.
        sets: whether it may set attributes.

    Raises:
        RuntimeError: for a call that sets what a replay would not.
    """

    def __init__(
        self,
        before: list[tuple[dict[str, object], dict[str, object]]],
        reports: list[tuple[Any, Any]],
        sets: bool,
    ) -> None:
        self._reports = reports
        self._set: list[tuple[dict[str, Any], str, Any]] = []
        self._unset: list[_Place] = []  # None before the call
        for values, kept in before:
            for name, value in values.items():
                if kept.get(name) is value:
                    continue
                if not (sets and (value is None or _is_on_device(value))):
                    raise RuntimeError(f"it sets {name!r}")
                self._set.append((values, name, value))
                if kept.get(name) is None:
                    self._unset.append((values, name))

    @property
    def places(self) -> set[tuple[int, str]]:
        """The attributes that are set."""
        return {(id(values), name) for values, name, _ in self._set}

    def can_repeat(self) -> bool:
        """Whether attributes that were None before the call are None again."""
        return all(values.get(name) is None for values, name in self._unset)

    def repeat(self, copy: Callable[[ArrayLike], ArrayLike]) -> None:
        """Sets and reports what a replay has computed.

        Args:
            copy: the copy of an array or Variable in the memory of the graph.
        """
        for values, name, value in self._set:
            values[name] = None if value is None else copy(value)
        for reported, observer in self._reports:
            found = {
                key: copy(value) if _is_on_device(value) else value
                for key, value in reported.items()
            }
            report(found, observer)


def require_same_items(containers: Iterable[Mapping[str, Items]]) -> None:
    """Refuses a call that has changed what is in lists and the like of links.

    Args:
        containers: of each link by name, as they were before the call.

    Raises:
        RuntimeError: for a call that has, as a replay would not.
    """
    for of_link in containers:
        for name, items in of_link.items():
            if not items.are_same():
                raise RuntimeError(f"it changes what is in {name!r}")


class Attributes:
    """The attributes of a chain's links, to be compared with what they become.

    Args:
        without: those that are left out, by the identity of a link's attributes and
            by name.
    """

    def __init__(self, chain: Link, without: set[tuple[int, str]]) -> None:
        self._kept: list[tuple[dict[str, Any], list[str], list[Any]]] = []
        self._arrays: list[tuple[dict[str, Any], str, Any]] = []
        for values, kept in attributes_of(chain):
            names = [name for name in kept if (id(values), name) not in without]
            self._kept.append((values, names, [kept[name] for name in names]))
            for name in names:
                if isinstance(kept[name], (Variable, loaded().ndarray)):
                    self._arrays.append((values, name, kept[name]))

    def have_other_arrays(self) -> bool:
        """Whether Variables or arrays were replaced."""
        return any(
            values.get(name) is not value for values, name, value in self._arrays
        )

    def are_same(self) -> bool:
        """Whether all are the same objects, or equal numbers or texts."""
        try:
            return all(
                list(map(values.get, names)) == kept
                for values, names, kept in self._kept
            )
        except Exception:  # of objects that cannot be compared as a whole: others
            return False


class Copies:
    """Copies of arrays and Variables in a graph's memory, one of each."""

    def __init__(self) -> None:
        self._by_id: dict[int, Any] = {}

    def __call__(self, x: ArrayLike) -> ArrayLike:
        if id(x) not in self._by_id:
            copied = _core.copy_of(as_variable(x))
            self._by_id[id(x)] = copied if isinstance(x, Variable) else copied.array
        return self._by_id[id(x)]


def attributes_of(chain: Link) -> list[tuple[dict[str, object], dict[str, object]]]:
    """The attributes of a chain's links, and what they are now."""
    return [(vars(link), dict(vars(link))) for link in chain.links()]


def _is_on_device(value: Any) -> bool:
    if not isinstance(value, (Variable, loaded().ndarray)):
        return False
    return as_variable(value).device_name.startswith("cuda:")
