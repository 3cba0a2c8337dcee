"""ParallelVocabEmbedID: an embedding whose vocabulary is sharded."""

from __future__ import annotations

import numpy

from renga.communicators import Communicator
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable, as_array
from renga.functions import embed_id, linear
from renga.links.connection.embed_id import EmbedID
from renga.links.parallel.channel.link import (
    CallPlacement,
    channel_placement,
    values_of,
)
from renga.parallel.placement import PARTIAL, REPLICATE, Shard
from renga.parallel.placement.shard_ranges import shard_ranges, sizes_of
from renga.parallel.placement.sharded_parameter import Block, ShardedParameter
from renga.parallel.placement.whole_reads import reads_own_shards
from renga.parallel.redistribute import Redistribution, with_summed_gradient
from renga.utils.type_check import IndexOutOfRange


class ParallelVocabEmbedID(EmbedID):
    """``EmbedID`` of which each rank has the vectors of some integers.

    Each rank looks up those that it has, and an all-reduce adds them up. ``attend``
    computes the scores of this rank's integers.

    Args:
        comm: the communicator of the ranks.
        in_size, out_size, initialW, ignore_label: as for EmbedID.
        attend_layout: of the scores: ``replicated``, or ``channel`` where each rank
            has those of its integers.

    Shapes:
        x: integers of any shape, the same on every rank
        y: (*x.shape, out_size)
        W: this rank's shard of (in_size, out_size)

    Raises:
        ValueError: the layout is unknown.

    Source: Shoeybi et al., Megatron-LM, 2019.
    """

    algorithm = "vocabulary"
    input_layout = output_layout = "replicated"
    _attend_target = CallPlacement()

    def __init__(
        self,
        comm: Communicator,
        in_size: int,
        out_size: int,
        initialW: Initial | None = None,
        ignore_label: int | None = None,
        *,
        attend_layout: str = "replicated",
    ) -> None:
        self._attend_target = channel_placement(
            "ParallelVocabEmbedID",
            "attend_layout",
            attend_layout,
            ("replicated", "channel"),
        )
        super().__init__(in_size, out_size, initialW, ignore_label)
        self.comm, self.attend_layout = comm, attend_layout
        self._ranges = shard_ranges(in_size, comm.size)
        blocks = [Block({0: [own]}) for own in self._ranges]
        initial, shape = self.W.initializer, (in_size, out_size)
        with self.init_scope():
            self.W = ShardedParameter(comm, initial, blocks, shape)

    @classmethod
    def from_link(
        cls, link: EmbedID, comm: Communicator, attend_layout: str
    ) -> ParallelVocabEmbedID:
        """This rank's integers of a serial link."""
        in_size, out_size = link.W.shape
        return cls(
            comm,
            in_size,
            out_size,
            values_of(link.W),
            link.ignore_label,
            attend_layout=attend_layout,
        )

    @reads_own_shards
    def forward(self, x: ArrayLike) -> Variable:
        """The vectors of the integers ``x``.

        Raises:
            IndexOutOfRange: there is no such integer.
        """
        x, own = as_array(x), self._ranges[self.comm.rank]
        size = self._ranges[-1].stop
        is_known = (x >= 0) & (x < size)
        if self.ignore_label is not None:
            is_known |= x == self.ignore_label
        if not is_known.all():
            raise IndexOutOfRange(
                f"ParallelVocabEmbedID {self.name or ''}: expected integers from 0 to "
                f"{size - 1}, got {x[~is_known][0]}"
            )
        is_own = (x >= own.start) & (x < own.stop)
        if self.ignore_label is not None:
            is_own &= x != self.ignore_label
        y = embed_id(numpy.where(is_own, x - own.start, -1), self.W, ignore_label=-1)
        return Redistribution(self.comm, PARTIAL, REPLICATE).apply(y)

    @reads_own_shards
    def _attend(self, x: Variable) -> Variable:
        x = with_summed_gradient(self.comm, x)
        y = linear(x, self.W, n_batch_axes=x.ndim - 1)
        if self._attend_target != REPLICATE:
            return y
        source, sizes = Shard(y.ndim - 1), sizes_of(self._ranges)
        return Redistribution(self.comm, source, REPLICATE, sizes).apply(y)
