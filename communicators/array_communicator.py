"""Collectives on arrays whose shapes all ranks know."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import numpy as np

from renga.communicators.communicator_base import CommunicatorBase
from renga.communicators.work import Work
from renga.core.types import Array, DTypeLike, Extents

_MAX_BYTES = 2**62


class Collective(NamedTuple):
    """A call of a collective, and what is made of its results."""

    #: As in ``collectives/collectives.cpp``.
    name: str
    #: The operands.
    xs: Sequence[Any]
    #: Where the results are written; None stands for a new array.
    outs: Sequence[Any]
    wait: bool
    op: str = "sum"
    dtype: DTypeLike | None = None
    root: int | None = None
    unpack: Callable[[list[Any]], Any] = operator.itemgetter(0)


class ArrayCommunicator(CommunicatorBase):
    """Collectives on arrays, in the foreground or in the background.

    With ``wait=False`` a method returns a :class:`Work` at once. Arrays may have
    any strides. Operands are combined in rank order, so all ranks get the same bits;
    sums of 16-bit floats are computed in float32. One thread at a time may be in a
    collective; any thread may send and receive messages.

    Raises:
        TimeoutError: if a rank does not take part within ``RENGA_TIMEOUT`` seconds.
        InvalidType: if the ranks' calls differ, or ``out`` does not have the shape
            and dtype of the result. Nothing has been written.
        ValueError: if ``out`` cannot be written to: it is read-only, misaligned or
            of foreign byte order, or its elements overlap.
        RuntimeError: if another thread is in a collective of this communicator.
    """

    def __init__(self, native: object) -> None:
        super().__init__()
        self.native: Any = native  # the compiled one, which checks less
        self.replicas: Any = None
        for name in ("rank", "size"):
            setattr(self, name, getattr(native, name))
        for scope in ("intra", "inter"):
            for name in (f"{scope}_rank", f"{scope}_size"):
                setattr(self, name, getattr(native, name))

    def all_reduce(
        self,
        x: Array | Sequence[Array],
        op: str = "sum",
        out: Array | Sequence[Array] | None = None,
        wait: bool = True,
        dtype: DTypeLike | None = None,
    ) -> Any:
        """The sum, mean, max, min or prod of the ranks' arrays.

        Args:
            x: an array, or a list of arrays of one dtype, which are reduced together.
            op: ``sum``, ``mean``, ``max``, ``min`` or ``prod``.
            out: where the result is written; may be ``x``, which is then reduced
                without a copy if it was made by :meth:`window`.
            wait: whether to wait for the result or to return a :class:`Work`.
            dtype: the communication dtype of floating elements, such as float16 or
                ``"bfloat16"``; by default that of ``x``.
        """
        if x is out and wait and dtype is None:
            if self.native.all_reduce_in_place(x, op):
                return x
        if not isinstance(x, (list, tuple)):
            return self._collective(
                Collective("all_reduce", [x], [out], wait, op, dtype)
            )
        outs = [None] * len(x) if out is None else list(out)
        if len(x) != len(outs):
            raise ValueError(
                f"all_reduce: expected as many results as arrays, got {len(outs)} "
                f"for {len(x)}"
            )
        return self._collective(
            Collective("all_reduce", x, outs, wait, op, dtype, unpack=list)
        )

    def reduce_scatter(
        self, x: Array, op: str = "sum", out: Array | None = None, wait: bool = True
    ) -> Any:
        """The reduction of ``x[rank]`` of all ranks.

        Shapes:
            x: (size, ...)
            result: (...)
        """
        return self._collective(Collective("reduce_scatter", [x], [out], wait, op))

    def all_gather(self, x: Array, out: Array | None = None, wait: bool = True) -> Any:
        """The ranks' arrays, which have one shape.

        Shapes:
            x: (...)
            result: (size, ...)
        """
        return self._collective(Collective("all_gather", [x], [out], wait))

    def all_to_all(self, x: Array, out: Array | None = None, wait: bool = True) -> Any:
        """Sends ``x[r]`` to rank ``r``; row ``r`` of the result is from rank ``r``.

        Shapes:
            x: (size, ...)
            result: (size, ...)
        """
        return self._collective(Collective("all_to_all", [x], [out], wait))

    def broadcast(self, x: Array, root: int = 0, wait: bool = True) -> Any:
        """Overwrites ``x`` by the root's array and returns it."""
        root = checked_rank("broadcast", root, self.size)
        return self._collective(Collective("broadcast", [x], [x], wait, root=root))

    def _collective(self, call: Collective) -> Any:
        """Runs a collective; returns what it is unpacked to, or a :class:`Work`."""
        name, op, root = call.name, call.op, call.root
        if root is not None:  # the root only sends, the others only receive
            ys = list(call.outs)
            sent, received = (call.xs, []) if root == self.rank else ([], ys)
        else:
            sent = [as_operand(name, x) for x in call.xs]
            ys = [_result(name, x, y, self.size) for x, y in zip(sent, call.outs)]
            received = ys
            if name == "all_reduce":
                sent = [view for x in sent for view in _views(x, op)]
                received = [view for y in ys for view in _views(y, op)]
        return self._run(call, sent, received, ys)

    def _run(
        self, call: Collective, sent: Sequence[Any], received: list[Any], ys: list[Any]
    ) -> Any:
        """Has the compiled communicator send and receive; the results are ``ys``."""
        native = None
        if sent or received:
            sent_as = "" if call.dtype is None else dtype_name(call.dtype)
            options = call.op, sent_as, call.root, call.wait
            native = self.native.call(call.name, sent, received, *options)
        return call.unpack(ys) if call.wait else Work(native, lambda: call.unpack(ys))

    def shares_memory(self) -> bool:
        """Whether the ranks of this node share memory."""
        return bool(self.native.shares_memory)

    def window(self, shape: Extents, dtype: DTypeLike = np.float32) -> Array:
        """An array, not initialized, in memory that the ranks of this node share.

        If all ranks are on one node, reducing it or parts of it in place copies
        nothing. Every rank calls this, and reduces the same parts of its array as
        the others.
        """
        dtype = np.dtype(dtype)
        if dtype.hasobject:
            raise TypeError(f"window: expected a dtype of numbers, got {dtype}")
        extents = tuple(map(operator.index, shape if np.iterable(shape) else (shape,)))
        size = math.prod(extents) * dtype.itemsize
        if min(extents, default=0) < 0 or size > _MAX_BYTES:
            raise ValueError(f"window: expected a shape, got {extents}")
        memory: Array = self.native.window(size)
        return memory.view(dtype).reshape(extents)

    def copy_to_window(self, xs: Sequence[Array]) -> list[Array]:
        """Row-major copies of arrays in memory that all ranks share.

        Every rank calls it with arrays of the same shapes. The list is empty if the
        ranks do not share memory.
        """
        if self.size != self.intra_size:
            return []
        copies: list[Array] = self.native.copy_to_window(xs)
        return copies

    def window_of_peer(self, x: Array, local_rank: int) -> Array:
        """The array of another rank of this node at the offset of ``x`` in its window.

        Raises:
            ValueError: if there is no such rank, or ``x`` is not in a window.
        """
        peer: Array = self.native.window_of_peer(x, local_rank)
        return peer

    def window_layout(self, xs: Sequence[Array]) -> int:
        """A number that identifies where in windows the arrays are.

        It is equal on ranks whose arrays have the same offsets in the same windows,
        and 0 if one of them is not in a window.
        """
        layout: int = self.native.window_layout(xs)
        return layout

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self.native.barrier()

    def abort(self, code: int = 1) -> None:
        """Ends all ranks, because this one cannot go on."""
        self.native.abort(code)


