"""Exchange of gradients and parameters between an updater's processes.

In each step, workers call ``send_gradients`` and ``receive_parameters``, and the main
process ``add_gradients`` and ``send_parameters``, in this order. Before each exchange a
worker reports through its pipe that its gradients are ready, or why it has failed, so
that the main process never waits for a worker that has failed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from renga import _communicators, _core
from renga.core.types import Array
from renga.utils.exceptions import MAIN_GUARD, SentException

# Seconds until NCCL gives up, as for communicators.
_TIMEOUT = 1800.0


class WorkerError(RuntimeError):
    """The failure of a worker; its cause is the traceback."""


def tell(pipe: Connection, message: object) -> None:
    """Sends a message to a worker; if it has ended, the next ``receive`` raises."""
    with contextlib.suppress(ConnectionError):
        pipe.send(message)


def receive(pipe: Connection) -> object:
    """The next message of a worker.

    Raises:
        WorkerError: it has failed or ended.
    """
    try:
        message = pipe.recv()
    except (EOFError, ConnectionError):
        raise _failure(f"its process has ended. {MAIN_GUARD}") from None
    if isinstance(message, SentException):  # in place of its gradients
        raise _failure(message.text) from message.unpack().__cause__
    return message


def _failure(reason: str) -> WorkerError:
    return WorkerError(f"MultiprocessParallelUpdater: a worker has failed: {reason}")


class PipeExchange:
    """Exchanges arrays in host memory through pipes."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def send_gradients(self, gradients: Array) -> None:
        self._pipes[0].send(gradients)

    def receive_parameters(self, parameters: Array) -> Array:
        return self._pipes[0].recv()

    def add_gradients(self, gradients: Array) -> Array:
        """The sum over processes, in rank order."""
        for pipe in self._pipes:
            gradients += receive(pipe)
        return gradients

    def send_parameters(self, parameters: Array) -> None:
        for pipe in self._pipes:
            tell(pipe, parameters)


class NcclExchange:
    """Exchanges arrays on GPUs, one for each process, through NCCL."""

    def __init__(
        self,
        pipes: Sequence[Connection],
        unique_id: bytes,
        rank: int,
        size: int,
        device: int,
    ) -> None:
        self._pipes = pipes
        # Its ranks send no messages: they get NCCL's id through the pipes.
        ranks = _communicators.LocalGroup([0] * size, False, _communicators.Failure())
        transport = ranks.transport(rank)
        self._comm = _communicators.Communicator(transport, _TIMEOUT, False)
        self._comm.connect_devices(unique_id, f"cuda:{device}")

    def send_gradients(self, gradients: Array) -> None:
        self._pipes[0].send("ready")
        self._sum(gradients)

    def receive_parameters(self, parameters: Array) -> Array:
        self._broadcast(parameters)
        return parameters

    def add_gradients(self, gradients: Array) -> Array:
        """The sum over processes, in the order that NCCL chooses."""
        for pipe in self._pipes:
            receive(pipe)
        self._sum(gradients)
        return gradients

    def send_parameters(self, parameters: Array) -> None:
        self._broadcast(parameters)

    def _sum(self, x: Any) -> None:
        operand = [_core.Variable(x, requires_grad=False)]
        self._comm.call("all_reduce", operand, operand)

    def _broadcast(self, x: Any) -> None:
        operand, root = [_core.Variable(x, requires_grad=False)], 0
        sides = (operand, []) if self._comm.rank == root else ([], operand)
        self._comm.call("broadcast", *sides, root=root)
