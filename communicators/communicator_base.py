"""ChainerMN's base class of communicators."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from renga.core.types import Array

_T = TypeVar("_T")
ArrayOrArrays = TypeVar("ArrayOrArrays", Array, "tuple[Array, ...]")


class CommunicatorBase:
    """A group of ranks that communicate, by ChainerMN's names.

    Every rank calls the same collective methods in the same order.
    """

    def __init__(self) -> None:
        self._within_config_scope = False
        self._configs: dict[str, Any] = {}

    # Whether it is a part of a larger group, whose other ranks may be sent messages.
    is_subgroup: bool = False
    # Whether its ranks are simulated, on a network whose times are predicted.
    is_simulated: bool = False
    _origin: Any = None
    rank: int
    size: int
    intra_rank: int
    intra_size: int
    inter_rank: int
    inter_size: int

    @property
    def origin(self) -> CommunicatorBase:
        """The communicator that it was split from first; itself if from none."""
        return self if self._origin is None else self._origin

    @property
    def clock(self) -> float:
        """The time in seconds; of ranks that are simulated, the virtual one."""
        return time.monotonic()

    def split(self, color: int | None, key: int) -> CommunicatorBase | None:
        """The group of ranks with the same color, ordered by ``key``."""
        raise NotImplementedError

    def split_by(self, color_of: Callable[[int], int]) -> Any:
        """The group of ranks with the same ``color_of(rank)``, in rank order."""
        return self.split(color_of(self.rank), self.rank)

    def send(
        self, data: Array | list[Array] | tuple[Array, ...], dest: int, tag: int
    ) -> Any:
        """Sends an array or a tuple of arrays to a rank."""
        raise NotImplementedError

    def recv(self, source: int, tag: int) -> Any:
        """Receives an array or a tuple of arrays from a rank."""
        raise NotImplementedError

    def bcast(
        self, data: Array | None, max_buf_len: int | None = None, root: int = 0
    ) -> Array:
        """The root's array, on every rank."""
        raise NotImplementedError

    def gather(
        self, data: Array | tuple[Array, ...], root: int = 0
    ) -> tuple[Array, ...] | None:
        """The ranks' arrays as a tuple on the root, None elsewhere."""
        raise NotImplementedError

    def allgather(self, x: Array | tuple[Array, ...]) -> tuple[Array, ...]:
        """The ranks' arrays as a tuple, on every rank."""
        raise NotImplementedError

    def alltoall(self, xs: Sequence[Array] | Array) -> tuple[Array, ...]:
        """``xs[r]`` goes to rank ``r``; item ``r`` of the result is from rank ``r``."""
        raise NotImplementedError

    def scatter(self, xs: Sequence[Array] | Array | None, root: int = 0) -> Array:
        """Item ``rank`` of the root's ``xs``."""
        raise NotImplementedError

    def allreduce(self, data: ArrayOrArrays) -> ArrayOrArrays:
        """The sum of the ranks' arrays, on every rank."""
        raise NotImplementedError

    def send_obj(self, obj: object, dest: int, tag: int) -> None:
        """Sends an object, pickled."""
        raise NotImplementedError

    def recv_obj(self, source: int, tag: int) -> Any:
        """Receives an object."""
        raise NotImplementedError

    def bcast_obj(
        self, obj: object, max_buf_len: int | None = None, root: int = 0
    ) -> Any:
        """The root's object, on every rank."""
        raise NotImplementedError

    def gather_obj(self, obj: _T, root: int = 0) -> list[_T] | None:
        """The ranks' objects as a list on the root, None elsewhere."""
        raise NotImplementedError

    def allgather_obj(self, obj: _T) -> list[_T]:
        """The ranks' objects as a list, on every rank."""
        raise NotImplementedError

    def allreduce_obj(self, obj: _T) -> _T:
        """The ranks' objects, combined by ``+`` in rank order."""
        raise NotImplementedError

    def bcast_data(self, model: Any) -> None:
        """Overwrites a model's parameters and persistent arrays by those of rank 0."""
        raise NotImplementedError

    def multi_node_mean_grad(self, model: Any, zero_fill: bool = False) -> None:
        """Replaces the gradients of a model by their means over the ranks."""
        raise NotImplementedError

    def broadcast_data(self, model: Any) -> None:
        """Another name of ``bcast_data``."""
        self.bcast_data(model)

    def allreduce_grad(self, model: Any, zero_fill: bool = False) -> None:
        """Another name of ``multi_node_mean_grad``, with a DeprecationWarning."""
        warnings.warn(
            "allreduce_grad is deprecated: use multi_node_mean_grad",
            DeprecationWarning,
            stacklevel=2,
        )
        self.multi_node_mean_grad(model, zero_fill)

    def finalize(self) -> None:
        """Ends the use of this communicator."""

    @property
    def within_config_scope(self) -> bool:
        """Whether attributes that are set now are settings."""
        return self._within_config_scope

    @contextlib.contextmanager
    def config_scope(self) -> Iterator[None]:
        """A context in which attributes that are set are settings."""
        self._within_config_scope = True
        try:
            yield
        finally:
            self._within_config_scope = False

    def __setattr__(self, name: str, value: Any) -> None:
        own = name in ("_within_config_scope", "_configs")
        if not own and self._within_config_scope:
            self._configs[name] = value
        super().__setattr__(name, value)

    def get_config(self, name: str | None = None) -> Any:
        """The setting ``name``, or all of them.

        Raises:
            KeyError: if there is no such setting.
        """
        return self._configs if name is None else self._configs[name]

    def set_config(self, name: str, **kwargs: object) -> None:
        """Changes a setting.

        Raises:
            ValueError: if there is no such setting.
        """
        raise ValueError(f"Unknown config: {name}")
