"""The model of several ranks' links, in one process."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Union

from renga.core.link import ChainList, Link

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
