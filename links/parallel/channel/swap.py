"""Channel-parallel links in the place of serial ones, with their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from renga.initializers import Constant
from renga.link import Link
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.batch_normalization import ParallelBatchNormalization
from renga.links.parallel.channel.choice import choose_layouts, cost_of_call
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.cost import Cost
from renga.links.parallel.channel.deconvolution_2d import ParallelDeconvolution2D
from renga.links.parallel.channel.embed_id import ParallelEmbedID
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.channel.trace import Call, Classes, Trace, trace


class Swap(NamedTuple):
    """A link, what takes its place, and why not where nothing does.

    ``cost`` is what a step takes of inputs like the example, None where no example
    came to the link.
    """

    link: Link
    new: Any
    reason: str = ""
    cost: Cost | None = None


def channel_swaps(model: Link, comm: Any, inputs: Sequence[Any]) -> list[Swap]:
    """A swap for every link of a model that has parameters of its own.

    With example ``inputs`` the model is run once, and activations stay shared out
    by channel wherever all that reads them can do with that; without, they are whole
    between links.
    """
    seen = Trace([], Classes())
    if inputs:
        seen = trace(model, inputs, tuple(_MAKERS))
        for link in model.links():
            for call in (call for call in seen.calls if call.link is link):
                # Elements of words are channels where they are the second axis.
                words = isinstance(link, EmbedID) and len(call.y_shape) != 2
                if words or _obstacle(link):
                    seen.classes.keep_whole(call.x)
                    seen.classes.keep_whole(call.y)
                if isinstance(link, EmbedID):
                    seen.classes.exclude(call.y, "batch")
    layouts = choose_layouts(seen, comm)
    swaps = []
    for link in dict.fromkeys(model.links()):
        if link._params:
            calls = [call for call in seen.calls if call.link is link]
            swaps.append(_swap(link, comm, layouts(link), calls))
    return swaps


def _swap(
    link: Link, comm: Any, layouts: tuple[str, str], calls: Sequence[Call]
) -> Swap:
    make = _MAKERS.get(type(link))
    if make is None:
        return Swap(link, None, "no channel-parallel link of its kind")
    reason = _obstacle(link)
    if not reason and isinstance(link, BatchNormalization):
        whole = layouts == ("replicated", "replicated")
        reason = "what it normalizes is whole" if whole else ""
    if reason:
        return Swap(link, None, reason)
    new = make(link, comm, layouts, calls[0] if calls else None)
    new.name = link.name
    cost = cost_of_call(link, comm, layouts, calls[0]) if calls else None
    return Swap(link, new, "", cost)


def _obstacle(link: Any) -> str:
    if any(not param.is_initialized for param in link.params()):
        return "its parameters have no shape yet; an example input would tell it"
    if isinstance(link, BatchNormalization):
        if link.axis not in (None, (0,), (0, 2, 3)) or link.avg_mean.ndim != 1:
            return "it normalizes other axes than channels"
    return ""


def _same(param: Any) -> Any:
    """An initializer that gives the values of a parameter."""
    return None if param is None else Constant(param.array, param.dtype)


def _convolution(new: Any) -> Callable[..., Any]:
    def make(link: Any, comm: Any, layouts: Any, call: Call | None) -> Any:
        kept = dict(dilate=link.dilate, groups=link.groups, initialW=_same(link.W))
        if isinstance(link, Deconvolution2D):
            kept["outsize"] = link.outsize
        if call is not None:
            kept["insize"] = (call.x_shape[0], *call.x_shape[2:])
        inputs, outputs = link.W.shape[1] * link.groups, link.W.shape[0]
        if isinstance(link, Deconvolution2D):
            inputs, outputs = link.W.shape[0], link.W.shape[1] * link.groups
        return new(
            comm,
            inputs,
            outputs,
            link.W.shape[2:],
            link.stride,
            link.pad,
            link.b is None,
            initial_bias=_same(link.b),
            input_layout=layouts[0],
            output_layout=layouts[1],
            **kept,
        )

    return make


def _linear(link: Any, comm: Any, layouts: Any, call: Call | None) -> Any:
    outputs, inputs = link.W.shape
    kept: dict[str, Any] = {}
    if call is not None:
        kept["batch"] = call.x_shape[0]
        if call.plain:
            kept["pixels"] = math.prod(call.x_shape[2:])
    return ParallelLinear(
        comm,
        inputs,
        outputs,
        link.b is None,
        _same(link.W),
        _same(link.b),
        input_layout=layouts[0],
        output_layout=layouts[1],
        **kept,
    )


def _batch_normalization(link: Any, comm: Any, layouts: Any, call: Call | None) -> Any:
    new = ParallelBatchNormalization(
        comm,
        len(link.avg_mean),
        link.decay,
        link.eps,
        link._highprec_dtype,
        link.gamma is not None,
        link.beta is not None,
        None if link.gamma is None else link.gamma.array,
        None if link.beta is None else link.beta.array,
        link.avg_mean,
        link.avg_var,
        input_layout=layouts[0],
        output_layout=layouts[1],
    )
    new.N = link.N
    return new


def _embed_id(link: Any, comm: Any, layouts: Any, call: Call | None) -> Any:
    inputs, outputs = link.W.shape
    return ParallelEmbedID(
        comm,
        inputs,
        outputs,
        _same(link.W),
        link.ignore_label,
        output_layout=layouts[1],
    )


_MAKERS: dict[type, Callable[..., Any]] = {
    Convolution2D: _convolution(ParallelConvolution2D),
    Deconvolution2D: _convolution(ParallelDeconvolution2D),
    Linear: _linear,
    BatchNormalization: _batch_normalization,
    EmbedID: _embed_id,
}
