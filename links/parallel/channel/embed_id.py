"""ParallelEmbedID: a vector for every word, its elements shared out over ranks."""

from __future__ import annotations

from typing import Any

from renga.functions import embed_id
from renga.initializers import Normal, _get_initializer
from renga.link import Link
from renga.links.parallel.channel.link import channel_layout
from renga.links.parallel.relayout import REPLICATED, change_layout, sharded
from renga.links.parallel.shard import lengths, shares
from renga.links.parallel.sharded_parameter import Piece, ShardedParameter
from renga.variable import Variable


class ParallelEmbedID(Link):
    """``EmbedID`` of which each rank holds some elements of every vector.

    Args:
        comm: the communicator of the ranks.
        in_size, out_size, initialW, ignore_label: as for EmbedID.
        output_layout: ``replicated``, or ``channel`` where each rank has its elements.

    Shapes:
        x: integers of any shape, the same on every rank
        y: (*x.shape, out_size), or this rank's elements of it
        W: this rank's part of (in_size, out_size)

    Raises:
        ValueError: the layout is unknown.
    """

    W: ShardedParameter

    def __init__(
        self,
        comm: Any,
        in_size: int,
        out_size: int,
        initialW: Any = None,
        ignore_label: int | None = None,
        *,
        output_layout: str = "replicated",
    ) -> None:
        super().__init__()
        self._target = channel_layout(
            "ParallelEmbedID", "output_layout", output_layout, ("replicated", "channel")
        )
        self.comm, self.output_layout = comm, output_layout
        self.ignore_label = ignore_label
        self._shares = shares(out_size, comm.size)
        pieces = [Piece({1: [part]}) for part in self._shares]
        initializer = Normal(1.0) if initialW is None else _get_initializer(initialW)
        with self.init_scope():
            self.W = ShardedParameter(comm, initializer, pieces, (in_size, out_size))

    def forward(self, x: Any) -> Variable:
        """The rows that ``x`` names."""
        y = embed_id(x, self.W, ignore_label=self.ignore_label)
        channel, parts = sharded(y.ndim - 1), lengths(self._shares)
        target = REPLICATED if self._target == REPLICATED else channel
        return change_layout(y, self.comm, channel, target, from_parts=parts)
