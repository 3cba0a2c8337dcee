"""Communicators of ranks that each have a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from renga import _core
from renga.backends import cuda
from renga.backends.cuda_loader import load_plugin
from renga.communicators.array_communicator import dtype_name, result_shape
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

    def split(self, color: int | None, key: int) -> Any:
        group = super().split(color, key)
        if group is not None:
            group.has_nccl = self.has_nccl
        return group

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
        if not (self.has_nccl and on_gpu(list(xs[:1]))):
            return super()._collective(name, xs, outs, unpack, wait, op, dtype, root)
        load_plugin()
        ys = [
            y if y is not None else _new(name, x, self.size) for x, y in zip(xs, outs)
        ]
        sent = xs if root in (None, self.rank) else []
        received = ys if root != self.rank else []
        native = self.native.call(
            name,
            [_core.Variable(x, requires_grad=False) for x in sent],
            [_core.Variable(y, requires_grad=False) for y in received],
            op,
            "" if dtype is None else dtype_name(dtype),
            root,
            wait,
        )
        return unpack(ys) if wait else Work(native, lambda: unpack(ys))


class NcclCommunicator(NcclCollectives, MpiCommunicator):
    """Uses NCCL for arrays in GPU memory and MPI for everything else."""


def _new(name: str, x: Any, size: int) -> Any:
    """Memory for the result of a collective, on the device of its operand."""
    with x.device:
        shape = result_shape(name, x.shape, size)
        return cuda.get_array_module(x).empty(shape, x.dtype)
