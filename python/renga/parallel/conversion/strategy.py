"""Strategies: how a model is divided among ranks and run, and the report of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, Union

from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.link.own_values import link_paths
from renga.core.variable import Variable, as_array
from renga.functions.noise.seed import random_streams
from renga.links.parallel.forms import is_form
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.parallel.conversion.arguments import map_arrays, require_same_call
from renga.parallel.conversion.first_calls import FirstCalls
from renga.parallel.conversion.loads import Loads
from renga.parallel.conversion.replacement import (
    LinkReplacement,
    copy_with_replacements,
)
from renga.parallel.conversion.tracked_link import (
    LoadedLink,
    loaded_class,
    tracked_class,
)
from renga.parallel.placement import REPLICATE
from renga.parallel.placement.replicated_parameter import ReplicatedParameter
from renga.parallel.placement.tracker import PlacementTracker, tracking

_Result = TypeVar("_Result")
Ranks = Union[Communicator, SpatialGrid]


class Applied(NamedTuple):
    """What a strategy has made of a model."""

    model: Any
    report: str
    serial: dict[int, Link] = {}  # those replaced, by the ``id`` of links of the model


class Strategy:
    """A way to divide a model among ranks, which ``parallelize`` applies."""

    #: Equal for equal strategies.
    name: str
    #: What models may be called with, and what they may return.
    inputs: tuple[str, ...] = ("replicated",)
    outputs: tuple[str, ...] = ("replicated",)
    #: The number of ranks that it is for; None for any.
    ranks: int | None = None
    #: Whether ``apply`` takes a :class:`SpatialGrid`, too, and options by name.
    takes_grids = takes_options = False
    #: What the model takes and returns.
    input = output = "replicated"

    def apply(
        self, model: Link, comm: Ranks, example: Sequence[object], **options: object
    ) -> Applied | None:
        """The model on the ranks of ``comm``; every rank calls it.

        Args:
            model: with the same weights on all ranks, which it may take over.
            example: arguments of the model; may be empty.

        Returns:
            None if ``model`` has made links in a call with the example: then it has to
            be given the weights of one rank, and ``apply`` to be called again.
        """
        raise NotImplementedError


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
    #: Whether numbers that a model reads of activations are those of shards.
    reads_shards = False

    def __init__(self, comm: Communicator, is_replicated: bool = True) -> None:
        self.comm, self.is_replicated = comm, is_replicated
        is_noted = self.reads_shards and is_replicated
        self.loads, self.first_calls = Loads(), FirstCalls(comm if is_noted else None)

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

    @staticmethod
    def whole_result(
        name: str,
        tracker: PlacementTracker,
        expected: str,
        gather: Callable[[Variable], Variable],
        y: Any,
    ) -> Any:
        """What the caller of a model gets for an array of its result: a whole one.

        Args:
            name: of the model.
            expected: what the model may return, for the error.
            gather: makes the whole of a shard.

        Raises:
            ValueError: a shard is no Variable, or a gradient is pending.
        """
        placement = tracker.placement_of(y)
        is_sharded = placement == tracker.sharded
        is_known = is_sharded or placement == REPLICATE
        if not is_known or (is_sharded and not isinstance(y, Variable)):
            raise ValueError(
                f"{name}: expected it to return Variables that are {expected}, got "
                f"{type(y).__name__} {y.shape}"
            )
        return gather(y) if is_sharded else y

    def class_of(self, link: Link) -> type[Link]:
        """The class of a link of a model.

        Where models take shards, a parallel link is called as it is.
        """
        is_called = not self.is_replicated and is_form(link, self.strategy)
        return (loaded_class if is_called else tracked_class)(link, self)


class LinkStrategy(Strategy):
    """A strategy that replaces links of a model by parallel ones."""

    def divide(
        self, model: Link, comm: Any, example: Sequence[object]
    ) -> tuple[list[LinkReplacement], ParallelRun]:
        """What replaces each link with parameters, and how the new model runs."""
        raise NotImplementedError

    def apply(
        self, model: Link, comm: Ranks, example: Sequence[object], **options: object
    ) -> Applied | None:
        device, links = model.device, len(list(model.links()))
        # Weights are cut in the memory of the host.
        model.to_device("@numpy")
        example = map_arrays(lambda x: cuda.to_cpu(as_array(x)), tuple(example))
        replacements, run = self.divide(model, comm, example)
        if len(list(model.links())) > links:  # of other values on each rank
            model.to_device(device)
            return None
        size = run.comm.size
        replaced = [r for r in replacements if r.replacement is not None]
        new = {id(r.link): r.replacement for r in replaced}
        class_of = run.class_of if size > 1 else type
        parallel = copy_with_replacements(model, new, class_of)
        if isinstance(parallel, LoadedLink):
            run.loads.begin(parallel)
        parallel.to_device(device)
        if size > 1:
            ReplicatedParameter.replace_parameters(parallel, run.comm)
        names = dict(parallel.namedlinks())
        serial = {
            id(names[path]): link
            for path, link in model.namedlinks()
            if id(link) in new
        }
        return Applied(parallel, report(model, replacements, self.name, size), serial)


def report(
    model: Link, replacements: Sequence[LinkReplacement], strategy: str, size: int
) -> str:
    """A line for each link with parameters, and what a rank receives in all."""
    paths = link_paths(model)
    lines = [f"parallelize: {strategy}, {size} ranks"]
    width = max([len(paths[id(r.link)]) for r in replacements], default=0)
    for link, new, reason, cost in replacements:
        path = paths[id(link)]
        if new is None:
            lines.append(f"  {path:{width}}  {type(link).__name__} kept: {reason}")
            continue
        algorithm = getattr(new, "algorithm", None) or "local"
        layouts = f"{getattr(new, 'input_layout', 'replicated')} -> "
        layouts += getattr(new, "output_layout", "replicated")
        expected = "communication is not known"
        if cost is not None:
            milliseconds = cost.communication * 1e3
            expected = f"{cost.bytes / 1e6:.2f} MB, {milliseconds:.2f} ms"
        what = f"{type(new).__name__}, {algorithm}, {layouts}"
        lines.append(f"  {path:{width}}  {what}, {expected}")
    return "\n".join([*lines, _total(replacements)])


def _total(replacements: Sequence[LinkReplacement]) -> str:
    """What a rank receives in all, as far as it is known from an example."""
    costs = [r.cost for r in replacements if r.cost is not None]
    unknown = sum(r.replacement is not None and r.cost is None for r in replacements)
    if unknown and not costs:
        return "  pass an example of the input to predict the communication"
    received = sum(cost.bytes for cost in costs) / 1e6
    milliseconds = sum(cost.communication for cost in costs) * 1e3
    total = f"  each rank receives {received:.1f} MB per step, about "
    total += f"{milliseconds:.1f} ms"
    if unknown:
        total += f", and what {unknown} links need that the example did not reach"
    return total
