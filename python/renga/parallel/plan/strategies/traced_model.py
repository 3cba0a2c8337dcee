"""A model's links as operations of a graph, with the layouts that they can have."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from renga.core.link import Link
from renga.core.link.own_values import link_paths
from renga.core.types import Array
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.convolution.deconvolution import Deconvolution2D
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.process_grid import requestable_grids
from renga.parallel.channel.kept_links import attentions
from renga.parallel.channel.layout_search import possible_layouts
from renga.parallel.channel.strategy import trace_channels
from renga.parallel.conversion.tracing import CalledLink, Trace
from renga.parallel.plan.graph import Graph, Operation

# The algorithm of a link that every rank computes as a whole.
SERIAL = "serial"
# That of an attention of which each rank has some heads.
HEADS = "heads"
_WITH_PRODUCTS = (Convolution2D, Deconvolution2D, Linear)


class TracedCall(NamedTuple):
    """A call of a link that can be parallel."""

    path: str
    call: CalledLink
    link: int  # the operation of the link
    functions: int  # that of the functions behind it, up to the next such link


class TracedModel:
    """The links of a model that can be parallel, in the order of their calls.

    The graph has two operations for each call: the link, and the functions and other
    links behind it, up to the next call.

    Args:
        inputs: with which the model is called once, in test mode.

    Raises:
        ValueError: the model calls no link that can be parallel.
    """

    def __init__(self, model: Link, inputs: Sequence[Array]) -> None:
        self.model, self.inputs = model, inputs
        self.trace: Trace = trace_channels(model, inputs)
        paths = link_paths(model)
        kept = self.trace.kept
        self.attentions = {
            paths[id(a)]: a for a in attentions(model) if id(a) not in kept
        }
        # Each projection, by its id, has the path of its attention.
        self.attention_of = {
            id(child): path
            for path, attention in self.attentions.items()
            for child in attention.children()
        }
        attended = {id(call.link) for call in self.trace.attended}
        self.graph = Graph(type(model).__name__)
        self.calls: list[TracedCall] = []
        for call in self.trace.calls:
            if id(call.link) in kept or id(call.link) in attended:
                continue
            path = paths[id(call.link)]
            link = self.graph.add(_operation(path, call))
            extents = call.y_shape
            axes = "SA"[: len(extents)] + "." * (len(extents) - 2)
            detail = f"behind {path} {len(self.calls)}"
            functions = self.graph.add(
                Operation(detail, "functions", extents, axes, detail=detail)
            )
            self.calls.append(TracedCall(path, call, link, functions))
        if not self.calls:
            raise ValueError(
                f"search: expected {type(model).__name__} to call convolutions, linear "
                f"layers, batch normalizations or embeddings, got none"
            )

    def layouts(self, ranks: int) -> dict[Hashable, list[str]]:
        """The layouts that each group of variables may have."""
        possible = possible_layouts(self.trace, ranks)
        return {root: ["replicated", *layouts] for root, layouts in possible.items()}

    def algorithms(self, ranks: int) -> dict[str, list[str]]:
        """The algorithms of each link with products or attention, by its path."""
        names = [SERIAL, *(grid.name for grid in requestable_grids(ranks))]
        found = {
            path: [SERIAL, HEADS]
            for path, attention in self.attentions.items()
            if attention.num_heads % ranks == 0
        }
        for traced in self.calls:
            link = traced.call.link
            is_inside = id(link) in self.attention_of
            if isinstance(link, _WITH_PRODUCTS) and not is_inside:
                is_grouped = getattr(link, "groups", 1) > 1
                by_sample = [SERIAL, "weight-gathered", "weight-replicated"]
                found[traced.path] = by_sample if is_grouped else names
        return found


def _operation(path: str, call: CalledLink) -> Operation:
    link, extents = call.link, call.y_shape
    axes = "SP" + "." * (len(extents) - 2)
    kind, reduction, flops, detail = "embedding", 1, 0.0, path
    if isinstance(link, BatchNormalization):
        kind = "normalization"
    elif isinstance(link, _WITH_PRODUCTS):
        kind = "linear" if isinstance(link, Linear) else "convolution"
        if kind == "linear":  # sequences are samples, too
            rows = math.prod(call.x_shape) // link.W.shape[1]
            extents, axes = (rows, link.W.shape[0]), "SP"
        is_transposed = isinstance(link, Deconvolution2D)
        reduction = link.W.shape[0 if is_transposed else 1]
        outputs = math.prod(call.x_shape if is_transposed else extents)
        flops = 2.0 * outputs * link.W.size / link.W.shape[0]
    return Operation(
        path,
        kind,
        extents,
        axes[: len(extents)],
        (),
        reduction,
        flops,
        sum(param.size for param in link.params()),
        path,
        detail,
    )
