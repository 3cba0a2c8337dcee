"""ParallelEmbedID: an embedding whose vectors are sharded by elements."""

from __future__ import annotations

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import embed_id
from renga.initializers import Normal, get_initializer
from renga.links.connection.embed_id import EmbedID
from renga.links.parallel.channel.link import (
    CallPlacement,
    LinkChoice,
    channel_placement,
    values_of,
)
from renga.links.parallel.forms import parallel_form
from renga.parallel.placement import REPLICATE, Shard
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.placement.sharded_parameter import Block, ShardedParameter
from renga.parallel.placement.whole_reads import reads_own_shards
from renga.parallel.redistribute import Redistribution


@parallel_form(EmbedID, "channel")
class ParallelEmbedID(Link):
    """``EmbedID`` of which each rank has some elements of every vector.

    Args:
        comm: the communicator of the ranks.
        in_size, out_size, initialW, ignore_label: as for EmbedID.
        output_layout: ``replicated``, or ``channel`` where each rank has its elements.

    Shapes:
        x: integers of any shape, the same on every rank
        y: (*x.shape, out_size), or this rank's elements of it
        W: this rank's shard of (in_size, out_size)

    Raises:
        ValueError: the layout is unknown.
    """

    W: ShardedParameter
    _target = CallPlacement()

    def __init__(
        self,
        comm: Communicator,
        in_size: int,
        out_size: int,
        initialW: Initial | None = None,
        ignore_label: int | None = None,
        *,
        output_layout: str = "replicated",
    ) -> None:
        super().__init__()
        self._target = channel_placement(
            "ParallelEmbedID", "output_layout", output_layout, ("replicated", "channel")
        )
        self.comm, self.output_layout = comm, output_layout
        self.ignore_label = ignore_label
        self._ranges = shard_ranges(out_size, comm.size)
        blocks = [Block({1: [own]}) for own in self._ranges]
        initializer = Normal(1.0) if initialW is None else get_initializer(initialW)
        with self.init_scope():
            self.W = ShardedParameter(comm, initializer, blocks, (in_size, out_size))

    @classmethod
    def from_link(
        cls, link: EmbedID, comm: Communicator, choice: LinkChoice, call: object = None
    ) -> ParallelEmbedID:
        """This rank's elements of a serial link's vectors."""
        in_size, out_size = link.W.shape
        return cls(
            comm,
            in_size,
            out_size,
            values_of(link.W),
            link.ignore_label,
            output_layout=choice.layouts[1],
        )

    @reads_own_shards
    def forward(self, x: ArrayLike) -> Variable:
        """The vectors of the words ``x``."""
        y = embed_id(x, self.W, ignore_label=self.ignore_label)
        source, sizes = Shard(y.ndim - 1), sizes_of(self._ranges)
        target = REPLICATE if self._target == REPLICATE else source
        return Redistribution(self.comm, source, target, sizes).apply(y)
