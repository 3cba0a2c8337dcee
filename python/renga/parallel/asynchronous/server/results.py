"""What ranks that only serve have in their own models in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.optimizer import Optimizer
from renga.parallel.asynchronous.server.shards import Shards
from renga.parallel.data.sharded_states.layout import Piece


class Layout(NamedTuple):
    """The names and shapes of the workers' parameters, and the pieces of each shard."""

    names: list[str]
    shapes: list[tuple[int, ...]]
    pieces: list[Sequence[Piece]]


def layout_of(model: Link, shards: Shards) -> Layout:
    """The layout of a worker's model."""
    names = [found.name for found in distinct_params(model, include_uninit=False)]
    shapes = [param.shape for param in shards.params]
    return Layout(names, shapes, [shards.pieces(i) for i in range(shards.count)])


def put_results(
    servers: Communicator,
    optimizer: Optimizer,
    layout: Layout | None,
    states: dict[int, dict[str, object]],
) -> None:
    """Gives the model and the optimizer of a server the results of all servers.

    Every rank that only serves calls it. A model without the workers' parameters stays
    as it is.

    Args:
        servers: these ranks.
        optimizer: of this rank.
        layout: of the workers' models; None if this rank has no shard.
        states: what :meth:`Service.results` has returned.
    """
    layouts, of_ranks = zip(*servers.allgather_obj((layout, states)))
    layout = next((found for found in layouts if found is not None), None)
    if optimizer.target is None or layout is None:
        return
    params = {found.name: found.param for found in distinct_params(optimizer.target)}
    if not params.keys() >= set(layout.names):
        return
    mine = [params[name] for name in layout.names]
    for param, shape in zip(mine, layout.shapes):
        if not param.is_initialized:
            param.initialize(shape)
    shards = Shards.of_pieces(mine, layout.pieces)
    rules = [param.update_rule for param in mine]
    for shard, state in (pair for found in of_ranks for pair in found.items()):
        shards.put(shard, state["arrays"], shards.arrays)
        shards.put_states(shard, state["rules"], rules)
        optimizer.t = state["t"]
