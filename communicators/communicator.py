"""ChainerMN's methods: arrays of any shape and dtype, and Python objects."""

from __future__ import annotations

import functools
import operator
import pickle
from typing import Any

import numpy as np

from renga.communicators import headers, packing
from renga.communicators.array_communicator import ArrayCommunicator
from renga.communicators.headers import ARRAY, OBJECT, TUPLE, header, raw
from renga.communicators.work import Work

_SETTINGS = {"allreduce_grad_dtype", "batched_copy", "all_reduce_algorithm"}


class Communicator(ArrayCommunicator):
    """A group of ranks that act together."""

    def __init__(self, native: Any) -> None:
        super().__init__(native)
        self._configs.update(allreduce_grad_dtype=None, batched_copy=True)
        self._configs["all_reduce_algorithm"] = None

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
        x = np.asarray(x)
        received = [headers.blank_header() for _ in range(self.size)]
        self._native.all_gather(header(x), received)
        ys = tuple(headers.blank_array(h) for h in received)
        self._native.all_gather(raw(x), [raw(y) for y in ys])
        return ys

    def alltoall(self, xs: Any) -> tuple[np.ndarray, ...]:
        """A tuple of what each rank has at this rank's place of its ``xs``."""
        xs = [np.asarray(x) for x in xs]
        if len(xs) != self.size:
            raise ValueError(f"alltoall: expected {self.size} arrays, got {len(xs)}")
        received = [headers.blank_header() for _ in range(self.size)]
        self._native.exchange("alltoall", [header(x) for x in xs], received)
        ys = tuple(headers.blank_array(h) for h in received)
        self._native.exchange("alltoall", [raw(x) for x in xs], [raw(y) for y in ys])
        return ys

    def bcast(self, data: Any, max_buf_len: int | None = None, root: int = 0) -> Any:
        """The root's array or tuple; ``data`` matters on the root only."""
        kind, x = ARRAY, data
        if self.rank == root:
            kind = TUPLE if isinstance(data, tuple) else ARRAY
            x = _pickled(data) if kind == TUPLE else np.asarray(data)
        head = header(x, kind).copy() if self.rank == root else headers.blank_header()
        self._native.broadcast(head, root)
        kind = headers.kind_of(head)
        y = x if self.rank == root else headers.blank_array(head, kind)
        self._native.broadcast(raw(y), root)
        return y if kind == ARRAY else _unpickled(y)

    def gather(self, data: Any, root: int = 0) -> tuple[np.ndarray, ...] | None:
        """The ranks' arrays, or tuples of them, on the root; None elsewhere."""
        if isinstance(data, tuple):
            gathered = self.gather_obj(data, root)
            return None if gathered is None else tuple(gathered)
        data = np.asarray(data)
        received = [headers.blank_header() for _ in range(self.size)]
        self._exchange_with_root("gather", root, header(data), received)
        if self.rank != root:
            self._exchange_with_root("gather", root, raw(data), [])
            return None
        ys = tuple(headers.blank_array(h) for h in received)
        self._exchange_with_root("gather", root, raw(data), [raw(y) for y in ys])
        return ys

    def _exchange_with_root(
        self, name: str, root: int, x: np.ndarray, received: list[np.ndarray]
    ) -> None:
        nothing: list[Any] = [None] * self.size
        sent = list(nothing)
        sent[root] = x
        at_root = self.rank == root
        self._native.exchange(name, sent, received if at_root else nothing)

    def scatter(self, xs: Any, root: int = 0) -> np.ndarray:
        """This rank's array of the root's ``xs``, a tuple or an array of them."""
        nothing: list[Any] = [None] * self.size
        sent = [np.asarray(x) for x in xs] if self.rank == root else nothing
        if len(sent) != self.size:
            raise ValueError(f"scatter: expected {self.size} arrays, got {len(sent)}")
        received = list(nothing)
        received[root] = head = headers.blank_header()
        at_root = self.rank == root
        heads = [header(x) for x in sent] if at_root else nothing
        self._native.exchange("scatter", heads, received)
        received[root] = y = headers.blank_array(head)
        received[root] = raw(y)
        data = [raw(x) for x in sent] if at_root else nothing
        self._native.exchange("scatter", data, received)
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
            return self._recv_into(out, source, tag, wait)
        if not wait:
            raise ValueError("recv: expected out, without which it has to wait")
        head = self._recv_header(source, tag)
        if headers.kind_of(head) != TUPLE:
            return self._recv_body(head, source, tag, ARRAY)
        count = headers.blank_array(head, TUPLE).size
        return tuple(
            self._recv_body(self._recv_header(source, tag), source, tag, ARRAY)
            for _ in range(count)
        )

    def _recv_into(self, out: np.ndarray, source: int, tag: int, wait: bool) -> Any:
        if not out.flags.c_contiguous:
            raise ValueError(f"recv: expected a contiguous out, strides {out.strides}")
        head, expected = headers.blank_header(), header(out)

        def finish() -> np.ndarray:
            if not np.array_equal(head, expected):
                got = headers.blank_array(head)
                raise TypeError(
                    f"recv: expected {out.dtype} {out.shape}, "
                    f"got {got.dtype} {got.shape} from rank {source}"
                )
            return out

        work = self._native.receive([head, raw(out)], source, tag, wait)
        return finish() if wait else Work(work, finish)

    def _recv_header(self, source: int, tag: int) -> np.ndarray:
        head = headers.blank_header()
        self._native.receive([head], source, tag)
        return head

    def _recv_body(
        self, head: np.ndarray, source: int, tag: int, kind: bytes
    ) -> np.ndarray:
        x = headers.blank_array(head, kind)
        self._native.receive([raw(x)], source, tag)
        return x

    def send_obj(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends any object that can be pickled."""
        x = _pickled(obj)
        self._native.send([header(x, OBJECT), x], dest, tag)

    def recv_obj(self, source: int, tag: int = 0) -> Any:
        """Receives an object."""
        head = self._recv_header(source, tag)
        return _unpickled(self._recv_body(head, source, tag, OBJECT))

    def bcast_obj(self, obj: Any, max_buf_len: int | None = None, root: int = 0) -> Any:
        """The root's object, on every rank."""
        if self.rank == root:
            self.bcast(_pickled(obj), root=root)
            return obj
        return _unpickled(self.bcast(None, root=root))

    def gather_obj(self, obj: Any, root: int = 0) -> list[Any] | None:
        """The ranks' objects as a list, on the root; None elsewhere."""
        gathered = self.gather(_pickled(obj), root)
        return None if gathered is None else [_unpickled(x) for x in gathered]

    def allgather_obj(self, obj: Any) -> list[Any]:
        """The ranks' objects as a list, on every rank."""
        return [_unpickled(x) for x in self.allgather(_pickled(obj))]

    def scatter_obj(self, objs: Any, root: int = 0) -> Any:
        """This rank's object of the root's ``objs``."""
        sent = [_pickled(obj) for obj in objs] if self.rank == root else None
        return _unpickled(self.scatter(sent, root))

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
