"""Channels that are sharded over several ranks: how a model is made and run."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence

from renga.communicators import Communicator
from renga.core.link import Link
from renga.links.parallel.channel.choice import LinkChoice
from renga.parallel.channel.replacement import ChannelReplacer
from renga.parallel.conversion.replacement import LinkReplacement
from renga.parallel.conversion.run import ParallelRun, Sharded
from renga.parallel.conversion.strategy import LinkStrategy
from renga.parallel.conversion.tracked_link import loaded_class, tracked_class
from renga.parallel.placement.whole_reads import gather_shards_for_functions


class ChannelRun(ParallelRun):
    """Runs models: parallel links gather what they do not have.

    Args:
        comm: the communicator of the ranks.
        parallel: the ``id`` of each parallel link, which runs as it is.
    """

    strategy = "channel"

    def __init__(self, comm: Communicator, parallel: Collection[int]) -> None:
        super().__init__(comm)
        self.parallel = parallel

    @contextlib.contextmanager
    def sharding(
        self, model: Link, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sharded:
        gather_shards_for_functions()
        with super().sharding(model, args, kwargs) as divided:
            yield divided

    def class_of(self, link: Link) -> type[Link]:
        is_parallel = id(link) in self.parallel
        return (loaded_class if is_parallel else tracked_class)(link, self)


class ChannelStrategy(LinkStrategy):
    """Each rank has some channels, features or heads of every layer.

    Args:
        choices: as for :class:`ChannelReplacer`.
    """

    name = "channel"
    outputs = ("replicated", "sharded")

    def __init__(self, choices: Mapping[str, LinkChoice] | None = None) -> None:
        self.choices = choices

    def divide(
        self, model: Link, comm: Communicator, example: Sequence[object]
    ) -> tuple[list[LinkReplacement], ChannelRun]:
        replacer = ChannelReplacer(model, comm, example, self.choices, self.output)
        found = replacer.replacements()
        # The program calls the model, which has to compare calls.
        parallel = {id(r.replacement) for r in found if r.link is not model}
        return found, ChannelRun(comm, parallel)
