"""Communicators: ChainerMN's methods on top of collectives on arrays."""

from __future__ import annotations

import functools
import operator
import pickle
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import numpy as np

from renga.communicators import packing
from renga.communicators.array_communicator import (
    ArrayCommunicator,
    as_operand,
    checked_rank,
)
from renga.communicators.communicator_base import ArrayOrArrays
from renga.communicators.failure import Finalized
from renga.communicators.messages import headers, pending_receive
from renga.communicators.messages.headers import ARRAY, OBJECT, TUPLE, as_bytes, header
from renga.communicators.messages.status import ANY_SOURCE, ANY_TAG, Status, given
from renga.communicators.transport.traffic import Traffic
from renga.communicators.work import Work
from renga.core.types import Array

_T = TypeVar("_T")
_SETTINGS = {"allreduce_grad_dtype", "batched_copy", "all_reduce_algorithm"}


class Communicator(ArrayCommunicator):
    """A group of ranks that communicate; all call the same collectives in one order.

    Methods with a ``wait`` argument return their result, or a
    :class:`~renga.communicators.Work` if ``wait`` is false. Methods with ChainerMN's
    names take arrays that differ in shape and dtype between ranks, and objects, which
    are pickled: a header with the shape or size is sent first.
    """

    def __init__(self, native: object) -> None:
        super().__init__(native)
        self._configs.update(allreduce_grad_dtype=None, batched_copy=False)
        self._configs["all_reduce_algorithm"] = None

    @property
    def traffic(self) -> Traffic:
        """Counts of the communication so far."""
        return Traffic.from_counts(self.native.traffic())

    def network(self) -> tuple[float, float]:
        """Latency and seconds per byte of messages between the halves of the ranks.

        Every rank calls it: the messages of ranks that exist are measured.
        """
        network: tuple[float, float] = self.native.network()
        return network

    def finalize(self) -> None:
        """Ends the use of this communicator: every later call raises RuntimeError.

        Communication in flight is completed.
        """
        self.native = Finalized()

    def __deepcopy__(self, memo: Any) -> Communicator:
        """Itself: the copy of a model communicates with the same ranks."""
        return self

    def split(self, color: int | None, key: int) -> Any:
        """The group of ranks with the same color, ordered by ``key``, then rank.

        None for a rank whose color is None.

        Raises:
            TypeError: if the color or the key is no integer.
            ValueError: if it has more than 32 bits.
        """
        if color is not None:
            color = _checked_int32("color", color)
        native = self.native.split(color, _checked_int32("key", key))
        if native is None:
            return None
        group = type(self)(native)
        group.is_subgroup = self.is_subgroup or group.size < self.size
        group._origin = self.origin
        for name, value in self._configs.items():
            if name in _SETTINGS:
                group.set_config(name, value=value)
            else:
                group._configs[name] = value
        return group

    def set_config(self, name: str, value: object = True, **kwargs: object) -> None:
        """Changes the setting ``name`` to ``value``.

        ``allreduce_grad_dtype`` is the communication dtype of gradients.
        ``all_reduce_algorithm`` makes reductions send messages by this algorithm
        instead of the fastest: ``all_gather``, ``direct``, ``recursive_doubling``,
        ``rabenseifner``, ``tree``, ``torus`` or ``ring``. ``batched_copy`` has no
        effect.

        Raises:
            ValueError: if there is no such setting.
        """
        if name not in _SETTINGS or kwargs:
            super().set_config(name, **kwargs)
        if name == "all_reduce_algorithm":
            self.native.set_algorithm(value or "")
        self._configs[name] = value

    def allreduce(self, data: ArrayOrArrays) -> ArrayOrArrays:
        """The sum of the ranks' arrays, or of each array of a tuple."""
        if isinstance(data, tuple):
            return tuple(self.all_reduce(x) for x in data)
        total: ArrayOrArrays = self.all_reduce(data)
        return total

    def allgather(self, x: Array | tuple[Array, ...]) -> tuple[Array, ...]:
        """The ranks' arrays, or tuples of arrays; shapes may differ."""
        if isinstance(x, tuple):
            xs: list[Any] = self.allgather_obj(x)
            return tuple(xs)
        return self._allgather("allgather", as_operand("allgather", x))

    def _allgather(self, name: str, x: Array) -> tuple[Array, ...]:
        return tuple(self._with_headers("all_gatherv", name, [x], range(self.size)))

    def alltoall(self, xs: Sequence[Array] | Array) -> tuple[Array, ...]:
        """``xs[r]`` goes to rank ``r``; item ``r`` of the result is from rank ``r``."""
        sent = self._operands("alltoall", xs)
        ys = self._with_headers("all_to_allv", "alltoall", sent, range(self.size))
        return tuple(ys)

    def _operands(self, name: str, xs: Any) -> list[Array]:
        """An array for each rank."""
        if not np.iterable(xs):
            raise TypeError(f"{name}: expected {self.size} arrays, got {type(xs)}")
        arrays = [as_operand(name, x) for x in xs]
        if len(arrays) != self.size:
            raise ValueError(f"{name}: expected {self.size} arrays, got {len(arrays)}")
        return arrays

    def _with_headers(
        self,
        collective: str,
        name: str,
        xs: Sequence[Array | None],
        sources: Collection[int],
        root: int | None = None,
    ) -> list[Any]:
        """Runs a collective on headers, then on the arrays that they describe.

        Args:
            collective: all_gatherv or all_to_allv.
            name: the method that is made of it.
            xs: what this rank sends; None for nothing.
            sources: the ranks from which it receives.
            root: of the method, if it has one.

        Returns:
            What is received from each rank; None for nothing.
        """
        heads = [
            headers.empty_header() if r in sources else None for r in range(self.size)
        ]
        sent = [None if x is None else header(name, x) for x in xs]
        self.native.call(collective, sent, heads, "sum", "", root, True, name)
        ys = [None if head is None else headers.empty_array(head) for head in heads]
        sent = [None if x is None else headers.as_known(x) for x in xs]
        received = [None if y is None else headers.as_known(y) for y in ys]
        self.native.call(collective, sent, received, "sum", "", root, True, name)
        return ys

    def _root(self, name: str, root: int) -> int:
        return checked_rank(name, root, self.size)

    def bcast(  # type: ignore[override]  # the base has the order of ChainerMN's base
        self, data: Array | None, root: int = 0, max_buf_len: int | None = None
    ) -> Array:
        """The root's array or tuple of arrays; ``data`` is ignored elsewhere."""
        kind, x = ARRAY, data
        if self.rank == self._root("bcast", root):
            kind = TUPLE if isinstance(data, tuple) else ARRAY
            x = _pickled(data) if kind == TUPLE else as_operand("bcast", data)
        kind, y = self._bcast("bcast", kind, x, root)
        return y if kind == ARRAY else _unpickled(y)

    def _bcast(self, name: str, kind: bytes, x: Any, root: int) -> tuple[bytes, Array]:
        """The root's array and its kind; the others' arguments are ignored."""
        root = self._root(name, root)
        is_root = self.rank == root
        head = header(name, x, kind) if is_root else headers.empty_header()
        self._broadcast_bytes(name, head, root)
        kind = headers.kind_of(head)
        y = x if is_root else headers.empty_array(head, kind)
        self._broadcast_bytes(name, as_bytes(y), root)
        return kind, y

    def _broadcast_bytes(self, name: str, x: Array, root: int) -> None:
        sent, received = ([x], []) if self.rank == root else ([], [x])
        self.native.call("broadcast", sent, received, "sum", "", root, True, name)

    def gather(
        self, data: Array | tuple[Array, ...], root: int = 0
    ) -> tuple[Array, ...] | None:
        """The ranks' arrays, or tuples of arrays, on the root; None elsewhere."""
        if isinstance(data, tuple):
            gathered: list[Any] | None = self.gather_obj(data, root)
            return None if gathered is None else tuple(gathered)
        return self._gather("gather", as_operand("gather", data), root)

    def _gather(self, name: str, x: Array, root: int) -> tuple[Array, ...] | None:
        root = self._root(name, root)
        sent = [x if r == root else None for r in range(self.size)]
        is_root = self.rank == root
        sources = range(self.size) if is_root else ()
        ys = self._with_headers("all_to_allv", name, sent, sources, root)
        return tuple(ys) if is_root else None

    def scatter(self, xs: Sequence[Array] | Array | None, root: int = 0) -> Array:
        """Item ``rank`` of the root's ``xs``, a sequence of arrays or an array."""
        item: Array = self._scatter("scatter", xs, root)
        return item

    def _scatter(self, name: str, xs: Any, root: int) -> Any:
        root = self._root(name, root)
        is_root = self.rank == root
        sent = self._operands(name, xs) if is_root else [None] * self.size
        return self._with_headers("all_to_allv", name, sent, (root,), root)[root]

    def send(
        self,
        data: Array | list[Array] | tuple[Array, ...],
        dest: int,
        tag: int = 0,
        wait: bool = True,
    ) -> Any:
        """Sends an array or a tuple of arrays to a rank."""
        messages = []
        if isinstance(data, (list, tuple)):
            messages.append(header("send", np.empty(len(data), np.bool_), TUPLE))
        else:
            data = [data]
        for x in data:
            messages += self._messages_of(x)
        return self._send(messages, dest, tag, wait)

    def _messages_of(self, x: Any) -> list[Array]:
        x = as_operand("send", x)
        return [header("send", x), as_bytes(x)]

    def _received(self, kind: bytes, x: Array) -> Any:
        """A received array, by the kind in its header."""
        return x

    def _send(self, messages: list[Array], dest: int, tag: int, wait: bool) -> Any:
        if wait and dest == self.rank:
            # The recv that it would wait for comes after it.
            self.native.send([x.copy() for x in messages], dest, tag, False)
            return None
        work = self.native.send(messages, dest, tag, wait)
        return None if wait else Work(work, lambda: None)

    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, timeout: float | None = None
    ) -> Status | None:
        """Waits for a message without receiving it.

        The next ``recv`` of the source and tag that are found gets the message. One
        that a ``recv`` with ``wait=False`` waits for is not found. A thread that
        probes for any tag has to be the only one that receives.

        Args:
            source: the rank that sends; ANY_SOURCE for any.
            tag: of the message; ANY_TAG for any.
            timeout: the seconds to wait, after which None is returned; 0 for not at
                all. By default as long as ``recv`` waits, with its errors.
        """
        seconds = None if timeout is None else float(timeout)
        if seconds is not None and not seconds >= 0:
            raise ValueError(
                f"probe: expected a time-out of 0 s or more, got {timeout}"
            )
        found = self.native.probe(
            given(source, ANY_SOURCE), given(tag, ANY_TAG), seconds
        )
        return None if found is None else Status(*found)

    def _found(self, source: int, tag: int, status: Any = None) -> tuple[int, int]:
        """The source and tag of the next message that matches; fills ``status``."""
        if source == ANY_SOURCE or tag == ANY_TAG:
            found = self.probe(source, tag)
            assert found is not None
            source, tag = found.source, found.tag
        if status is not None:
            status.source, status.tag = source, tag
        return source, tag

    def recv(
        self,
        source: int,
        tag: int = 0,
        out: Array | None = None,
        wait: bool = True,
        status: object = None,
    ) -> Any:
        """Receives an array or a tuple of arrays from a rank.

        Args:
            source: the rank that sends; ANY_SOURCE for any.
            tag: of the message; ANY_TAG for any.
            out: an array of the shape and dtype that are sent, to receive into.
            wait: false requires ``out``, a source and a tag, and returns a
                :class:`Work`.
            status: a :class:`Status`, renga's or mpi4py's, to be given the source and
                the tag of the message.
        """
        if wait or out is None:
            source, tag = self._found(source, tag, status)
        if out is not None:
            pending_receive.check_out(out)
            return (self._recv_into if wait else self._irecv_into)(out, source, tag)
        if not wait:
            raise ValueError("recv: expected out, which wait=False requires")
        kind, received = self._recv_any(self._recv_header(source, tag), source, tag)
        if kind == OBJECT:
            headers.require_kind(kind, ARRAY)
        return received

    def _recv_header(self, source: int, tag: int) -> Array:
        head = headers.empty_header()
        self.native.receive([head], source, tag)
        return head

    def _recv_any(self, head: Array, source: int, tag: int) -> tuple[bytes, Any]:
        """The kind of message and the data that follow a header."""
        kind = headers.kind_of(head)
        if kind == TUPLE:
            count = headers.empty_array(head, TUPLE).size
            heads = (self._recv_header(source, tag) for _ in range(count))
            return kind, tuple(self._recv_any(head, source, tag)[1] for head in heads)
        x = headers.empty_array(head, kind)
        self.native.receive([as_bytes(x)], source, tag)
        return kind, self._received(kind, x)

    def _recv_into(self, out: Array, source: int, tag: int) -> Array:
        head = self._recv_header(source, tag)
        if not headers.describes(head, out):
            self._recv_any(head, source, tag)  # otherwise the next recv would get it
            raise pending_receive.mismatch(head, out, source)
        self.native.receive([as_bytes(out)], source, tag)
        return out

    def _irecv_into(self, out: Array, source: int, tag: int) -> Work:
        # An array of another shape or dtype is not written into out.
        head = headers.empty_header()
        messages = [head, as_bytes(out)]
        native = self.native.receive(messages, source, tag, False, header("recv", out))
        return pending_receive.PendingReceive(native, head, out, source)

    def send_obj(self, obj: object, dest: int, tag: int = 0) -> None:
        """Sends an object, pickled."""
        x = _pickled(obj)
        self._send([header("send_obj", x, OBJECT), x], dest, tag, True)

    def recv_obj(self, source: int, tag: int = ANY_TAG, status: object = None) -> Any:
        """Receives an object; the arguments are those of ``recv``.

        As in ChainerMN, the status may be the second argument.
        """
        if hasattr(tag, "Get_source"):
            tag, status = ANY_TAG, tag
        source, tag = self._found(source, tag, status)
        kind, x = self._recv_any(self._recv_header(source, tag), source, tag)
        headers.require_kind(kind, OBJECT)
        return _unpickled(x)

    def bcast_obj(
        self, obj: object, max_buf_len: int | None = None, root: int = 0
    ) -> Any:
        """The root's object."""
        is_root = self.rank == self._root("bcast_obj", root)
        x = _pickled(obj) if is_root else None
        _, y = self._bcast("bcast_obj", OBJECT, x, root)
        return obj if is_root else _unpickled(y)

    def gather_obj(self, obj: _T, root: int = 0) -> list[_T] | None:
        """The ranks' objects on the root, None elsewhere."""
        gathered = self._gather("gather_obj", _pickled(obj), root)
        return None if gathered is None else [_unpickled(x) for x in gathered]

    def allgather_obj(self, obj: _T) -> list[_T]:
        """The ranks' objects."""
        return [_unpickled(x) for x in self._allgather("allgather_obj", _pickled(obj))]

    def scatter_obj(self, objs: Sequence[object], root: int = 0) -> Any:
        """Item ``rank`` of the root's ``objs``."""
        is_root = self.rank == self._root("scatter_obj", root)
        sent = None
        if is_root:
            if not np.iterable(objs):
                raise TypeError(
                    f"scatter_obj: expected {self.size} objects, got {type(objs)}"
                )
            sent = [_pickled(obj) for obj in objs]
        return _unpickled(self._scatter("scatter_obj", sent, root))

    def allreduce_obj(self, obj: _T) -> _T:
        """The ranks' objects, combined by ``+`` in rank order."""
        return functools.reduce(operator.add, self.allgather_obj(obj))

    def bcast_data(self, model: packing.Model) -> None:
        """Overwrites a model's parameters and persistent arrays by those of rank 0."""
        packing.broadcast(self, model)

    def multi_node_mean_grad(
        self, model: packing.Model, zero_fill: bool = False
    ) -> None:
        """Replaces the gradients of a model by their means over the ranks.

        If ``zero_fill`` is true, parameters without a gradient on any rank get zero.
        """
        packing.mean_gradients(self, model, zero_fill)


def _checked_int32(what: str, number: int) -> int:
    try:
        checked = operator.index(number)
    except TypeError:
        raise TypeError(
            f"split: expected {what} as an integer, got {number!r}"
        ) from None
    if not -(2**31) <= checked < 2**31:
        raise ValueError(f"split: expected {what} as a 32-bit integer, got {checked}")
    return checked


def _pickled(obj: Any) -> Array:
    return np.frombuffer(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL), np.uint8)


def _unpickled(x: Array) -> Any:
    return pickle.loads(x.data)
