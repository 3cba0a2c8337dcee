"""Communicators of ranks that each have a GPU."""

from __future__ import annotations

import importlib
from typing import Any, Callable

import numpy as np

from renga.backends.cuda_loader import load_plugin
from renga.communicators import settings
from renga.communicators.native_communicator import NativeCommunicator
from renga.communicators.transport.mpi import MpiCommunicator
from renga.communicators.work import Work


class NcclCollectives(NativeCommunicator):
    """Collectives of NCCL on arrays in GPU memory; others go the way of the base.

    Arrays in GPU memory have ``__cuda_array_interface__``. Rank ``r`` of a node uses
    GPU ``r``. The host waits for no collective: what it computes next on the device
    does. An error or time-out of a collective shows at the next call, or where a result
    is read.
    """

    _nccl_group: Any = None

    @property
    def _nccl(self) -> Any:
        """Created at the first use, which is a collective call."""
        if self._nccl_group is None:
            native = importlib.import_module("renga._communicators_nccl")
            unique_id = self.bcast_obj(
                native.create_unique_id() if self.rank == 0 else None
            )
            load_plugin()
            self._nccl_group = native.NcclGroup(
                unique_id, self.rank, self.size, self.intra_rank, settings.timeout()
            )
        return self._nccl_group

    def barrier(self) -> None:
        """Returns when every rank has called it; raises the error of a collective."""
        if self._nccl_group is not None:
            self._nccl_group.throw_failure()
        super().barrier()

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        out: Any = None,
        wait: bool = True,
        dtype: Any = None,
    ) -> Any:
        """The sum, mean, max, min or prod; NCCL chooses the order of the operands."""
        single = not isinstance(x, (list, tuple))
        xs = [x] if single else list(x)
        if not xs or not _on_gpu(xs[0]):
            return super().all_reduce(x, op, out, wait, dtype)
        outs = [None] * len(xs) if out is None else [out] if single else list(out)
        operands, moved = [], []
        for a, y in zip(xs, outs):
            sent = _contiguous(a if dtype is None else a.astype(dtype))
            received = sent if dtype is not None else _result_array(y, sent)
            described = _address(sent), _address(received), sent.size, sent.dtype.name
            operands.append(described)
            moved.append((sent, received, a if y is None else y, y is not None))

        def results() -> Any:
            all_results = [_converted(*rest) for _, *rest in moved]
            return all_results[0] if single else all_results

        work = self._nccl.all_reduce(operands, op)
        return self._result_or_work(work, results, wait)

    def reduce_scatter(
        self, x: Any, op: str = "sum", out: Any = None, wait: bool = True
    ) -> Any:
        """The reduction of ``x[rank]`` of all ranks."""
        if not _on_gpu(x):
            return super().reduce_scatter(x, op, out, wait)
        sent = _contiguous(x)
        y = _result_array(out, sent[0])
        work = self._nccl.reduce_scatter(
            _address(sent), _address(y), sent.size, sent.dtype.name, op
        )
        return self._result_or_work(work, lambda: (sent, y)[1], wait)

    def all_gather(self, x: Any, out: Any = None, wait: bool = True) -> Any:
        """The ranks' arrays, which have one shape."""
        if not _on_gpu(x):
            return super().all_gather(x, out, wait)
        sent = _contiguous(x)
        y = sent.repeat(self.size).reshape(self.size, *sent.shape)
        y = y if out is None else _result_array(out, y)
        work = self._nccl.all_gather(
            _address(sent), _address(y), sent.size, sent.dtype.name
        )
        return self._result_or_work(work, lambda: (sent, y)[1], wait)

    def all_to_all(self, x: Any, out: Any = None, wait: bool = True) -> Any:
        """Sends ``x[r]`` to rank ``r``; row ``r`` of the result is from rank ``r``."""
        if not _on_gpu(x):
            return super().all_to_all(x, out, wait)
        sent = _contiguous(x)
        y = _result_array(out, sent)
        work = self._nccl.all_to_all(
            _address(sent), _address(y), sent.size, sent.dtype.name
        )
        return self._result_or_work(work, lambda: (sent, y)[1], wait)

    def broadcast(self, x: Any, root: int = 0, wait: bool = True) -> Any:
        """Overwrites ``x`` by the root's array and returns it."""
        if not _on_gpu(x):
            return super().broadcast(x, root, wait)
        _result_array(x, x)
        root = self._root("broadcast", root)
        work = self._nccl.broadcast(_address(x), x.size, x.dtype.name, root)
        return self._result_or_work(work, lambda: x, wait)

    @staticmethod
    def _result_or_work(native: Any, result: Callable[[], Any], wait: bool) -> Any:
        """``result`` is called when the work is complete, and keeps its arrays."""
        work = Work(native, result)
        return work.wait() if wait else work


class NcclCommunicator(NcclCollectives, MpiCommunicator):
    """Uses NCCL for arrays in GPU memory and MPI for everything else."""


def _on_gpu(x: Any) -> bool:
    return hasattr(x, "__cuda_array_interface__")


def _address(x: Any) -> int:
    return int(x.__cuda_array_interface__["data"][0])


def _contiguous(x: Any) -> Any:
    strides = x.__cuda_array_interface__.get("strides")
    expected = np.empty(x.shape, np.int8).strides
    packed = strides is None or tuple(strides) == tuple(
        step * x.dtype.itemsize for step in expected
    )
    return x if packed else x.copy()


def _result_array(out: Any, like: Any) -> Any:
    """``out``, or a new array of the shape and dtype of ``like``.

    Raises:
        ValueError: if ``out`` is not contiguous, or has another shape or dtype.
    """
    if out is None:
        return like.copy()
    expected = (like.shape, like.dtype)
    if _contiguous(out) is not out or (out.shape, out.dtype) != expected:
        raise ValueError(
            f"nccl: expected a contiguous result of {like.dtype} {like.shape}, "
            f"got {out.dtype} {out.shape} with strides {out.strides}"
        )
    return out


def _converted(received: Any, like: Any, overwrite: bool) -> Any:
    """``received`` in the dtype of ``like``; copied into it if ``overwrite``."""
    if received is like or (received.dtype == like.dtype and not overwrite):
        return received
    if not overwrite:
        return received.astype(like.dtype)
    like[...] = received
    return like
