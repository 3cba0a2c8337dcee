"""Communication of arrays in GPU memory by way of the host's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from renga.backends import cuda
from renga.communicators.array_communicator import Collective
from renga.communicators.communicator import Communicator
from renga.communicators.messages import headers, pending_receive
from renga.communicators.messages.headers import DEVICE
from renga.core.types import Array
from renga.utils.containers import leaves, map_leaves


class StagedCommunicator(Communicator):
    """A communicator whose arrays may be in GPU memory.

    They pass through the host's memory, for which the host waits. What is received from
    a GPU goes to the receiving thread's current GPU.
    """

    def _collective(self, call: Collective) -> Any:
        if not on_gpu(list(call.xs)):
            return super()._collective(call)
        host = [to_host(x) for x in call.xs]
        outs = host if call.root is not None else [None] * len(host)

        def place(ys: list[Any]) -> Any:
            return call.unpack([_placed(y, to) for y, to in zip(ys, call.outs)])

        staged = call._replace(xs=host, outs=outs, wait=False, unpack=list)
        work = super()._collective(staged).then(place)
        return work.wait() if call.wait else work

    def allgather(self, x: Array | tuple[Array, ...]) -> tuple[Array, ...]:
        ys = super().allgather(to_host(x))
        return cuda.to_gpu(ys) if on_gpu(x) else ys

    def alltoall(self, xs: Sequence[Array] | Array) -> tuple[Array, ...]:
        ys = super().alltoall([to_host(x) for x in xs])
        return cuda.to_gpu(ys) if any(on_gpu(x) for x in xs) else ys

    def gather(
        self, data: Array | tuple[Array, ...], root: int = 0
    ) -> tuple[Array, ...] | None:
        ys = super().gather(to_host(data), root)
        return cuda.to_gpu(ys) if on_gpu(data) and ys is not None else ys

    def bcast(  # type: ignore[override]
        self, data: Array | None, root: int = 0, max_buf_len: int | None = None
    ) -> Array:
        is_placed = self._root_has_gpu_arrays(data, root)
        y = super().bcast(to_host(data), root, max_buf_len)
        return cuda.to_gpu(y) if is_placed else y

    def scatter(self, xs: Sequence[Array] | Array | None, root: int = 0) -> Array:
        is_placed = self._root_has_gpu_arrays(xs, root)
        if self.rank == root and xs is not None:
            xs = [to_host(x) for x in xs]
        y = super().scatter(xs, root)
        return cuda.to_gpu(y) if is_placed else y

    def _root_has_gpu_arrays(self, data: Any, root: int) -> bool:
        return bool(self.bcast_obj(self.rank == root and on_gpu(data), root=root))

    def _messages_of(self, x: Any) -> list[Any]:
        if not on_gpu(x):
            return super()._messages_of(x)
        host = to_host(x)
        return [headers.header("send", host, DEVICE), headers.as_bytes(host)]

    def _received(self, kind: bytes, x: Any) -> Any:
        return cuda.to_gpu(x) if kind == DEVICE else x

    def recv(
        self,
        source: int,
        tag: int = 0,
        out: Array | None = None,
        wait: bool = True,
        status: object = None,
    ) -> Any:
        if out is None or not on_gpu(out):
            return super().recv(source, tag, out, wait, status)
        staged = np.empty(out.shape, out.dtype)
        if wait:
            super().recv(source, tag, staged, True, status)
            return _placed(staged, out)
        head = headers.empty_header()
        messages = [head, headers.as_bytes(staged)]
        expected = headers.header("recv", staged, DEVICE)
        native = self.native.receive(messages, source, tag, False, expected)
        pending = pending_receive.PendingReceive(native, head, staged, source)
        return pending.then(lambda y: _placed(y, out))


def on_gpu(x: object) -> bool:
    """Whether an array, or one in a list or tuple, is in GPU memory."""
    return any(hasattr(leaf, "__cuda_array_interface__") for leaf in leaves(x))


def to_host(x: object) -> Any:
    """``x``, its arrays in GPU memory copied to the host's."""
    return map_leaves(lambda leaf: cuda.to_cpu(leaf) if on_gpu(leaf) else leaf, x)


def _placed(y: Any, out: Any) -> Any:
    """``y`` in GPU memory: in ``out`` if there is one."""
    if out is None:
        return cuda.to_gpu(y)
    out[...] = cuda.to_gpu(y, out.device)
    return out
