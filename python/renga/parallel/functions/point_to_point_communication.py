"""Differentiable messages from one rank to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga.communicators import Communicator
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.parallel.functions.communication import Communication, Result


class _Message(Communication):
    def __init__(self, comm: Communicator, peer_rank: int, peer_tag: int) -> None:
        if peer_rank == comm.rank:
            raise ValueError(
                f"{self.label.lower()}: expected another rank, got its own, {peer_rank}"
            )
        self.comm = comm
        self.peer_rank = peer_rank
        self.peer_tag = peer_tag


class Send(_Message):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        self.comm.send(xs[0] if len(xs) == 1 else xs, self.peer_rank, self.peer_tag)
        return ()

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return Recv(self.comm, self.peer_rank, self.peer_tag).communicate([], token)


class Recv(_Message):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        received = self.comm.recv(self.peer_rank, self.peer_tag)
        return received if isinstance(received, tuple) else (received,)

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return Send(self.comm, self.peer_rank, self.peer_tag).communicate(gys, token)


def send(x: ArrayLike, communicator: Communicator, rank: int, tag: int = 0) -> Variable:
    """Sends a variable, or a tuple of them, to a rank, which calls ``recv``.

    Returns:
        A delegate: an empty variable, to be a root of the backward pass or to be given
        to a later ``recv`` or ``pseudo_connect``.

    Raises:
        ValueError: the rank is this one.
    """
    xs = x if isinstance(x, (list, tuple)) else [x]
    return Send(communicator, rank, tag).communicate(xs)[0]


def recv(
    communicator: Communicator,
    rank: int,
    delegate_variable: Variable | None = None,
    tag: int = 0,
    force_tuple: bool = False,
) -> Any:
    """The variable, or tuple of variables, that a rank sends.

    Args:
        communicator: a communicator.
        rank: the rank that calls ``send``.
        delegate_variable: the result of an earlier ``send``, whose backward pass comes
            after this one's.
        tag: the tag given to ``send``.
        force_tuple: whether a single variable is returned as a tuple, too.

    Raises:
        ValueError: the rank is this one.
    """
    _, ys = Recv(communicator, rank, tag).communicate([], delegate_variable)
    return ys[0] if len(ys) == 1 and not force_tuple else tuple(ys)
