"""``chainerx`` as in a Chainer built without it: not available."""

from __future__ import annotations


def is_available() -> bool:
    """False: renga's own core replaces ChainerX."""
    return False


class ndarray:
    """The type of ChainerX's arrays; no array has it."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("chainerx: expected ChainerX, got renga")
