"""``chainerx`` where it was not built, as with Chainer: it tells that it is missing."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False: renga's own core takes ChainerX's place."""
    return False


class ndarray:
    """The type of ChainerX's arrays: of no array."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("chainerx: expected ChainerX, got renga")
