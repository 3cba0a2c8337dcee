"""What stands between two calls for what a link keeps, of which a rank has a part."""

from __future__ import annotations

import copy
from typing import Any


class PartKeptByLink:
    """Refuses what would take a part for the whole.

    Args:
        where: the link's class and the attribute.
        value: what the link has kept.
        part: what a rank has of it.
        instead: how to get the whole.
    """

    value: Any

    def __init__(self, where: str, value: object, part: str, instead: str) -> None:
        self.where, self.value = where, value
        self._part, self._instead = part, instead

    def unchain(self) -> None:
        """That of what is kept, which parts allow."""
        self.value.unchain()

    def unchain_backward(self) -> None:
        """That of what is kept, which parts allow."""
        self.value.unchain_backward()

    def __deepcopy__(self, memo: dict[int, Any]) -> PartKeptByLink:
        value = copy.deepcopy(self.value, memo)
        return PartKeptByLink(self.where, value, self._part, self._instead)

    def __repr__(self) -> str:
        return f"{self.where}, of which a rank has {self._part} between two calls"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__array__":
            raise AttributeError(name)
        return self._refuse()

    def _refuse(self, *_: Any) -> Any:
        raise RuntimeError(
            f"{self.where}: expected it to be read within the model, got a read "
            f"between two calls, where a rank has {self._part}: {self._instead}"
        )

    __len__ = __getitem__ = __iter__ = __neg__ = __abs__ = _refuse
    __bool__ = __float__ = __int__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = _refuse
    __pow__ = __rpow__ = _refuse
