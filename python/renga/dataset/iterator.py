"""Iterator: the interface of iterators over data sets."""

from __future__ import annotations

from typing import Any, TypeVar

from renga.core.serializer import AbstractSerializer

_Self = TypeVar("_Self", bound="Iterator")


class Iterator:
    """Returns mini-batches, as lists of examples.

    The trainer also reads ``epoch``, ``epoch_detail`` and ``is_new_epoch``.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Makes ``next`` the ``__next__`` of each class that defines one.

        A subclass may override either of them, or both, and call that of its base.
        """
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__:
            if "next" in vars(base):
                return
            if "__next__" in vars(base):
                cls.next = vars(base)["__next__"]  # type: ignore[method-assign]
                return

    def __del__(self) -> None:
        self.finalize()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.finalize()

    def __iter__(self: _Self) -> _Self:
        return self

    def __next__(self) -> Any:
        """The next batch; StopIteration after the last."""
        raise NotImplementedError

    def next(self) -> Any:
        """The next batch, as ``next(iterator)``."""
        return self.__next__()

    def finalize(self) -> None:
        """Releases threads and the like; called at the end of a ``with`` block."""

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Save or load the position of the iteration."""
