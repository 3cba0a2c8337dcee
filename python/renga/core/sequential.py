"""Sequential: layers, links or functions, that run one after the other."""

from __future__ import annotations

import copy
import types
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from renga.core.link import ChainList, Link
from renga.core.link.base import Missing, shared_copy
from renga.core.link.parent import format_children
from renga.core.types import ArrayLike
from renga.core.variable import attach


class Sequential(ChainList):
    """A list of callables; each is called with the output of the one before.

    Links among them are children, numbered without the functions between them and in
    Chainer's order: the first of three links is "0", the last "1", the second "2". A
    tuple is passed on as separate arguments.

    >>> import numpy, renga, renga.functions as F, renga.links as L
    >>> model = renga.Sequential(L.Linear(4, 8), F.relu, L.Linear(8, 3))
    >>> model(numpy.zeros((2, 4), numpy.float32)).shape
    (2, 3)
    >>> [name for name, _ in model.namedlinks(skipself=True)]
    ['/0', '/1']
    """

    _layers: list[Callable[..., Any]] = Missing()  # type: ignore[assignment]

    def __init__(self, *layers: Callable[..., object]) -> None:
        super().__init__()
        self._layers = []
        self.extend(layers)

    def forward(self, *x: ArrayLike) -> Any:
        """Runs every layer; RuntimeError where there is none."""
        if not self._layers:
            raise RuntimeError("Sequential: expected a layer, got none")
        for layer in self._layers:
            out = layer(*x)
            x = out if isinstance(out, tuple) else (out,)
        return out

    def __getitem__(self, i: Any) -> Any:
        """The layer at ``i``, or a list of those in a slice."""
        return self._layers[i]

    def __setitem__(self, i: Any, layer: Any) -> None:
        if i >= len(self._layers):
            raise ValueError(
                f"Sequential: expected an index below {len(self._layers)}, got {i}"
            )
        _require_callable(layer)
        i = range(len(self._layers))[i]
        if layer is not self._layers[i]:
            del self[i]
            self.insert(i, layer)

    def __delitem__(self, i: Any) -> None:
        removed = self._layers[i] if isinstance(i, slice) else [self._layers[i]]
        del self._layers[i]
        children = list(self._children)
        for layer in removed:
            if isinstance(layer, Link):
                children.remove(layer)
        self._set_children(children)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._layers)

    def __len__(self) -> int:
        """How many layers there are."""
        return len(self._layers)

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self._layers, *_layers_of(other))

    def __iadd__(self, other: Any) -> Sequential:
        self.extend(_layers_of(other))
        return self

    def __str__(self) -> str:
        return format_children(self, list(enumerate(map(_shown, self._layers))))

    def insert(self, i: int, layer: Callable[..., object]) -> None:
        """Inserts a layer; IndexError if ``i`` is out of range."""
        length = len(self._layers)
        if not -length <= i <= length:
            raise IndexError(f"insert: expected an index up to {length}, got {i}")
        _require_callable(layer)
        i += length if i < 0 else 0
        if isinstance(layer, Link):
            # Chainer's place among the children is behind the first link (or, if
            # functions come first, behind as many more links). Its files name
            # parameters by these places; others would load them into the wrong layers.
            links = (k for k in range(i) if isinstance(self._layers[k], Link))
            place = next(links, 0) + 1 if i > 0 else 0
            before, after = self._children[:place], self._children[place:]
            self._set_children([*before, layer, *after])
        self._layers.insert(i, layer)

    def append(self, layer: Callable[..., object]) -> None:
        """Appends a layer."""
        self.insert(len(self._layers), layer)

    def extend(self, sequential: Iterable[Callable[..., object]]) -> None:
        """Appends the layers of another Sequential or of a list."""
        layers = list(sequential)
        for layer in layers:
            _require_callable(layer)
        for layer in layers:
            self.append(layer)

    def remove(self, layer: Callable[..., object]) -> None:
        """Removes the first layer that is ``layer``; ValueError without one."""
        if layer not in self._layers:
            raise ValueError(f"remove: expected one of the layers, got {layer}")
        del self[self._layers.index(layer)]

    def remove_by_layer_type(self, type_name: str) -> None:
        """Removes the layers whose class or function has that name."""
        for layer in list(self._layers):
            if _type_name(layer) == type_name:
                self.remove(layer)

    def pop(self, i: int = -1) -> Any:
        """Removes a layer and returns it."""
        layer = self[i]
        del self[i]
        return layer

    def clear(self) -> None:
        """Removes every layer."""
        del self[:]

    def index(
        self,
        layer: Callable[..., object],
        start: int | None = None,
        end: int | None = None,
    ) -> int:
        """The position of ``layer``; ValueError where it is not there."""
        length = len(self._layers)
        return self._layers.index(layer, start or 0, length if end is None else end)

    def count(self, layer: Callable[..., object]) -> int:
        """How often ``layer`` occurs."""
        return self._layers.count(layer)

    def count_by_layer_type(self, type_name: str) -> int:
        """How many layers have a class or function of that name."""
        return sum(_type_name(layer) == type_name for layer in self._layers)

    def flatten(self) -> Sequential:
        """A Sequential in which each nested Sequential is replaced by its layers."""
        layers: list[Any] = []
        for layer in self._layers:
            layers += layer.flatten() if isinstance(layer, Sequential) else [layer]
        return Sequential(*layers)

    def _shallow_copy(self, memo: dict[int, Any]) -> Any:
        clone = super()._shallow_copy(memo)
        layers = [
            shared_copy(x, memo) if isinstance(x, Link) else x for x in self._layers
        ]
        clone._layers = [*layers]
        clone.clear()  # what is appended is named anew
        clone.extend(layers)
        return clone

    def __reduce_ex__(self, protocol: Any) -> Any:
        if any(_is_lambda(layer) for layer in self._layers):
            raise ValueError(
                "A Sequential with a lambda among its layers cannot be pickled: use a "
                "named function or functools.partial instead."
            )
        return super().__reduce_ex__(protocol)

    def __copy__(self) -> Sequential:
        clone = type(self).__new__(type(self))
        vars(clone).update(vars(self))
        return clone

    def __deepcopy__(self, memo: Any) -> Sequential:
        clone = type(self).__new__(type(self))
        memo[id(self)] = clone
        vars(clone).update(copy.deepcopy(vars(self), memo))
        return clone


def _require_callable(layer: Any) -> None:
    if not callable(layer):
        raise ValueError(f"Sequential: expected callables, got {layer}")


def _layers_of(other: Any) -> list[Any]:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"Sequential: expected a Sequential to add, got {type(other).__name__}"
        )
    return list(other)


@attach(Link)
class _LinkMethods:
    """The method of Link that makes a Sequential."""

    copy: Callable[[str], Link]

    def repeat(self, n_repeat: int, mode: str = "init") -> Sequential:
        """``n_repeat`` copies of this link, one after the other."""
        return Sequential(*[self.copy(mode) for _ in range(n_repeat)])


def _type_name(layer: Any) -> str:
    return getattr(layer, "__name__", None) or type(layer).__name__


def _shown(layer: Any) -> Any:
    # The repr of a compiled function does not identify it.
    compiled = isinstance(layer, types.BuiltinFunctionType)
    return f"<function {layer.__name__}>" if compiled else layer


def _is_lambda(layer: Any) -> bool:
    return isinstance(layer, types.FunctionType) and layer.__name__ == "<lambda>"
