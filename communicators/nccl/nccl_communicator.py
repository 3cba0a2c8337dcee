"""Communicators of ranks that each have a GPU."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Callable

import numpy as np

from renga.backends import cuda
from renga.backends.cuda_loader import load_plugin
from renga.communicators import settings
from renga.communicators.array_communicator import result_shape
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

    def _collective(
        self,
        name: str,
        xs: Sequence[Any],
        outs: Sequence[Any],
        unpack: Callable[[list[Any]], Any],
        wait: bool,
        op: str = "sum",
        dtype: Any = None,
        root: int | None = None,
    ) -> Any:
        """NCCL chooses the order of the operands."""
        if not xs or not self._uses_nccl(xs[0]):
            return super()._collective(name, xs, outs, unpack, wait, op, dtype, root)
        sent = [_contiguous(x if dtype is None else _cast(x, dtype)) for x in xs]
        received = sent
        if root is None and dtype is None:
            shapes = [result_shape(name, x.shape, self.size) for x in sent]
            received = list(map(_result_memory, outs, shapes, sent))
        native = self._nccl(xs[0]).call(
            name,
            [_described(x) for x in sent],
            [_described(y) for y in received],
            op,
            root or 0,
        )
        # Called when the work is complete; keeps its arrays.
        work = Work(
            native, lambda: unpack(list(map(_result, received, outs, xs, sent)))
        )
        return work.wait() if wait else work


class NcclCommunicator(NcclCollectives, MpiCommunicator):
    """Uses NCCL for arrays in GPU memory and MPI for everything else."""


def _described(x: Any) -> tuple[int, int, str]:
    return int(x.__cuda_array_interface__["data"][0]), x.size, x.dtype.name


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


def _result_memory(out: Any, shape: tuple[int, ...], like: Any) -> Any:
    """``out`` if it is contiguous, else new memory of the shape and dtype of ``like``.

    Raises:
        ValueError: if ``out`` has another shape or dtype.
    """
    if out is not None:
        if (out.shape, out.dtype) != (shape, like.dtype):
            raise ValueError(
                f"nccl: expected a result of {like.dtype} {shape}, "
                f"got {out.dtype} {out.shape}"
            )
        if _contiguous(out) is out:
            return out
    with like.device:
        return cuda.get_array_module(like).empty(shape, like.dtype)


def _result(received: Any, out: Any, x: Any, sent: Any) -> Any:
    """``received``, copied into ``out`` if there is one, in the dtype of ``x``."""
    if out is None:
        return received if received.dtype == x.dtype else _cast(received, x.dtype)
    if received is not out:
        out[...] = received
    return out
