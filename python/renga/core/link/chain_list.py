"""ChainList: a link whose children are in a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence
from typing import Any

from renga.core.link.base import Link, Missing, shared_copy
from renga.core.link.parent import Parent, format_children


class ChainList(Parent, MutableSequence[Link]):
    """A model made of a list of links; their names are their positions."""

    _children: list[Link] = Missing()  # type: ignore[assignment]
    _how_to_register = "to a Chain, or append it to the list"

    def __init__(self, *links: Link) -> None:
        super().__init__()
        self._children = []
        self._set_children(links)

    def _set_children(self, links: Iterable[Link]) -> None:
        children = list(links)
        for link in children:
            _require_link(link)
        for position, link in enumerate(children):
            link.name = str(position)
        self._children = children

    def __setattr__(self, name: str, value: Any) -> None:
        if self._within_init_scope and isinstance(value, Link):
            raise TypeError(
                "ChainList: expected append(link), got an assignment in init_scope()"
            )
        super().__setattr__(name, value)

    def __getitem__(self, index: Any) -> Any:
        """The child at ``index``, or a list of those in a slice."""
        return self._children[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        children = list(self._children)
        children[index] = value
        self._set_children(children)

    def __delitem__(self, index: Any) -> None:
        children = list(self._children)
        del children[index]
        self._set_children(children)

    def insert(self, index: int, link: Link) -> None:
        """Inserts a child; those after it are renamed."""
        children = list(self._children)
        children.insert(index, link)
        self._set_children(children)

    def __iter__(self) -> Iterator[Link]:
        return iter(self._children)

    def __len__(self) -> int:
        """How many children there are."""
        return len(self._children)

    def __str__(self) -> str:
        return format_children(self, list(enumerate(self._children)))

    def add_link(self, link: Link) -> None:
        """Appends a child."""
        self.append(link)

    def append(self, value: Link) -> None:
        """Appends a child."""
        _require_link(value)
        value.name = str(len(self._children))
        self._children.append(value)

    def _named_children(self) -> Iterator[tuple[str, Link]]:
        return ((str(i), link) for i, link in enumerate(self._children))

    def addgrads(self, link: Link) -> None:
        self._require_as_many("addgrads", link)
        super().addgrads(link)

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        link = link.copied_link()
        self._require_as_many("copyparams", link)
        super().copyparams(link, copy_persistent)
        for mine, other in zip(self._children, link.children()):
            mine.copyparams(other, copy_persistent)

    def _require_as_many(self, method: str, link: Any) -> None:
        if len(link._children) != len(self._children):
            raise ValueError(
                f"{method}: expected {len(self._children)} links, got "
                f"{len(link._children)}"
            )

    def _shallow_copy(self, memo: dict[int, Any]) -> Any:
        clone = super()._shallow_copy(memo)
        clone._set_children(shared_copy(child, memo) for child in self._children)
        return clone


def _require_link(link: Any) -> None:
    if not isinstance(link, Link):
        raise TypeError(f"ChainList: expected a link, got {type(link).__name__}")
