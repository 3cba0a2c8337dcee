"""Parent: a link with children, each of which has a name in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renga.core.device_resident import DeviceResidentsVisitor
from renga.core.link.base import Link
from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer


class Parent(Link):
    """Base of links whose children come in one order: what walks over all of them."""

    def _named_children(self) -> Iterator[tuple[str, Link]]:
        raise NotImplementedError

    def namedparams(
        self, include_uninit: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        yield from super().namedparams(include_uninit)
        for name, link in self._named_children():
            for path, param in link.namedparams(include_uninit):
                yield f"/{name}{path}", param

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        yield from super().namedlinks(skipself)
        for name, link in self._named_children():
            yield f"/{name}", link
            for path, descendant in link.namedlinks(skipself=True):
                yield f"/{name}{path}", descendant

    def children(self) -> Iterator[Link]:
        return (link for _, link in self._named_children())

    def device_resident_accept(self, visitor: DeviceResidentsVisitor) -> None:
        super().device_resident_accept(visitor)
        for link in self.children():
            link.device_resident_accept(visitor)

    def serialize(self, serializer: AbstractSerializer) -> None:
        super().serialize(serializer)
        for name, link in self._named_children():
            link.serialize(serializer[name])


def format_children(link: Link, children: Sequence[tuple[object, object]]) -> str:
    """The result of ``str`` for a link with children: one per line, indented."""
    if not children:
        return f"{type(link).__name__}()"
    lines = [f"({name}): {child}," for name, child in children]
    body = "\n".join(lines).replace("\n", "\n  ")
    return f"{type(link).__name__}(\n  {body}\n)"
