"""Collectives that gradients pass through.

Every rank calls the same collectives in the same order. Gradients are those of the
sum of all ranks' losses.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy

from renga import functions as F
from renga.distributed.functions.communication import Communication, Result
from renga.variable import Variable


class _Collective(Communication):
    def __init__(self, comm: Any, root: int = 0) -> None:
        self.comm = comm
        self.root = root

    @property
    def at_root(self) -> bool:
        return self.comm.rank == self.root


class AllReduce(_Collective):
    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        return [self.comm.allreduce(xs[0])]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return AllReduce(self.comm).communicate(gys, token)


class ReduceScatter(_Collective):
    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        return [self.comm.reduce_scatter(numpy.stack(xs))]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return AllGather(self.comm).communicate(gys, token)


class AllGather(_Collective):
    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        return self.comm.allgather(xs[0])

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        # The ranks' shapes may differ, but all that comes to one rank has its own.
        token, parts = AllToAll(self.comm).communicate(gys, token)
        return token, [_sum(parts)]


class AllToAll(_Collective):
    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        return self.comm.alltoall(xs)

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return AllToAll(self.comm).communicate(gys, token)


class Broadcast(_Collective):
    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        x = xs[0] if self.at_root else None
        return [self.comm.bcast(x, root=self.root)]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        token, parts = Gather(self.comm, self.root).communicate(gys, token)
        return token, [_sum(parts)] if parts else []


class Gather(_Collective):
    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        return self.comm.gather(xs[0], self.root) or ()

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return Scatter(self.comm, self.root).communicate(gys, token)


class Scatter(_Collective):
    def exchange(self, xs: tuple[Any, ...]) -> Sequence[Any]:
        return [self.comm.scatter(xs, self.root)]

    def adjoint(self, token: Variable, gys: list[Variable]) -> Result:
        return Gather(self.comm, self.root).communicate(gys, token)


def allreduce(comm: Any, x: Any) -> Variable:
    """The sum of the ranks' ``x``, on every rank.

    Shapes:
        x, result: any, the same on every rank
    """
    return AllReduce(comm).communicate([x])[1][0]


def reduce_scatter(comm: Any, xs: Sequence[Any]) -> Variable:
    """The sum of what the ranks have at this rank's place of their ``xs``.

    Shapes:
        xs: one for each rank, all of the result's shape
    """
    return ReduceScatter(comm).communicate(xs)[1][0]


def allgather(comm: Any, x: Any) -> tuple[Variable, ...]:
    """The ranks' ``x``, of any shapes, on every rank."""
    return tuple(AllGather(comm).communicate([x])[1])


def alltoall(comm: Any, xs: Sequence[Any]) -> tuple[Variable, ...]:
    """What each rank has at this rank's place of its ``xs``.

    Raises:
        ValueError: ``xs`` are not as many as ranks.
    """
    return tuple(AllToAll(comm).communicate(xs)[1])


def bcast(comm: Any, x: Any, root: int = 0) -> Variable:
    """The root's ``x``, on every rank.

    Elsewhere ``x`` is None or a delegate: a variable to compute it after.
    """
    node = Broadcast(comm, root)
    _, ys = node.communicate([x]) if node.at_root else node.communicate([], x)
    return ys[0]


def gather(comm: Any, x: Any, root: int = 0) -> Any:
    """The ranks' ``x``, of any shapes, as a tuple on the root.

    Elsewhere a delegate: an empty variable, from which the way back has to start or
    which ``pseudo_connect`` joins to what it starts from.
    """
    node = Gather(comm, root)
    delegate, ys = node.communicate([x])
    return tuple(ys) if node.at_root else delegate


def scatter(comm: Any, xs: Any, root: int = 0) -> Variable:
    """This rank's variable of the root's ``xs``, which are as many as ranks.

    Elsewhere ``xs`` is None or a delegate: a variable to compute it after.

    Raises:
        ValueError: ``xs`` are not as many as ranks.
    """
    node = Scatter(comm, root)
    _, ys = node.communicate(xs) if node.at_root else node.communicate([], xs)
    return ys[0]


def _sum(xs: Sequence[Variable]) -> Variable:
    return functools.reduce(F.add, xs)
