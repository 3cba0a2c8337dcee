"""What optimizers have in common that wrap another one."""

from __future__ import annotations

from typing import Any, TypeVar

from renga.core.link import Link

_Self = TypeVar("_Self", bound="WrappedOptimizer")


class WrappedOptimizer:
    """Has the attributes of ``actual_optimizer``, on which setting one sets it.

    A subclass keeps its own in ``vars(self)``.
    """

    actual_optimizer: Any

    def __getattr__(self, name: str) -> Any:
        if name == "actual_optimizer":  # while a copy is being made
            raise AttributeError(name)
        return getattr(self.actual_optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.actual_optimizer, name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """How it is copied and pickled.

        Raises:
            TypeError: it works with other ranks, which a copy would not.
        """
        if self._is_bound():
            raise TypeError(
                f"{type(self).__name__}: expected no copy of an optimizer that keeps "
                "shards, or has begun to update: save it by a serializer, and load a "
                "new one"
            )
        return super().__reduce_ex__(protocol)

    def _is_bound(self) -> bool:
        """Whether it has memory or messages that are this rank's among others."""
        return False

    def setup(self: _Self, link: Link) -> _Self:
        """Sets the actual optimizer up with ``link``."""
        self.actual_optimizer.setup(link)
        return self
