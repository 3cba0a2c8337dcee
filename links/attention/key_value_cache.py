"""KeyValueCache: the keys and values of earlier positions."""

from __future__ import annotations

from typing import Any

from renga.core import backend
from renga.core.types import Array, ArrayLike
from renga.core.variable import as_array


class KeyValueCache:
    """The keys and values that an attention has computed so far, for generation.

    They are arrays, without a graph: gradients do not pass. One cache belongs to one
    attention.
    """

    def __init__(self) -> None:
        self._buffers: list[Any] = []
        self.length = 0

    def append(self, key: ArrayLike, value: ArrayLike) -> tuple[Array, Array]:
        """Adds the next positions and returns those of all.

        Shapes:
            key, value: (N, H, L, D)
            return: twice (N, H, length, D)
        """
        news = [as_array(x) for x in (key, value)]
        begin, end = self.length, self.length + news[0].shape[2]
        if not self._buffers or end > self._buffers[0].shape[2]:
            self._buffers = [self._grown(i, x, 2 * end) for i, x in enumerate(news)]
        for buffer, x in zip(self._buffers, news):
            buffer[:, :, begin:end] = x
        self.length = end
        keys, values = (buffer[:, :, :end] for buffer in self._buffers)
        return keys, values

    def _grown(self, i: int, x: Any, capacity: int) -> Any:
        """Buffer ``i`` for so many positions, with those that it has."""
        n, heads, _, size = x.shape
        buffer = backend.get_array_module(x).empty((n, heads, capacity, size), x.dtype)
        if self._buffers:
            buffer[:, :, : self.length] = self._buffers[i][:, :, : self.length]
        return buffer
