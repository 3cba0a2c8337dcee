"""Chain: a link whose children are attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from renga.core.link.base import Link, Missing, shared_copy
from renga.core.link.parent import Parent, format_children


class Chain(Parent):
    """A model made of named links.

    Links assigned within ``init_scope`` become children; so do the keyword
    arguments.

    >>> import renga, renga.functions as F, renga.links as L
    >>> class MLP(renga.Chain):
    ...     def __init__(self):
    ...         super().__init__()
    ...         with self.init_scope():
    ...             self.hidden = L.Linear(4, 8)
    ...             self.out = L.Linear(8, 3)
    ...
    ...     def forward(self, x):
    ...         return self.out(F.relu(self.hidden(x)))
    >>> sorted(name for name, _ in MLP().namedparams())
    ['/hidden/W', '/hidden/b', '/out/W', '/out/b']
    """

    _children: set[str] = Missing()  # type: ignore[assignment]
    _how_to_register = "within `with self.init_scope():`"

    def __init__(self, **links: Link) -> None:
        super().__init__()
        self._children = set()
        for name, link in links.items():
            self.add_link(name, link)

    def __getitem__(self, name: str) -> Any:
        """The attribute of that name, usually a child."""
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._within_init_scope and isinstance(value, Link):
            if name in vars(self):
                raise AttributeError(
                    f"expected a new name for a link, got {name!r}: attribute exists; "
                    "`del` it first"
                )
            value.name = name
            self._children.add(name)
        super().__setattr__(name, value)

    def _registered(self) -> Iterable[str]:
        return {*super()._registered(), *vars(self).get("_children", ())}

    def __delattr__(self, name: str) -> None:
        self._children.discard(name)
        super().__delattr__(name)

    def __str__(self) -> str:
        return format_children(self, [(child.name, child) for child in self.children()])

    def add_link(self, name: str, link: Link) -> None:
        """Registers a child; AttributeError where the name is taken."""
        if not isinstance(name, str):
            raise TypeError(
                f"add_link: expected a string as name, got {type(name).__name__}"
            )
        if not isinstance(link, Link):
            raise TypeError(f"add_link: expected a Link, got {type(link).__name__}")
        if name in vars(self):
            raise AttributeError(
                f"add_link: expected a new name, got {name!r}: attribute exists"
            )
        with self.init_scope():
            setattr(self, name, link)

    def _named_children(self) -> Iterator[tuple[str, Link]]:
        return ((name, vars(self)[name]) for name in sorted(self._children))

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        super().copyparams(link, copy_persistent)
        link = link.copied_link()
        for name in sorted(self._children):
            vars(self)[name].copyparams(vars(link)[name], copy_persistent)

    def _shallow_copy(self, memo: dict[int, Any]) -> Any:
        clone = super()._shallow_copy(memo)
        clone._children = set(self._children)
        for name in self._children:
            child = shared_copy(vars(self)[name], memo)
            child.name = name
            vars(clone)[name] = child
        return clone
