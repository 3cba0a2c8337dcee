"""What a network is written with; each library has a subclass of its own.

The numbers and the initial weights are drawn here, in the order in which a network
asks for them. So both libraries train the same network on the same numbers. Without
dropout their losses are equal but for rounding; edsr's differ, since the libraries
order channels differently where they become pixels.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

import numpy as np

Function = Callable[..., Any]


class Task(NamedTuple):
    """What a network is trained for."""

    forward: Function  # from the inputs to the outputs
    x: Any  # the inputs
    loss: Function  # of the outputs


NETWORKS: dict[str, Callable[..., Task]] = {}


def network(build: Callable[..., Task]) -> Callable[..., Task]:
    """Adds a function that builds a network, of the library and sizes, to NETWORKS."""
    NETWORKS[build.__name__] = build
    return build


def same_size(ksize: Any, dilation: int = 1) -> Any:
    """The padding with which an odd kernel leaves the size as it is."""
    if isinstance(ksize, int):
        return (ksize - 1) // 2 * dilation
    return tuple(same_size(k, dilation) for k in ksize)


class Library:
    """The numbers that both libraries take, and the functions that they name alike."""

    functions: Any  # the library's module of them

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape, "f")

    def integers(self, count: int, *shape: int) -> np.ndarray:
        """They are below ``count``."""
        return self.rng.integers(0, count, shape)

    def initial(self, *shape: int) -> np.ndarray:
        """Weights that keep the scale of a layer's inputs."""
        return self.normal(*shape) / np.float32(math.sqrt(math.prod(shape[1:])))

    def constant(self, array: np.ndarray) -> Any:
        """An array as this library has it."""
        raise NotImplementedError

    def numbers(self, *shape: int) -> Any:
        return self.constant(self.normal(*shape))

    def ids(self, count: int, *shape: int) -> Any:
        return self.constant(self.integers(count, *shape))

    def images(self, batch: int, channels: int, size: int) -> Any:
        return self.numbers(batch, channels, size, size)

    def volumes(self, batch: int, channels: int, size: int) -> Any:
        return self.numbers(batch, channels, size, size, size)

    def own_loss(self, y: Any) -> Any:
        """The loss of a network whose output is the loss."""
        return y

    def relu(self, x: Any) -> Any:
        return self.functions.relu(x)

    def leaky_relu(self, x: Any) -> Any:
        return self.functions.leaky_relu(x, 0.2)

    def gelu(self, x: Any) -> Any:
        return self.functions.gelu(x)

    def silu(self, x: Any) -> Any:
        return self.functions.silu(x)

    def elu(self, x: Any) -> Any:
        return self.functions.elu(x)
