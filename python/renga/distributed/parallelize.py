"""A model for several ranks, made from one for a single rank."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from renga.link import Link
from renga.links.parallel.agreement import require_alike
from renga.links.parallel.channel.swap import Swap, channel_swaps
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.model.swap import spatial_swaps
from renga.links.parallel.spatial.model.watch import is_watched, watch

Plan = Callable[[Link, Any, Sequence[Any]], list[Swap]]

_STRATEGIES: dict[str, Plan] = {"channel": channel_swaps, "spatial": spatial_swaps}


def parallelize(
    model: Link,
    comm: Any,
    strategy: str = "channel",
    *inputs: Any,
    input: str = "whole",
) -> Any:
    """A copy of ``model`` whose links are shared out over the ranks of ``comm``.

    It has the weights of rank 0's model under the same names, and computes the same:
    every rank calls it with the same whole inputs and gets the whole outputs. The
    ranks' NumPy generators go on from rank 0's, so that all draw alike. Rank 0
    prints what it swapped, what it left and the communication to expect. Make the
    optimizer afterwards.

    Args:
        model: on every rank, built alike.
        comm: a communicator; for ``spatial`` also a :class:`SpatialGrid`.
        strategy: ``channel`` or ``spatial``.
        inputs: examples of what the model is called with. It is called once with
            them, to see which activations need not be whole on every rank; without,
            they all are between links.
        input: what the model is called with: ``whole`` images, of which each rank
            takes its part itself, or ``parts`` (``spatial`` only), where each rank
            has loaded its own. Then images come back in parts, too.

    Raises:
        TypeError: ``model`` is no link, or ``comm`` no communicator.
        ValueError: there is no such strategy or input; the model is for several ranks
            already; or the ranks' models or arguments differ.
    """
    ranks = _check(model, comm, strategy, input)
    what = _outline(model, strategy, input, inputs)
    text = "models and arguments"
    require_alike(ranks, "parallelize", text, ValueError, what)
    model = copy.deepcopy(model)  # the caller's keeps its weights
    if inputs:
        _initialize(model, inputs)
    ranks.bcast_data(model)
    numpy.random.set_state(ranks.bcast_obj(numpy.random.get_state()))
    swaps = _STRATEGIES[strategy](model, comm, inputs)
    if comm.rank == 0:
        print(_report(model, swaps, strategy, comm.size), flush=True)
    replacements = {id(s.link): s.new for s in swaps if s.new is not None}
    new = copy.deepcopy(model, replacements)
    if strategy == "spatial" and ranks.size > 1:
        watch(new, SpatialGrid.of(comm), input == "whole")
    return new


def _check(model: Any, comm: Any, strategy: str, input: str) -> Any:
    """The communicator, if each argument by itself is right."""
    if strategy not in _STRATEGIES:
        raise ValueError(
            f"parallelize: expected strategy to be one of "
            f"{', '.join(_STRATEGIES)}, got {strategy!r}"
        )
    if input not in (("whole", "parts") if strategy == "spatial" else ("whole",)):
        expected = "whole or parts" if strategy == "spatial" else "whole"
        raise ValueError(
            f"parallelize: expected input to be {expected} for {strategy}, got "
            f"{input!r}"
        )
    if not isinstance(model, Link):
        raise TypeError(f"parallelize: expected model to be a Link, got {model!r}")
    ranks = comm.comm if isinstance(comm, SpatialGrid) else comm
    if not hasattr(ranks, "bcast_data") or (
        ranks is not comm and strategy != "spatial"
    ):
        raise TypeError(f"parallelize: expected a communicator, got {comm!r}")
    if is_watched(model):
        raise ValueError("parallelize: expected a serial model, got one in parts")
    return ranks


def _outline(model: Link, strategy: str, input: str, inputs: Sequence[Any]) -> str:
    """What has to be the same on all ranks, as far as it is no number."""
    params = ", ".join(
        f"{name} {param.dtype} {param.shape}" if param.is_initialized else name
        for name, param in sorted(model.namedparams())
    )
    shapes = ", ".join(str(getattr(x, "shape", type(x).__name__)) for x in inputs)
    return f"{strategy} of {input} ({shapes}) for {type(model).__name__} ({params})"


def _initialize(model: Any, inputs: Sequence[Any]) -> None:
    from renga.configuration import no_backprop_mode, using_config

    if any(not param.is_initialized for param in model.params()):
        with no_backprop_mode(), using_config("train", False):
            model(*inputs)


def _report(model: Link, swaps: Sequence[Swap], strategy: str, size: int) -> str:
    paths = {id(link): path for path, link in reversed(list(model.namedlinks()))}
    lines = [f"parallelize: {strategy}, {size} ranks"]
    width = max([len(paths[id(swap.link)]) for swap in swaps], default=0)
    for swap in swaps:
        path, kind = paths[id(swap.link)], type(swap.link).__name__
        if swap.new is None:
            lines.append(f"  {path:{width}}  {kind} left: {swap.reason}")
            continue
        algorithm = getattr(swap.new, "algorithm", None) or "local"
        layouts = f"{getattr(swap.new, 'input_layout', 'replicated')} -> "
        layouts += getattr(swap.new, "output_layout", "replicated")
        cost = "what travels is not known"
        if swap.cost is not None:
            moved, seconds = swap.cost.bytes, swap.cost.communication
            cost = f"{moved / 1e6:.2f} MB, {seconds * 1e3:.2f} ms"
        what = f"{type(swap.new).__name__}, {algorithm}, {layouts}"
        lines.append(f"  {path:{width}}  {what}, {cost}")
    return "\n".join([*lines, _sum(swaps)])


def _sum(swaps: Sequence[Swap]) -> str:
    """What a rank receives in all, as far as an example told it."""
    costs = [swap.cost for swap in swaps if swap.cost is not None]
    unknown = sum(swap.new is not None and swap.cost is None for swap in swaps)
    if unknown and not costs:
        return "  an example of the input would tell what travels"
    moved = sum(cost.bytes for cost in costs) / 1e6
    seconds = sum(cost.communication for cost in costs)
    total = (
        f"  each rank receives {moved:.1f} MB per step, about {seconds * 1e3:.1f} ms"
    )
    if unknown:
        total += f", and what {unknown} links need to which no example came"
    return total
