"""A model for several ranks, made from one for a single rank."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy

from renga.communicators import Communicator
from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Link
from renga.core.link.parallel_models import note_parallel_model, require_own_parts
from renga.core.link.sharing_memory import share_arrays
from renga.core.link.traces import without_traces
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.parallel.channel.strategy import ChannelStrategy
from renga.parallel.conversion.arguments import require_same_on_all_ranks
from renga.parallel.conversion.strategy import Applied, Ranks, Strategy
from renga.parallel.conversion.tracked_link import LoadedLink, is_tracked
from renga.parallel.sequence.strategy import SequenceStrategy
from renga.parallel.spatial.strategy import SpatialStrategy

_Model = TypeVar("_Model", bound=Link)

STRATEGIES: dict[str, type[Strategy]] = {
    each.name: each for each in (ChannelStrategy, SequenceStrategy, SpatialStrategy)
}


def parallelize(
    model: _Model,
    comm: Ranks,
    strategy: str | Strategy = "channel",
    *inputs: object,
    input: str = "replicated",
    output: str = "replicated",
    **options: object,
) -> _Model:
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
            returns shards, too.
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
    if isinstance(model, Link):
        require_own_parts("parallelize", model)
    new, report, serial = with_strategy(
        model, comm, strategy, inputs, input, output, **options
    )
    note_parallel_model(model, new)
    if input == output == "replicated" and isinstance(new, LoadedLink):
        new.parallel_run.first_calls.expect(new, serial)
    if comm.rank == 0:
        print(report, flush=True)
    return cast(_Model, new)


def with_strategy(
    model: Link,
    comm: Ranks,
    strategy: str | Strategy,
    inputs: Sequence[object],
    input: str = "replicated",
    output: str = "replicated",
    **options: object,
) -> Applied:
    """What ``parallelize`` returns and prints."""
    chosen = strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        chosen = STRATEGIES[strategy]()
    if not isinstance(chosen, Strategy):
        raise ValueError(
            f"parallelize: expected strategy to be one of "
            f"{', '.join(STRATEGIES)}, got {strategy!r}"
        )
    ranks = _check(model, comm, chosen, input, output, options)
    chosen.input, chosen.output = input, output
    applied = None
    while applied is None:
        text = _describe(model, chosen, input, inputs)
        if output != "replicated":
            text += f" with {output} outputs"
        text += "".join(f" with {name}" for name in sorted(options))
        what = "models and arguments"
        require_same_on_all_ranks(ranks, "parallelize", what, ValueError, text)
        # The caller's model keeps its weights.
        given, model = model, copy.deepcopy(model)
        share_arrays(given, model)
        if inputs:
            _initialize(model, inputs)
        ranks.bcast_data(model)
        numpy.random.set_state(ranks.bcast_obj(numpy.random.get_state()))
        applied = chosen.apply(model, comm, inputs, **options)
    return applied


def _check(
    model: Any,
    comm: Ranks,
    strategy: Strategy,
    input: str,
    output: str,
    options: dict[str, Any],
) -> Communicator:
    """The communicator, if each argument by itself is right."""
    for what, given, possible in (
        ("input", input, strategy.inputs),
        ("output", output, strategy.outputs),
    ):
        if given not in possible:
            raise ValueError(
                f"parallelize: expected {what} to be {' or '.join(possible)} for "
                f"{strategy.name}, got {given!r}"
            )
    if not isinstance(model, Link):
        raise TypeError(f"parallelize: expected model to be a Link, got {model!r}")
    is_grid = isinstance(comm, SpatialGrid)
    ranks = comm.comm if isinstance(comm, SpatialGrid) else comm
    if not hasattr(ranks, "bcast_data") or (is_grid and not strategy.takes_grids):
        raise TypeError(f"parallelize: expected a communicator, got {comm!r}")
    if strategy.ranks not in (None, ranks.size):
        raise ValueError(
            f"parallelize: expected a plan for {ranks.size} ranks, got one for "
            f"{strategy.ranks}"
        )
    if is_tracked(model):
        raise ValueError("parallelize: expected a serial model, got a parallel one")
    if options and not strategy.takes_options:
        raise TypeError(
            f"parallelize: expected {', '.join(sorted(options))} with a plan with "
            f"stages only, got {strategy.name}"
        )
    return ranks


def _describe(
    model: Link, strategy: Strategy, input: str, inputs: Sequence[Any]
) -> str:
    """What has to be the same on all ranks, apart from numbers."""
    params = ", ".join(
        f"{name} {param.dtype} {param.shape}" if param.is_initialized else name
        for name, param in sorted(model.namedparams())
    )
    shapes = ", ".join(str(getattr(x, "shape", type(x).__name__)) for x in inputs)
    return (
        f"{strategy.name} of {input} ({shapes}) for {type(model).__name__} ({params})"
    )


def _initialize(model: Any, inputs: Sequence[Any]) -> None:
    """Has a forward pass in test mode initialize parameters that have no shape."""
    if any(not param.is_initialized for param in model.params()):
        with no_backprop_mode(), using_config("train", False), without_traces(model):
            model(*inputs)
