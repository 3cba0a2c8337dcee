"""A model whose links are on several ranks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Union

from renga.communicators import Communicator
from renga.core.link import ChainList, Link
from renga.parallel.functions.point_to_point_communication import Recv, Send
from renga.parallel.functions.pseudo_connect import pseudo_connect

# The ranks that send a link its inputs, and those that its output is sent to; None for
# the inputs and the output of the model.
Route = tuple[Union[list[int], None], Union[list[int], None]]


class SerialChainList(ChainList):
    """Calls the links of several ranks, and passes on what these would send.

    Args:
        parts: of each rank, its links with their routes, in the order in which it calls
            them.

    Raises:
        ValueError: a link waits for what no link sends, no link takes what one sends,
            or none computes the output of the model.
    """

    def __init__(self, parts: Sequence[Sequence[tuple[Link, Route]]]) -> None:
        super().__init__()
        # The links in whose outputs each one's inputs are.
        self._sources: list[list[int] | None] = []
        outputs: list[tuple[int, int]] = []  # ranks and links
        sent: dict[tuple[int, int], deque[int]] = {}
        waiting = [deque(part) for part in parts]
        while any(waiting):
            rank = _first_ready(waiting, sent)
            link, (sources, targets) = waiting[rank].popleft()
            index = len(self)
            self.add_link(link)
            if sources is not None:
                taken = [sent[source, rank].popleft() for source in sources]
            self._sources.append(None if sources is None else taken)
            if targets is None:
                outputs.append((rank, index))
            for target in targets or ():
                sent.setdefault((rank, target), deque()).append(index)
        for (source, target), indices in sent.items():
            if indices:
                raise ValueError(
                    f"serial_model: expected a link on rank {target} that takes each "
                    f"output of rank {source}, got {len(indices)} unused"
                )
        if not outputs:
            raise ValueError("serial_model: expected a link without rank_out, got none")
        self._outputs = [index for _, index in sorted(outputs)]

    def forward(self, *inputs: object) -> Any:
        """The output of the model."""
        results: list[Any] = []  # several outputs of a link are one argument, a tuple
        for link, sources in zip(self, self._sources):
            xs = inputs if sources is None else [results[i] for i in sources]
            y = link(*xs)
            ys = tuple(y) if isinstance(y, (list, tuple)) else (y,)
            results.append(ys if len(ys) > 1 else ys[0])
        ys = tuple(results[i] for i in self._outputs)
        return ys if len(ys) > 1 else ys[0]


def _first_ready(
    waiting: Sequence[deque[tuple[Link, Route]]],
    sent: dict[tuple[int, int], deque[int]],
) -> int:
    """The first rank whose next link has its inputs."""
    blocked = []
    for rank, links in enumerate(waiting):
        if not links:
            continue
        sources = links[0][1][0] or []
        missing = [
            s for s in sources if len(sent.get((s, rank), ())) < sources.count(s)
        ]
        if not missing:
            return rank
        blocked.append(f"rank {rank} for rank {missing[0]}")
    raise ValueError(
        "serial_model: expected something sent to each rank_in of a link, got ranks "
        f"that wait: {', '.join(blocked)}"
    )


class MultiNodeChainList(ChainList):
    """Calls its links in the order added, with inputs from other ranks' links.

    Every rank has one, with its part of the model. Called with the model's inputs, it
    returns the model's output on the rank that computes it, and an empty variable on
    the others. ``backward`` from these variables reaches the links of all ranks. A
    :class:`renga.pipeline.Pipeline` of it computes in micro-batches, in which ranks do
    not wait for each other.

    Args:
        comm: the communicator of the ranks.
    """

    def __init__(self, comm: Communicator) -> None:
        super().__init__()
        self._comm = comm
        self._routes: list[Route] = []

    def add_link(
        self,
        link: Link,
        rank_in: int | Sequence[int] | None = None,
        rank_out: int | Sequence[int] | None = None,
    ) -> None:
        """Adds a link.

        Args:
            link: called with one argument for each rank that sends: a variable, or a
                tuple of them if that rank's link returned several.
            rank_in: the ranks that send its inputs, this one or others; None for the
                inputs of the model.
            rank_out: the ranks that its output is sent to; None if it is the output of
                the model.

        Raises:
            ValueError: another link computes the output of the model already.
        """
        routes = (_as_list(rank_in), _as_list(rank_out))
        if rank_out is None and any(out is None for _, out in self._routes):
            raise ValueError("add_link: expected one link without rank_out, got two")
        super().add_link(link)
        self._routes.append(routes)

    def forward(self, *inputs: object) -> Any:
        """The model's output, an empty variable, or None on a rank without links.

        Raises:
            RuntimeError: a link expects an input from this rank that no link has sent.
            ValueError: no link takes what another one has sent to this rank.
        """
        delegate: Any = None
        output: tuple[Any, ...] = ()
        own: deque[Any] = deque()
        for link, (sources, targets) in zip(self, self._routes):
            xs: list[Any] = list(inputs) if sources is None else []
            for rank in sources or ():
                delegate, received = self._receive(rank, own, delegate)
                # Several outputs of a link are one argument, a tuple.
                xs.append(received[0] if len(received) == 1 else tuple(received))
            y = link(*xs)
            ys = tuple(y) if isinstance(y, (list, tuple)) else (y,)
            for rank in targets or ():
                if rank == self._comm.rank:
                    own.append(ys)
                else:
                    delegate, _ = Send(self._comm, rank, 0).communicate(ys, delegate)
            if targets is None:
                output = ys
        if own:
            raise ValueError(
                "MultiNodeChainList: expected a link with this rank_in for each output "
                f"sent to its own rank {self._comm.rank}, got {len(own)} unused"
            )
        if not output:
            return delegate
        ys = pseudo_connect(delegate, *output)
        return ys if len(ys) > 1 else ys[0]

    def serial_model(self) -> SerialChainList:
        """A model for one process, with copies of all ranks' links.

        Every rank calls it; links are pickled. The model computes what the ranks do, if
        each is called with its inputs. Outputs of several ranks are a tuple in the
        order of the ranks.

        Raises:
            ValueError: a link waits for what no link sends, no link takes what one
                sends, or none computes the output of the model.
        """
        parts = self._comm.allgather_obj((list(self), self._routes))
        return SerialChainList([[*zip(links, routes)] for links, routes in parts])

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
