"""A run of a model whose channels are sharded over several ranks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.functions.noise.seed import random_streams
from renga.parallel.conversion.arguments import require_same_call
from renga.parallel.conversion.first_calls import FirstCalls
from renga.parallel.conversion.loads import Loads
from renga.parallel.conversion.tracked_link import loaded_class, tracked_class
from renga.parallel.placement.tracker import PlacementTracker, tracking
from renga.parallel.placement.whole_reads import gather_shards_for_functions


@dataclass(frozen=True)
class ChannelRun:
    """Runs models: all ranks have the same inputs, and use the same random numbers.

    Args:
        comm: the communicator of the ranks.
        parallel: the ``id`` of each parallel link, which runs as it is.
    """

    comm: Communicator
    parallel: Collection[int]
    loads: Loads = field(default_factory=Loads, compare=False)
    first_calls: FirstCalls = field(default_factory=FirstCalls, compare=False)

    def __call__(
        self, name: str, run: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """The result of ``run``, of a model of this name."""
        model = getattr(run, "__self__")  # noqa: B009 (of a callable)
        require_same_call(self.comm, model, self.loads, (args, kwargs), True)
        gather_shards_for_functions()
        # Links of the model know by the tracker that they are called by it.
        with tracking(PlacementTracker(lambda x: x)), random_streams(self.comm):
            return run(*args, **kwargs)

    def class_of(self, link: Link) -> type[Link]:
        """The class of a link of a model."""
        make = loaded_class if id(link) in self.parallel else tracked_class
        return make(link, self)
