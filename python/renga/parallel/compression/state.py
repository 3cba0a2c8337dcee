"""What a compressor keeps of a parameter between steps."""

from __future__ import annotations

import zlib
from collections.abc import Sequence, Set

import numpy

from renga.core.types import Array

_STEP = "step"
_SCALE = "loss_scale"


class State(dict[str, numpy.ndarray]):
    """Arrays by name, of one parameter on one node; saved with the optimizer.

    Args:
        name: of the parameter.
        node: number of the node.
        nodes: how many there are.
    """

    # Keys of numbers that are the same on all nodes.
    COUNTS = frozenset({_STEP, _SCALE})

    def __init__(self, name: str, node: int, nodes: int) -> None:
        super().__init__()
        self.name = name
        self.node = node
        self.nodes = nodes

    @property
    def step(self) -> int:
        """How many gradients of the parameter have been reduced before."""
        return int(self.get(_STEP, 0))

    @property
    def loss_scale(self) -> float:
        """What gradients and what is kept of them are multiplied by."""
        return float(self.get(_SCALE, 1.0))

    def count_step(self) -> None:
        """To be called once for each gradient."""
        self[_STEP] = numpy.array(self.step + 1)

    def zeros_like(self, key: str, x: Array) -> Array:
        """The array ``key``; zeros if there is none like ``x`` yet."""
        array = self.get(key)
        if array is None or array.shape != x.shape:
            array = self[key] = numpy.zeros(x.shape, x.dtype)
        return array

    def rescale(self, keys: Set[str], loss_scale: float | None) -> None:
        """Multiplies arrays by the ratio of a loss scale to that of the last call."""
        scale = 1.0 if loss_scale is None else loss_scale
        if scale != self.loss_scale:
            self.scale(keys, scale / self.loss_scale)
            self[_SCALE] = numpy.array(scale)

    def scale(self, keys: Set[str], factor: float) -> None:
        """Multiplies arrays by a factor."""
        for key in keys & self.keys():
            self[key] *= self[key].dtype.type(factor)

    def seed(self) -> int:
        """Of random numbers, different for each parameter, node and step."""
        name = zlib.crc32(self.name.encode())
        return (name << 32) ^ (self.node << 48) ^ self.step


Arrays = Sequence[Array]
"""One array for each of several parameters."""
States = Sequence[State]
"""One state for each of several parameters."""
