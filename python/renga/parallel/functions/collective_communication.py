"""Differentiable collectives.

Every rank calls the same collectives in the same order. Gradients are those of the
sum of all ranks' losses.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy

from renga import functions as F
from renga.communicators import Communicator
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable
from renga.parallel.functions.communication import Communication, Result


class _Collective(Communication):
    def __init__(self, comm: Communicator, root: int = 0) -> None:
        self.comm = comm
        self.root = root

    @property
    def is_root(self) -> bool:
        return self.comm.rank == self.root


class AllReduce(_Collective):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        return [self.comm.allreduce(xs[0])]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return AllReduce(self.comm).communicate(gys, token)


class ReduceScatter(_Collective):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        if len(xs) != self.comm.size:
            raise ValueError(
                f"reduce_scatter: expected {self.comm.size} arrays, got {len(xs)}"
            )
        return [self.comm.reduce_scatter(numpy.stack(xs))]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return AllGather(self.comm).communicate(gys, token)


class AllGather(_Collective):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        return self.comm.allgather(xs[0])

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        # Shapes may differ between ranks; all gradients for one rank have its shape.
        token, received = AllToAll(self.comm).communicate(gys, token)
        return token, [_sum(received)]


class AllToAll(_Collective):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        return self.comm.alltoall(xs)

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return AllToAll(self.comm).communicate(gys, token)


class Broadcast(_Collective):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        x = xs[0] if self.is_root else None
        return [self.comm.bcast(x, root=self.root)]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        token, received = Gather(self.comm, self.root).communicate(gys, token)
        return token, [_sum(received)] if received else []


class Gather(_Collective):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        return self.comm.gather(xs[0], self.root) or ()

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return Scatter(self.comm, self.root).communicate(gys, token)


class Scatter(_Collective):
    def exchange(self, xs: tuple[Array, ...]) -> Sequence[Array]:
        return [self.comm.scatter(xs, self.root)]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return Gather(self.comm, self.root).communicate(gys, token)


def allreduce(comm: Communicator, x: ArrayLike) -> Variable:
    """The sum of the ranks' ``x``, on every rank.

    Shapes:
        x, result: any, the same on every rank
    """
    return AllReduce(comm).communicate([x])[1][0]


def reduce_scatter(comm: Communicator, xs: Sequence[ArrayLike]) -> Variable:
    """The sum of the ranks' ``xs[rank]``, where rank is this rank.

    Shapes:
        xs: one for each rank, all of the result's shape

    Raises:
        ValueError: there are not as many ``xs`` as ranks.
    """
    return ReduceScatter(comm).communicate(xs)[1][0]


def allgather(comm: Communicator, x: Variable) -> tuple[Variable, ...]:
    """The ranks' ``x``, of any shapes, on every rank."""
    return tuple(AllGather(comm).communicate([x])[1])


def alltoall(comm: Communicator, xs: Sequence[ArrayLike]) -> tuple[Variable, ...]:
    """Each rank's ``xs[rank]``, where rank is this rank.

    Raises:
        ValueError: there are not as many ``xs`` as ranks.
    """
    return tuple(AllToAll(comm).communicate(xs)[1])


def bcast(comm: Communicator, x: Any, root: int = 0) -> Variable:
    """The root's ``x``, on every rank.

    On other ranks ``x`` is None or a delegate: a variable to compute it after.
    """
    node = Broadcast(comm, root)
    _, ys = node.communicate([x]) if node.is_root else node.communicate([], x)
    return ys[0]


def gather(
    comm: Communicator, x: ArrayLike, root: int = 0
) -> tuple[Variable, ...] | Variable:
    """The ranks' ``x``, of any shapes, as a tuple on the root.

    On other ranks a delegate: an empty variable, to be a root of the backward pass or
    to be given to ``pseudo_connect``.
    """
    node = Gather(comm, root)
    delegate, ys = node.communicate([x])
    return tuple(ys) if node.is_root else delegate


def scatter(comm: Communicator, xs: Any, root: int = 0) -> Variable:
    """This rank's variable of the root's ``xs``, one for each rank.

    On other ranks ``xs`` is None or a delegate: a variable to compute it after. A list
    is ignored there.

    Raises:
        ValueError: there are not as many ``xs`` as ranks.
    """
    node = Scatter(comm, root)
    if node.is_root:
        _, ys = node.communicate(xs)
    else:
        ignored = isinstance(xs, (list, tuple))
        _, ys = node.communicate([], None if ignored else xs)
    return ys[0]


def _sum(xs: Sequence[Variable]) -> Variable:
    return functools.reduce(F.add, xs)
