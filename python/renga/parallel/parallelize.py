"""A model for several ranks, made from one for a single rank."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, Union

import numpy

from renga.backends import cuda
from renga.communicators import Communicator
from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Link
from renga.core.link.parallel_models import note_parallel_model, require_own_parts
from renga.core.link.sharing_memory import share_arrays
from renga.core.link.traces import without_traces
from renga.core.variable import as_array
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.parallel.channel.channel_run import ChannelRun
from renga.parallel.channel.replacement import channel_replacements
from renga.parallel.conversion.arguments import replace_arrays
from renga.parallel.conversion.consistency import require_same_on_all_ranks
from renga.parallel.conversion.replacement import (
    LinkReplacement,
    copy_with_replacements,
)
from renga.parallel.conversion.tracked_link import LoadedLink, is_tracked
from renga.parallel.placement.replicated_parameter import ReplicatedParameter
from renga.parallel.samples.sample_run import SampleRun
from renga.parallel.sequence.replacement import sequence_replacements
from renga.parallel.sequence.sequence_run import SequenceRun
from renga.parallel.spatial.replacement import spatial_replacements
from renga.parallel.spatial.spatial_run import SpatialRun

Ranks = Union[Communicator, SpatialGrid]


class Strategy(Protocol):
    """A strategy that has been found for a model: a plan of :mod:`renga.planning`."""

    @property
    def name(self) -> str:
        """Equal for equal strategies."""

    @property
    def ranks(self) -> int:
        """The number of ranks that it is for."""

    @property
    def grid(self) -> tuple[int, ...] | None:
        """That of the ranks which share images, if they do."""

    def sample_run(self, comm: Communicator) -> SampleRun | None:
        """How groups of ranks with samples of their own run the model, if there are."""

    def replacements(
        self, model: Link, comm: Communicator, inputs: Sequence[Any]
    ) -> list[LinkReplacement]:
        """A replacement for every link of a model that has parameters of its own."""

    def pipeline(
        self, model: Link, comm: Communicator, inputs: Sequence[Any], **options: Any
    ) -> Link | None:
        """The model in the stages of a pipeline, in the place of replacements.

        ``options`` are those of :class:`renga.pipeline.Pipeline`.
        """


_STRATEGIES: dict[str, Callable[..., list[LinkReplacement]]]
_STRATEGIES = {
    "channel": channel_replacements,
    "sequence": sequence_replacements,
    "spatial": spatial_replacements,
}
# Documented names of versions before placements had the names of PyTorch's DTensor.
_FORMER_INPUTS = {"whole": "replicated", "parts": "sharded"}


def parallelize(
    model: Link,
    comm: Ranks,
    strategy: str | Strategy = "channel",
    *inputs: Any,
    input: str = "replicated",
    output: str = "replicated",
    **options: Any,
) -> Any:
    """A copy of ``model`` whose links are sharded over the ranks of ``comm``.

    It has the weights of rank 0's model under the same names, and computes the same:
    every rank calls it with the same inputs and gets the same outputs. NumPy's
    generators of all ranks continue from the state of rank 0's. Rank 0 prints which
    links are replaced, which are not and why, and the expected communication. Make the
    optimizer afterwards.

    Args:
        model: the same on every rank, apart from its weights.
        comm: a communicator; for ``spatial`` also a :class:`SpatialGrid`.
        strategy: ``channel``, ``sequence`` or ``spatial``, or a plan for as many ranks.
            One with stages makes a :class:`renga.pipeline.Pipeline`.
        inputs: example arguments of the model. It is called once with them, to find
            which activations can stay sharded between links; without an example, none
            can.
        input: what the model is called with: ``replicated`` images or sequences, of
            which each rank takes its shard itself, or ``sharded`` ones (``spatial`` and
            ``sequence`` only), where each rank has loaded its own shard. Then the model
            returns shards, too. The former names ``whole`` and ``parts`` are accepted.
        output: what the model returns: ``replicated`` variables, or with ``sharded``
            (``channel`` with an example only) this rank's channels, or features of
            sequences, such as the scores of its part of a vocabulary.
        options: of the :class:`renga.pipeline.Pipeline` that a plan with stages makes,
            such as ``samples``, ``reduce`` and ``batch_axis``, which say what the loss
            is a mean over.

    Raises:
        TypeError: ``model`` is no link, or ``comm`` no communicator; or there are
            options without a plan with stages.
        ValueError: there is no such strategy, input or output; outputs cannot stay
            sharded; the model is parallel already, or shares a link with another one
            that is; or the ranks' models or arguments differ. From the first call of
            the parallel model: its outputs are not those of the serial one, as it reads
            shapes or elements of activations.
    """
    arguments = model, comm, strategy, inputs, input, output
    if isinstance(model, Link):
        require_own_parts("parallelize", model)
    new, report, serial = with_strategy(*arguments, **options)
    note_parallel_model(model, new)
    is_replicated = _FORMER_INPUTS.get(input, input) == output == "replicated"
    if is_replicated and isinstance(new, LoadedLink):
        new._run_model.first_calls.expect(new, serial)
    if comm.rank == 0:
        print(report, flush=True)
    return new


def with_strategy(
    model: Link,
    comm: Ranks,
    strategy: str | Strategy,
    inputs: Sequence[Any],
    input: str = "replicated",
    output: str = "replicated",
    **options: Any,
) -> tuple[Any, str, dict[int, Link]]:
    """What ``parallelize`` returns, what it prints, and the links that are replaced.

    The latter by the ``id`` of the links of the new model that replace them.
    """
    input = _FORMER_INPUTS.get(input, input)
    ranks = _check(model, comm, strategy, input, output)
    text = _describe(model, strategy, input, inputs)
    if output != "replicated":
        text += f" with {output} outputs"
    text += "".join(f" with {name}" for name in sorted(options))
    what = "models and arguments"
    require_same_on_all_ranks(ranks, "parallelize", what, ValueError, text)
    given, model = model, copy.deepcopy(model)  # the caller's model keeps its weights
    share_arrays(given, model)
    if inputs:
        _initialize(model, inputs)
    ranks.bcast_data(model)
    numpy.random.set_state(ranks.bcast_obj(numpy.random.get_state()))
    samples: SampleRun | None = None
    device = model.device
    pipeline = _pipeline(model, ranks, strategy, inputs, options)
    if pipeline is not None:
        return pipeline, f"parallelize: {_name(strategy)}, {pipeline}", {}
    # Weights are cut in the memory of the host.
    model.to_device("@numpy")
    inputs = replace_arrays(tuple(inputs), lambda x: cuda.to_cpu(as_array(x)))
    links = len(list(model.links()))
    if isinstance(strategy, str):
        layout = {} if output == "replicated" else {"output": output}
        replacements = _STRATEGIES[strategy](model, comm, inputs, **layout)
    else:
        samples = strategy.sample_run(ranks)
        shared = ranks if samples is None else samples.inner
        own = inputs if samples is None else samples.shards(inputs)
        replacements = strategy.replacements(model, shared, own)
    if len(list(model.links())) > links:  # each rank has made some in its first call
        model.to_device(device)
        return with_strategy(model, comm, strategy, inputs, input, output, **options)
    report = _report(model, replacements, _name(strategy), ranks.size)
    new = {id(r.link): r.replacement for r in replacements if r.replacement is not None}
    class_of: Callable[[Link], type[Link]] = type
    grid, is_replicated = _grid(strategy, comm, ranks), input == "replicated"
    if ranks.size > 1 and grid is not None:
        class_of = SpatialRun(grid, is_replicated).class_of
    elif samples is not None:
        class_of = samples.class_of
    elif ranks.size > 1 and strategy == "sequence":
        class_of = SequenceRun(ranks, is_replicated).class_of
    elif ranks.size > 1:
        called = {id(new.get(id(model)))}  # by the program: it has to compare calls
        class_of = ChannelRun(ranks, _links_of(new.values()) - called).class_of
    parallel = copy_with_replacements(model, new, class_of)
    if isinstance(parallel, LoadedLink):
        parallel._run_model.loads.begin(parallel)
    parallel.to_device(device)
    if ranks.size > 1:
        ReplicatedParameter.replace_parameters(parallel, ranks)
    names = dict(parallel.namedlinks())
    replaced = {
        id(names[path]): link for path, link in model.namedlinks() if id(link) in new
    }
    return parallel, report, replaced


def _pipeline(
    model: Link,
    ranks: Communicator,
    strategy: str | Strategy,
    inputs: Sequence[Any],
    options: dict[str, Any],
) -> Link | None:
    """That of a plan with stages, which alone takes options."""
    pipeline = None
    if not isinstance(strategy, str):
        pipeline = strategy.pipeline(model, ranks, inputs, **options)
    if options and pipeline is None:
        raise TypeError(
            f"parallelize: expected {', '.join(sorted(options))} with a plan with "
            f"stages only, got {_name(strategy)}"
        )
    return pipeline


def _links_of(models: Iterable[Link]) -> set[int]:
    """The ``id`` of each link of some models."""
    return {id(link) for model in models for link in model.links()}


def _grid(
    strategy: str | Strategy, comm: Ranks, ranks: Communicator
) -> SpatialGrid | None:
    """That of a strategy for shared images."""
    if isinstance(strategy, str):
        return SpatialGrid.of(comm) if strategy == "spatial" else None
    return None if strategy.grid is None else SpatialGrid(ranks, strategy.grid)


def _name(strategy: str | Strategy) -> str:
    return strategy if isinstance(strategy, str) else strategy.name


def _check(
    model: Any, comm: Ranks, strategy: str | Strategy, input: str, output: str
) -> Communicator:
    """The communicator, if each argument by itself is right."""
    is_plan = hasattr(strategy, "replacements")
    if not is_plan and strategy not in _STRATEGIES:
        raise ValueError(
            f"parallelize: expected strategy to be one of "
            f"{', '.join(_STRATEGIES)}, got {strategy!r}"
        )
    has_shards = strategy in ("sequence", "spatial")
    inputs = ["replicated", "sharded"] if has_shards else ["replicated"]
    if input not in inputs:
        raise ValueError(
            f"parallelize: expected input to be {' or '.join(inputs)} for {strategy}, "
            f"got {input!r}"
        )
    outputs = ["replicated", "sharded"] if strategy == "channel" else ["replicated"]
    if output not in outputs:
        raise ValueError(
            f"parallelize: expected output to be {' or '.join(outputs)} for "
            f"{strategy}, got {output!r}"
        )
    if not isinstance(model, Link):
        raise TypeError(f"parallelize: expected model to be a Link, got {model!r}")
    ranks = comm.comm if isinstance(comm, SpatialGrid) else comm
    if not hasattr(ranks, "bcast_data") or (
        ranks is not comm and strategy != "spatial"
    ):
        raise TypeError(f"parallelize: expected a communicator, got {comm!r}")
    if not isinstance(strategy, str) and strategy.ranks != ranks.size:
        raise ValueError(
            f"parallelize: expected a plan for {ranks.size} ranks, got one for "
            f"{strategy.ranks}"
        )
    if is_tracked(model):
        raise ValueError("parallelize: expected a serial model, got a parallel one")
    return ranks


def _describe(
    model: Link, strategy: str | Strategy, input: str, inputs: Sequence[Any]
) -> str:
    """What has to be the same on all ranks, apart from numbers."""
    params = ", ".join(
        f"{name} {param.dtype} {param.shape}" if param.is_initialized else name
        for name, param in sorted(model.namedparams())
    )
    shapes = ", ".join(str(getattr(x, "shape", type(x).__name__)) for x in inputs)
    return (
        f"{_name(strategy)} of {input} ({shapes}) for {type(model).__name__} ({params})"
    )


def _initialize(model: Any, inputs: Sequence[Any]) -> None:
    """Has a forward pass in test mode initialize parameters that have no shape."""
    if any(not param.is_initialized for param in model.params()):
        with no_backprop_mode(), using_config("train", False), without_traces(model):
            model(*inputs)


def _report(
    model: Link, replacements: Sequence[LinkReplacement], strategy: str, size: int
) -> str:
    paths = {id(link): path for path, link in reversed(list(model.namedlinks()))}
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