def _views(x: Array, op: str) -> list[Array]:
    """Arrays in the memory of ``x`` whose reductions are the reduction of ``x``.

    Complex numbers, which the core lacks, are added by their parts.

    Raises:
        TypeError: if it is no array.
    """
    if not isinstance(x, np.ndarray):
        raise TypeError(f"all_reduce: out: expected a numpy.ndarray, got {type(x)}")
    if x.dtype.kind == "c" and x.dtype.itemsize <= 16 and op in ("sum", "mean"):
        return [x.real, x.imag]
    return [x]


def checked_rank(name: str, rank: int, size: int) -> int:
    """``rank`` as an int.

    Raises:
        TypeError: if it is no integer.
        ValueError: if there is no such rank.
    """
    try:
        number = operator.index(rank)
    except TypeError:
        raise TypeError(f"{name}: expected a rank, got {rank!r}") from None
    if not 0 <= number < size:
        raise ValueError(f"{name}: expected a rank in [0, {size}), got {number}")
    return number


def as_operand(name: str, x: Array | None) -> Array:
    """``x`` as an array; ``name`` is the collective's.

    Raises:
        ValueError: if it is a list of rows that have different lengths.
    """
    try:
        return np.asarray(x)
    except ValueError:
        raise ValueError(
            f"{name}: expected an array, got {type(x)} of rows of different lengths"
        ) from None


def result_shape(name: str, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The shape of a collective's result, by that of its operand.

    Raises:
        ValueError: if the operand has no axis, and a row for each rank is expected.
    """
    if name == "all_gather":
        return (size, *shape)
    if name == "all_reduce":
        return shape
    if not shape:
        raise ValueError(f"{name}: expected a row for each rank, got no axes")
    return shape[1:] if name == "reduce_scatter" else shape


def _result(name: str, x: Array, out: Array | None, size: int) -> Array:
    """``out``, or a new array for the result, in native byte order."""
    if out is not None and x.ndim:
        return out
    shape = result_shape(name, x.shape, size)
    dtype = x.dtype if x.dtype.isnative else x.dtype.newbyteorder("=")
    return np.empty(shape, dtype) if out is None else out


def dtype_name(dtype: DTypeLike) -> str:
    """The name of a communication dtype.

    Raises:
        TypeError: if it is no dtype.
    """
    try:
        return dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except TypeError:
        raise TypeError(f"all_reduce: expected a dtype, got {dtype!r}") from None
