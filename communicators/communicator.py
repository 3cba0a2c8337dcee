"""The interface of communicators, for annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy as np

if TYPE_CHECKING:
    from renga.communicators.messages.status import Status
    from renga.communicators.packing import Model
    from renga.communicators.transport.traffic import Traffic

# Of any shape and dtype.
Array = np.ndarray
# A NumPy dtype, or its name; "bfloat16" names one that NumPy lacks.
DtypeLike = Union[np.dtype, type, str]


class Communicator(Protocol):
    """A group of ranks that communicate; all call the same collectives in one order.

    Methods with a ``wait`` argument return their result, or a
    :class:`~renga.communicators.Work` if ``wait`` is false. The classes are
    :class:`~renga.communicators.native_communicator.NativeCommunicator` and those
    derived from it.
    """

    @property
    def rank(self) -> int:
        """This rank's number among all ranks."""

    @property
    def size(self) -> int:
        """The number of ranks."""

    @property
    def intra_rank(self) -> int:
        """This rank's number on its node."""

    @property
    def intra_size(self) -> int:
        """The number of ranks on this node."""

    @property
    def inter_rank(self) -> int:
        """The number of this node."""

    @property
    def inter_size(self) -> int:
        """The number of nodes."""

    is_subgroup: bool
    """Whether it is a part of a larger group, of which others may send messages."""

    is_simulated: bool
    """Whether its ranks are simulated, on a network whose times are predicted."""

    @property
    def clock(self) -> float:
        """The time in seconds; of ranks that are simulated, the virtual one."""

    def network(self) -> tuple[float, float]:
        """Latency and seconds per byte of messages; every rank calls it."""

    @property
    def origin(self) -> Any:
        """What it was split from, by one or several splits; itself if by none."""

    replicas: Any
    """For a pipeline of ``create_groups``: the ranks with the same stage; or None."""

    @property
    def traffic(self) -> Traffic:
        """Counts of the communication so far."""

    def split(self, color: int | None, key: int) -> Any:
        """The group of ranks with the same color, ordered by ``key``; or None."""

    def split_by(self, color_of: Callable[[int], int]) -> Any:
        """The group of ranks with the same ``color_of(rank)``, in rank order."""

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        out: Any = None,
        wait: bool = True,
        dtype: DtypeLike | None = None,
    ) -> Any:
        """The sum, mean, max, min or prod of the ranks' arrays, or lists of arrays."""

    def reduce_scatter(
        self, x: Array, op: str = "sum", out: Array | None = None, wait: bool = True
    ) -> Any:
        """The reduction of ``x[rank]`` of all ranks."""

    def all_gather(self, x: Array, out: Array | None = None, wait: bool = True) -> Any:
        """The ranks' arrays, stacked along a new first axis."""

    def all_to_all(self, x: Array, out: Array | None = None, wait: bool = True) -> Any:
        """Sends ``x[r]`` to rank ``r``; row ``r`` of the result is from rank ``r``."""

    def broadcast(self, x: Array, root: int = 0, wait: bool = True) -> Any:
        """Overwrites ``x`` by the root's array and returns it."""

    def barrier(self) -> None:
        """Returns when every rank has called it."""

    def shares_memory(self) -> bool:
        """Whether the ranks of this node share memory."""

    def window(self, shape: Any, dtype: DtypeLike = np.float32) -> Array:
        """A new array in memory that the ranks of this node share."""

    def copy_to_window(self, xs: Sequence[Array]) -> list[Array]:
        """Copies of arrays in such memory; none if the ranks do not share memory."""

    def window_of_peer(self, x: Array, local_rank: int) -> Array:
        """The array of another rank of this node at the place of ``x`` in a window."""

    def window_layout(self, xs: Sequence[Array]) -> int:
        """A number that identifies where in windows arrays are; 0 if they are not."""

    def send(self, data: Any, dest: int, tag: int = 0, wait: bool = True) -> Any:
        """Sends an array or a tuple of arrays to a rank."""

    def probe(
        self, source: int = -1, tag: int = -1, timeout: float | None = None
    ) -> Status | None:
        """Waits for a message, of any rank and tag by default, and tells its source."""

    def recv(
        self,
        source: int,
        tag: int = 0,
        out: Array | None = None,
        wait: bool = True,
        status: Any = None,
    ) -> Any:
        """Receives an array or a tuple of arrays from a rank, or from any."""

    def allreduce(self, data: Any) -> Any:
        """The sum of the ranks' arrays."""

    def allgather(self, x: Any) -> tuple[Any, ...]:
        """The ranks' arrays, whose shapes may differ."""

    def alltoall(self, xs: Sequence[Array]) -> tuple[Array, ...]:
        """``xs[r]`` goes to rank ``r``; item ``r`` of the result is from rank ``r``."""

    def bcast(self, data: Any, root: int = 0, max_buf_len: int | None = None) -> Any:
        """The root's array or tuple of arrays."""

    def gather(self, data: Any, root: int = 0) -> tuple[Any, ...] | None:
        """The ranks' arrays on the root, None elsewhere."""

    def scatter(self, xs: Any, root: int = 0) -> Array:
        """Item ``rank`` of the root's ``xs``."""

    def send_obj(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends an object, pickled."""

    def recv_obj(self, source: int, tag: int = -1, status: Any = None) -> Any:
        """Receives an object, with any tag by default."""

    def bcast_obj(self, obj: Any, max_buf_len: int | None = None, root: int = 0) -> Any:
        """The root's object."""

    def gather_obj(self, obj: Any, root: int = 0) -> list[Any] | None:
        """The ranks' objects on the root, None elsewhere."""

    def allgather_obj(self, obj: Any) -> list[Any]:
        """The ranks' objects."""

    def scatter_obj(self, objs: Any, root: int = 0) -> Any:
        """Item ``rank`` of the root's ``objs``."""

    def allreduce_obj(self, obj: Any) -> Any:
        """The ranks' objects, combined by ``+`` in rank order."""

    def bcast_data(self, model: Model) -> None:
        """Overwrites a model's parameters and persistent arrays by those of rank 0."""

    def multi_node_mean_grad(self, model: Model, zero_fill: bool = False) -> None:
        """Replaces the gradients of a model by their means over the ranks."""

    def get_config(self, name: str | None = None) -> Any:
        """The value of a setting, or all settings."""

    def set_config(self, name: str, value: Any = True, **kwargs: Any) -> None:
        """Changes the setting ``name`` to ``value``."""

    def finalize(self) -> None:
        """Ends the use of this communicator."""

    def abort(self, code: int = 1) -> None:
        """Ends all ranks."""
