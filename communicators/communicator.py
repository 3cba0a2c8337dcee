"""ChainerMN's methods: arrays of any shape and dtype, and Python objects."""

from __future__ import annotations

import functools
import operator
import pickle
from typing import Any

import numpy as np

from renga.communicators import headers, packing
from renga.communicators.array_communicator import ArrayCommunicator
from renga.communicators.arrival import Arrival, check_room, unexpected
from renga.communicators.finalized import Finalized
from renga.communicators.headers import ARRAY, OBJECT, TUPLE, header, raw
from renga.communicators.work import Work

_SETTINGS = {"allreduce_grad_dtype", "batched_copy", "all_reduce_algorithm"}


class Communicator(ArrayCommunicator):
    """A group of ranks that act together."""

    def __init__(self, native: Any) -> None:
        super().__init__(native)
        self._configs.update(allreduce_grad_dtype=None, batched_copy=True)
        self._configs["all_reduce_algorithm"] = None

    def finalize(self) -> None:
        """Ends the use of this communicator, on which every call raises from then on.

        Work under way goes on.
        """
        self._native = Finalized()

    def __deepcopy__(self, memo: Any) -> Communicator:
        """Itself: the copy of a model is on the same ranks."""
        return self

    def split(self, color: int | None, key: int) -> Any:
        """The group of ranks with the same color, in the order of ``key``.

        None for a rank whose color is None.
        """
        native = self._native.split(color, key)
        if native is None:
            return None
        group = type(self)(native)
        for name, value in self._configs.items():
            if name in _SETTINGS:
                group.set_config(name, value=value)
            else:
                group._configs[name] = value
        return group

    def set_config(self, name: str, **kwargs: Any) -> None:
        """Changes a setting to ``value``.

        ``allreduce_grad_dtype`` is what gradients travel as. With
        ``all_reduce_algorithm``, reductions go by messages and by this algorithm, be
        it the fastest or not: ``whole``, ``direct``, ``recursive_doubling``,
        ``rabenseifner``, ``tree``, ``torus`` or ``ring``. ``batched_copy`` changes
        nothing.

        Raises:
            ValueError: there is no such setting.
        """
        if name not in _SETTINGS or set(kwargs) != {"value"}:
            super().set_config(name, **kwargs)
        if name == "all_reduce_algorithm":
            self._native.set_algorithm(kwargs["value"] or "")
        self._configs[name] = kwargs["value"]

    def allreduce(self, data: Any) -> Any:
        """The sum of the ranks' arrays, or of each of a tuple, on every rank."""
        if isinstance(data, tuple):
            return tuple(self.all_reduce(x) for x in data)
        return self.all_reduce(data)

    def allgather(self, x: Any) -> tuple[np.ndarray, ...]:
        """The ranks' arrays, or tuples of them, as a tuple; shapes may differ."""
        if isinstance(x, tuple):
            return tuple(self.allgather_obj(x))
        return self._allgather("allgather", np.asarray(x))

    def _allgather(self, name: str, x: np.ndarray) -> tuple[np.ndarray, ...]:
        received = [headers.blank_header() for _ in range(self.size)]
        self._native.gather_parts(name, header(x), received)
        ys = tuple(headers.blank_array(h) for h in received)
        self._native.gather_parts(name, raw(x), [raw(y) for y in ys])
        return ys

    def alltoall(self, xs: Any) -> tuple[np.ndarray, ...]:
        """A tuple of what each rank has at this rank's place of its ``xs``."""
        xs = [np.asarray(x) for x in xs]
        if len(xs) != self.size:
            raise ValueError(f"alltoall: expected {self.size} arrays, got {len(xs)}")
        received = [headers.blank_header() for _ in range(self.size)]
        self._exchange("alltoall", None, [header(x) for x in xs], received)
        ys = tuple(headers.blank_array(h) for h in received)
        self._exchange("alltoall", None, [raw(x) for x in xs], [raw(y) for y in ys])
        return ys

    def _exchange(
        self, name: str, root: int | None, sent: list[Any], received: list[Any]
    ) -> None:
        self._native.exchange(name, root, sent, received)

    def _root(self, name: str, root: int) -> int:
        """A rank, as an int.

        Raises:
            ValueError: there is no such rank.
        """
        rank = operator.index(root)
        if not 0 <= rank < self.size:
            raise ValueError(f"{name}: expected a rank in [0, {self.size}), got {rank}")
        return rank

    def bcast(self, data: Any, max_buf_len: int | None = None, root: int = 0) -> Any:
        """The root's array or tuple; ``data`` matters on the root only."""
        kind, x = ARRAY, data
        if self.rank == self._root("bcast", root):
            kind = TUPLE if isinstance(data, tuple) else ARRAY
            x = _pickled(data) if kind == TUPLE else np.asarray(data)
        kind, y = self._bcast("bcast", kind, x, root)
        return y if kind == ARRAY else _unpickled(y)

    def _bcast(
        self, name: str, kind: bytes, x: Any, root: int
    ) -> tuple[bytes, np.ndarray]:
        """The root's array and its kind; the others' do not matter."""
        root = self._root(name, root)
        at_root = self.rank == root
        head = header(x, kind).copy() if at_root else headers.blank_header()
        self._native.broadcast(head, root, name=name)
        kind = headers.kind_of(head)
        y = x if at_root else headers.blank_array(head, kind)
        self._native.broadcast(raw(y), root, name=name)
        return kind, y

    def gather(self, data: Any, root: int = 0) -> tuple[np.ndarray, ...] | None:
        """The ranks' arrays, or tuples of them, on the root; None elsewhere."""
        if isinstance(data, tuple):
            gathered = self.gather_obj(data, root)
            return None if gathered is None else tuple(gathered)
        return self._gather("gather", np.asarray(data), root)

    def _gather(
        self, name: str, x: np.ndarray, root: int
    ) -> tuple[np.ndarray, ...] | None:
        root = self._root(name, root)
        received = [headers.blank_header() for _ in range(self.size)]
        self._exchange_with_root(name, root, header(x), received)
        if self.rank != root:
            self._exchange_with_root(name, root, raw(x), [])
            return None
        ys = tuple(headers.blank_array(h) for h in received)
        self._exchange_with_root(name, root, raw(x), [raw(y) for y in ys])
        return ys

    def _exchange_with_root(
        self, name: str, root: int, x: np.ndarray, received: list[np.ndarray]
    ) -> None:
        nothing: list[Any] = [None] * self.size
        sent = list(nothing)
        sent[root] = x
        at_root = self.rank == root
        self._exchange(name, root, sent, received if at_root else nothing)

    def scatter(self, xs: Any, root: int = 0) -> np.ndarray:
        """This rank's array of the root's ``xs``, a tuple or an array of them."""
        return self._scatter("scatter", xs, root)

    def _scatter(self, name: str, xs: Any, root: int) -> np.ndarray:
        root = self._root(name, root)
        nothing: list[Any] = [None] * self.size
        sent = [np.asarray(x) for x in xs] if self.rank == root else nothing
        if len(sent) != self.size:
            raise ValueError(f"{name}: expected {self.size} arrays, got {len(sent)}")
        received = list(nothing)
        received[root] = head = headers.blank_header()
        at_root = self.rank == root
        heads = [header(x) for x in sent] if at_root else nothing
        self._exchange(name, root, heads, received)
        received[root] = y = headers.blank_array(head)
        received[root] = raw(y)
        data = [raw(x) for x in sent] if at_root else nothing
        self._exchange(name, root, data, received)
        return y

    def send(self, data: Any, dest: int, tag: int = 0, wait: bool = True) -> Any:
        """Sends an array or a tuple of arrays to a rank."""
        parts = []
        if isinstance(data, (list, tuple)):
            parts.append(header(np.empty(len(data), np.bool_), TUPLE))
        else:
            data = [data]
        for x in map(np.asarray, data):
            parts += [header(x), raw(x)]
        return self._send(parts, dest, tag, wait)

    def _send(self, parts: list[np.ndarray], dest: int, tag: int, wait: bool) -> Any:
        if wait and dest == self.rank:
            # It would wait for a recv that comes after it.
            self._native.send([part.copy() for part in parts], dest, tag, False)
            return None
        work = self._native.send(parts, dest, tag, wait)
        return None if wait else Work(work, lambda: None)

    def recv(
        self, source: int, tag: int = 0, out: Any = None, wait: bool = True
    ) -> Any:
        """Receives the array or the tuple of arrays that a rank sends.

        With ``out``, an array of the shape and dtype that are sent, receives into
        it; only then it can go on in the background.
        """
        if out is not None:
            check_room(out)
            return (self._recv_into if wait else self._recv_later)(out, source, tag)
        if not wait:
            raise ValueError("recv: expected out, without which it has to wait")
        kind, received = self._recv_any(self._recv_header(source, tag), source, tag)
        if kind == OBJECT:
            headers.require_kind(kind, ARRAY)
        return received

    def _recv_header(self, source: int, tag: int) -> np.ndarray:
        head = headers.blank_header()
        self._native.receive([head], source, tag)
        return head

    def _recv_any(self, head: np.ndarray, source: int, tag: int) -> tuple[bytes, Any]:
        """What follows a header, and of what kind it is."""
        kind = headers.kind_of(head)
        if kind == TUPLE:
            count = headers.blank_array(head, TUPLE).size
            parts = (self._recv_header(source, tag) for _ in range(count))
            return kind, tuple(self._recv_any(part, source, tag)[1] for part in parts)
        x = headers.blank_array(head, kind)
        self._native.receive([raw(x)], source, tag)
        return kind, x

    def _recv_into(self, out: np.ndarray, source: int, tag: int) -> np.ndarray:
        head = self._recv_header(source, tag)
        if not headers.announces(head, out):
            self._recv_any(head, source, tag)  # or the next recv would find it
            raise unexpected(head, out, source)
        self._native.receive([raw(out)], source, tag)
        return out

    def _recv_later(self, out: np.ndarray, source: int, tag: int) -> Work:
        # Something else may come, which must not be written into out.
        head, room = headers.blank_header(), np.empty(out.shape, out.dtype)
        native = self._native.receive([head, raw(room)], source, tag, False)
        return Arrival(native, head, room, out, source)

    def send_obj(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends any object that can be pickled."""
        x = _pickled(obj)
        self._send([header(x, OBJECT), x], dest, tag, True)

    def recv_obj(self, source: int, tag: int = 0) -> Any:
        """Receives an object."""
        kind, x = self._recv_any(self._recv_header(source, tag), source, tag)
        headers.require_kind(kind, OBJECT)
        return _unpickled(x)

    def bcast_obj(self, obj: Any, max_buf_len: int | None = None, root: int = 0) -> Any:
        """The root's object, on every rank."""
        at_root = self.rank == self._root("bcast_obj", root)
        x = _pickled(obj) if at_root else None
        _, y = self._bcast("bcast_obj", OBJECT, x, root)
        return obj if at_root else _unpickled(y)

    def gather_obj(self, obj: Any, root: int = 0) -> list[Any] | None:
        """The ranks' objects as a list, on the root; None elsewhere."""
        gathered = self._gather("gather_obj", _pickled(obj), root)
        return None if gathered is None else [_unpickled(x) for x in gathered]

    def allgather_obj(self, obj: Any) -> list[Any]:
        """The ranks' objects as a list, on every rank."""
        return [_unpickled(x) for x in self._allgather("allgather_obj", _pickled(obj))]

    def scatter_obj(self, objs: Any, root: int = 0) -> Any:
        """This rank's object of the root's ``objs``."""
        at_root = self.rank == self._root("scatter_obj", root)
        sent = [_pickled(obj) for obj in objs] if at_root else None
        return _unpickled(self._scatter("scatter_obj", sent, root))

    def allreduce_obj(self, obj: Any) -> Any:
        """The ranks' objects joined by ``+`` in rank order, on every rank."""
        return functools.reduce(operator.add, self.allgather_obj(obj))

    def bcast_data(self, model: Any) -> None:
        """Gives every rank the parameters and persistent arrays of rank 0."""
        packing.broadcast(self, model)

    def multi_node_mean_grad(self, model: Any, zero_fill: bool = False) -> None:
        """Replaces the gradients of a model by their mean over the ranks.

        Where ``zero_fill`` is true, a parameter without a gradient counts as one
        whose gradient is zero.
        """
        packing.mean_gradients(self, model, zero_fill)


def _pickled(obj: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL), np.uint8)


def _unpickled(x: np.ndarray) -> Any:
    return pickle.loads(x.data)
