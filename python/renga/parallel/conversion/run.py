"""A run of a model that ranks compute together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from renga.communicators import Communicator
from renga.core.link import Link
from renga.functions.noise.seed import random_streams
from renga.links.parallel.forms import is_form
from renga.parallel.conversion.arguments import require_same_call
from renga.parallel.conversion.first_calls import FirstCalls
from renga.parallel.conversion.loads import Loads
from renga.parallel.conversion.tracked_link import loaded_class, tracked_class
from renga.parallel.placement.tracker import PlacementTracker, tracking

_Result = TypeVar("_Result")

# The arguments of a call inside of the ranks, and what makes its result the caller's,
# if that has replicated arrays.
Sharded = Iterator[tuple[Any, Any, Callable[[Any], Any]]]


class ParallelRun:
    """Runs a model: all ranks call it alike, and use the same random numbers.

    A strategy derives its own, which says what ranks have for arguments and results.

    Args:
        comm: the communicator of the ranks.
        is_replicated: whether models take and return replicated arrays.
    """

    #: The strategy whose parallel links take shards.
    strategy: str
    #: The number from which this rank's streams of random numbers count.
    first_stream = 0

    def __init__(self, comm: Communicator, is_replicated: bool = True) -> None:
        self.comm, self.is_replicated = comm, is_replicated
        self.loads, self.first_calls = Loads(), FirstCalls()

    def __call__(
        self,
        model: Link,
        run: Callable[..., _Result],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> _Result:
        """The result of ``run(*args, **kwargs)``, a forward pass of ``model``."""
        compared = self._compared(args, kwargs)
        require_same_call(self.comm, model, self.loads, compared, self.is_replicated)
        streams = random_streams(self.comm, self.first_stream)
        with self.sharding(model, args, kwargs) as (args, kwargs, gather), streams:
            result = run(*args, **kwargs)
        return gather(result) if self.is_replicated else result

    def _compared(self, args: Any, kwargs: Any) -> Any:
        """The arguments that have to be the same on all ranks, or of the same shape."""
        return args, kwargs

    @contextlib.contextmanager
    def sharding(
        self, model: Link, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sharded:
        """The context of a forward pass; the base class's divides nothing.

        Links of the model know by its tracker that they are called by it.
        """
        with tracking(PlacementTracker(lambda x: x)):
            yield args, kwargs, lambda result: result

    def class_of(self, link: Link) -> type[Link]:
        """The class of a link of a model.

        Where models take shards, a parallel link is called as it is.
        """
        is_called = not self.is_replicated and is_form(link, self.strategy)
        return (loaded_class if is_called else tracked_class)(link, self)
