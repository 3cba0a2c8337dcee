"""A model whose links lie on several ranks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from renga.distributed.functions.point_to_point_communication import Recv, Send
from renga.distributed.functions.pseudo_connect import pseudo_connect
from renga.link import ChainList, Link


class MultiNodeChainList(ChainList):
    """Calls its links in the order added, with what other ranks' links send.

    Every rank has one of its own with its part of the model. Called with the model's
    inputs, it returns the model's output on the rank that has it, and an empty
    variable elsewhere; ``backward`` of what is computed from these goes through all.

    Args:
        comm: the communicator of the ranks.
    """

    def __init__(self, comm: Any) -> None:
        super().__init__()
        self._comm = comm
        self._routes: list[tuple[list[int] | None, list[int] | None]] = []

    def add_link(  # type: ignore[override]
        self,
        link: Link,
        rank_in: int | Sequence[int] | None = None,
        rank_out: int | Sequence[int] | None = None,
    ) -> None:
        """Adds a link.

        Args:
            link: takes what comes as separate arguments.
            rank_in: the ranks it gets its inputs from, this one or others; None for
                the inputs of the model.
            rank_out: the ranks its output goes to; None where it is the model's.

        Raises:
            ValueError: there is an output of the model already.
        """
        routes = (_as_list(rank_in), _as_list(rank_out))
        if rank_out is None and any(out is None for _, out in self._routes):
            raise ValueError("add_link: expected one link without rank_out, got two")
        super().add_link(link)
        self._routes.append(routes)

    def forward(self, *inputs: Any) -> Any:
        """The model's output, or an empty variable.

        Raises:
            RuntimeError: a link is to get from this rank what none has sent.
        """
        delegate: Any = None
        output: tuple[Any, ...] = ()
        own: deque[Any] = deque()
        for link, (sources, targets) in zip(self, self._routes):
            xs: list[Any] = list(inputs) if sources is None else []
            for rank in sources or ():
                delegate, parts = self._receive(rank, own, delegate)
                xs += parts
            y = link(*xs)  # type: ignore[operator]
            ys = tuple(y) if isinstance(y, (list, tuple)) else (y,)
            for rank in targets or ():
                if rank == self._comm.rank:
                    own.append(ys)
                else:
                    delegate, _ = Send(self._comm, rank, 0).communicate(ys, delegate)
            if targets is None:
                output = ys
        return pseudo_connect(delegate, *output)

    def _receive(self, rank: int, own: deque[Any], delegate: Any) -> Any:
        if rank != self._comm.rank:
            return Recv(self._comm, rank, 0).communicate([], delegate)
        if not own:
            raise RuntimeError(
                f"MultiNodeChainList: expected something sent to its own rank {rank} "
                "before a link with this rank_in, got nothing"
            )
        return delegate, own.popleft()


def _as_list(ranks: int | Sequence[int] | None) -> list[int] | None:
    if ranks is None:
        return None
    return [ranks] if isinstance(ranks, int) else list(ranks)
