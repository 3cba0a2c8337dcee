"""Communicators of ranks that each have a GPU."""

from __future__ import annotations

import importlib
from typing import Any, Callable

import numpy as np

from renga.backends.cuda_loader import load_plugin
from renga.communicators import settings
from renga.communicators.nccl.staged import StagedCommunicator, on_gpu
from renga.communicators.transport.mpi import MpiCommunicator
from renga.communicators.work import Work


class NcclCollectives(StagedCommunicator):
    """Collectives of NCCL on arrays in GPU memory; others go the way of the base.

    Arrays in GPU memory have ``__cuda_array_interface__``. A rank uses the GPU of the
    first one that it communicates. The host waits for no collective: what it computes
    next on the device does. An error or time-out of a collective shows at the next
    call, or where a result is read. Messages from one rank to another, and collectives
    of arrays whose shapes differ, pass through the host's memory.
    """

    has_nccl = True
    _nccl_group: Any = None
    _gpu: int | None = None

    def _nccl(self, x: Any) -> Any:
        """NCCL's ranks for ``x``, created at the first use, a collective call."""
        gpu = int(x.device.id)
        if self._nccl_group is None:
            native = importlib.import_module("renga._communicators_nccl")
            unique_id = self.bcast_obj(
                native.create_unique_id() if self.rank == 0 else None
            )
            load_plugin()
            self._gpu = gpu
            self._nccl_group = native.NcclGroup(
                unique_id, self.rank, self.size, gpu, settings.timeout()
            )
        if gpu != self._gpu:
            raise ValueError(
                f"nccl: expected arrays on GPU {self._gpu}, which rank {self.rank} "
                f"uses, got one on GPU {gpu}"
            )
        return self._nccl_group

    def _uses_nccl(self, x: Any) -> bool:
        return self.has_nccl and on_gpu(x)

    def split(self, color: int | None, key: int) -> Any:
        group = super().split(color, key)
        if group is not None:
            group.has_nccl = self.has_nccl
        return group

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
        if not xs or not self._uses_nccl(xs[0]):
            return super().all_reduce(x, op, out, wait, dtype)
        outs = [None] * len(xs) if out is None else [out] if single else list(out)
        operands, moved = [], []
        for a, y in zip(xs, outs):
            sent = _contiguous(a if dtype is None else _cast(a, dtype))
            received = sent if dtype is not None else _result_memory(y, sent)
            described = _address(sent), _address(received), sent.size, sent.dtype.name
            operands.append(described)
            moved.append((sent, received, a if y is None else y, y is not None))

        def results() -> Any:
            all_results = [_converted(*rest) for _, *rest in moved]
            return all_results[0] if single else all_results

        work = self._nccl(xs[0]).all_reduce(operands, op)
        return self._result_or_work(work, results, wait)

    def reduce_scatter(
        self, x: Any, op: str = "sum", out: Any = None, wait: bool = True
    ) -> Any:
        """The reduction of ``x[rank]`` of all ranks."""
        if not self._uses_nccl(x):
            return super().reduce_scatter(x, op, out, wait)
        sent = _contiguous(x)
        y = _result_memory(out, sent[0])
        work = self._nccl(x).reduce_scatter(
            _address(sent), _address(y), sent.size, sent.dtype.name, op
        )
        return self._result_or_work(work, lambda: _written(sent, y, out), wait)

    def all_gather(self, x: Any, out: Any = None, wait: bool = True) -> Any:
        """The ranks' arrays, which have one shape."""
        if not self._uses_nccl(x):
            return super().all_gather(x, out, wait)
        sent = _contiguous(x)
        with sent.device:
            rows = sent.repeat(self.size).reshape(self.size, *sent.shape)
        y = rows if out is None else _result_memory(out, rows)
        work = self._nccl(x).all_gather(
            _address(sent), _address(y), sent.size, sent.dtype.name
        )
        return self._result_or_work(work, lambda: _written(sent, y, out), wait)

    def all_to_all(self, x: Any, out: Any = None, wait: bool = True) -> Any:
        """Sends ``x[r]`` to rank ``r``; row ``r`` of the result is from rank ``r``."""
        if not self._uses_nccl(x):
            return super().all_to_all(x, out, wait)
        sent = _contiguous(x)
        y = _result_memory(out, sent)
        work = self._nccl(x).all_to_all(
            _address(sent), _address(y), sent.size, sent.dtype.name
        )
        return self._result_or_work(work, lambda: _written(sent, y, out), wait)

    def broadcast(self, x: Any, root: int = 0, wait: bool = True) -> Any:
        """Overwrites ``x`` by the root's array and returns it."""
        if not self._uses_nccl(x):
            return super().broadcast(x, root, wait)
        y = _contiguous(x)
        root = self._root("broadcast", root)
        work = self._nccl(x).broadcast(_address(y), y.size, y.dtype.name, root)
        return self._result_or_work(work, lambda: _written(y, y, x), wait)

    @staticmethod
    def _result_or_work(native: Any, result: Callable[[], Any], wait: bool) -> Any:
        """``result`` is called when the work is complete, and keeps its arrays."""
        work = Work(native, result)
        return work.wait() if wait else work


class NcclCommunicator(NcclCollectives, MpiCommunicator):
    """Uses NCCL for arrays in GPU memory and MPI for everything else."""


def _address(x: Any) -> int:
    return int(x.__cuda_array_interface__["data"][0])


def _copy(x: Any) -> Any:
    """A copy on the device of ``x``; CuPy's are on the current one."""
    with x.device:
        return x.copy()


def _cast(x: Any, dtype: Any) -> Any:
    with x.device:
        return x.astype(dtype)


def _contiguous(x: Any) -> Any:
    strides = x.__cuda_array_interface__.get("strides")
    expected = np.empty(x.shape, np.int8).strides
    packed = strides is None or tuple(strides) == tuple(
        step * x.dtype.itemsize for step in expected
    )
    return x if packed else _copy(x)


def _result_memory(out: Any, like: Any) -> Any:
    """``out`` if it is contiguous, else new memory, of the shape and dtype of ``like``.

    Raises:
        ValueError: if ``out`` has another shape or dtype.
    """
    if out is None:
        return _copy(like)
    if (out.shape, out.dtype) != (like.shape, like.dtype):
        raise ValueError(
            f"nccl: expected a result of {like.dtype} {like.shape}, "
            f"got {out.dtype} {out.shape}"
        )
    return out if _contiguous(out) is out else _copy(like)


def _written(sent: Any, received: Any, out: Any) -> Any:
    """``received``, copied into ``out`` if that is other memory; ``sent`` is kept."""
    if out is None or received is out:
        return received
    out[...] = received
    return out


def _converted(received: Any, like: Any, overwrite: bool) -> Any:
    """``received`` in the dtype of ``like``; copied into it if ``overwrite``."""
    if received is like or (received.dtype == like.dtype and not overwrite):
        return received
    if not overwrite:
        return _cast(received, like.dtype)
    like[...] = received
    return like
