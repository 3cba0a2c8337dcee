"""What the layers of a model send and hold under each of the simple strategies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from renga.communicators import simulated
from renga.core.link import Link
from renga.core.link.own_values import link_paths, own_params
from renga.parallel.pipeline.measurement import Segment, SegmentCosts
from renga.parallel.pipeline.partition import partition
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.strategies.messages import link_messages
from renga.parallel.plan.strategies.traced_model import TracedModel
from renga.parallel.spatial.strategy import SpatialReplacer


class AnalyzedLayer(NamedTuple):
    """A function of a forward pass, on its own."""

    name: str  # the path of its link and its own name
    function: str
    work: int  # arithmetic operations
    depth: int
    finished: int  # the depth of the network up to here
    bytes: int  # of the output
    parameter_bytes: int
    volume: dict[str, float]  # bytes that a rank sends in a step, by strategy
    memory: dict[str, float]  # bytes of a rank


class Recorded(NamedTuple):
    """A function of the forward pass."""

    path: str  # of its link
    function: str
    work: int
    depth: int
    finished: int
    bytes: int


def layers_of(
    model: Link,
    inputs: Sequence[object],
    found: Sequence[Recorded],
    strategies: Sequence[str],
    ranks: int,
) -> list[AnalyzedLayer]:
    """The functions of a forward pass with volume and memory.

    The messages of a link count where its first function is.
    """
    parameters = {
        path: sum(4 * param.size for param in own_params(link).values())
        for path, link in model.namedlinks()
    }
    volumes = {s: _VOLUMES[s](model, inputs, found, ranks) for s in strategies}
    layers, seen = [], set()
    for f in found:
        is_first = f.path not in seen
        seen.add(f.path)
        own = parameters.get(f.path, 0) if is_first else 0
        volume = {
            s: volumes[s].get(f.path, 0.0) if is_first and f.path else 0.0
            for s in strategies
        }
        memory = {s: _memory(s, own, f.bytes, ranks) for s in strategies}
        name = f"{f.path} {f.function}".strip()
        numbers = f.work, f.depth, f.finished, f.bytes, own
        layers.append(AnalyzedLayer(name, f.function, *numbers, volume, memory))
    return layers


def _memory(strategy: str, parameters: int, output: int, ranks: int) -> float:
    """Pipelines split layers between ranks, others the layers themselves."""
    is_sharded = strategy in ("channel", "pipeline")
    return (parameters / ranks if is_sharded else parameters) + output / ranks


def _of_links(
    layout: str,
    algorithm: str,
    model: Link,
    inputs: Sequence[Any],
    found: Any,
    ranks: int,
) -> dict[str, float]:
    machine = simulated.Machine(intra_size=ranks)
    cluster = Cluster(ranks, machine, False)
    volumes: dict[str, float] = {}
    for traced in TracedModel(model, inputs).calls:
        call, layouts = traced.call, (layout, layout)
        size = link_messages(call.link, call, layouts, algorithm, cluster).bytes
        volumes[traced.path] = volumes.get(traced.path, 0.0) + size
    return volumes


def _spatial(
    model: Link, inputs: Sequence[Any], found: Any, ranks: int
) -> dict[str, float]:
    paths = link_paths(model)
    replacer = SpatialReplacer(model, simulated.connect(ranks), inputs)
    replaced = replacer.replacements()
    return {paths[id(r.link)]: r.cost.bytes for r in replaced if r.cost is not None}


def _pipeline(
    model: Link, inputs: Sequence[Any], found: Sequence[Recorded], ranks: int
) -> dict[str, float]:
    """Activations and gradients between stages that have about the same work."""
    work: dict[str, float] = {}
    outputs: dict[str, int] = {}
    path = ""
    for f in found:
        path = f.path or path
        work[path] = work.get(path, 0.0) + f.work
        outputs[path] = f.bytes
    segments = [Segment(name, max(w, 1.0), 2 * max(w, 1.0)) for name, w in work.items()]
    stages = min(ranks, len(segments))
    cut = partition(SegmentCosts(segments), stages, 0.0, 0.0).stages
    # A step sends the output of each stage but the last, and its gradient back.
    last = [stage.links[-1] for stage in cut[:-1]]
    return {name: 2.0 * outputs[name] / ranks for name in last}


_VOLUMES: dict[str, Callable[..., dict[str, float]]] = {
    "data": functools.partial(_of_links, "batch", "weight-replicated"),
    "channel": functools.partial(_of_links, "channel", "column-parallel"),
    "spatial": _spatial,
    "pipeline": _pipeline,
}
