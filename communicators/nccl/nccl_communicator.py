"""Communicators of ranks that each have a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.backends import cuda
from renga.backends.cuda_loader import load_plugin
from renga.communicators.array_communicator import Collective, result_shape
from renga.communicators.nccl.staged import StagedCommunicator, on_gpu
from renga.communicators.transport.mpi import MpiCommunicator


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

    def _collective(self, call: Collective) -> Any:
        """NCCL chooses the order of the operands."""
        if not (self.has_nccl and on_gpu(list(call.xs[:1]))):
            return super()._collective(call)
        load_plugin()
        ys = [
            y if y is not None else _new(call.name, x, self.size)
            for x, y in zip(call.xs, call.outs)
        ]
        sent = call.xs if call.root in (None, self.rank) else []
        received = ys if call.root != self.rank else []
        return self._run(call, _variables(sent), _variables(received), ys)


class NcclCommunicator(NcclCollectives, MpiCommunicator):
    """Uses NCCL for arrays in GPU memory and MPI for everything else."""


def _variables(xs: Sequence[Any]) -> list[_core.Variable]:
    return [_core.Variable(x, requires_grad=False) for x in xs]


def _new(name: str, x: Any, size: int) -> Any:
    """Memory for the result of a collective, on the device of its operand."""
    with x.device:
        shape = result_shape(name, x.shape, size)
        return cuda.get_array_module(x).empty(shape, x.dtype)
