"""Replacement of serial links by channel-parallel ones with the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from renga.initializers import Constant
from renga.link import Link
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.batch_normalization import ParallelBatchNormalization
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.deconvolution_2d import ParallelDeconvolution2D
from renga.links.parallel.channel.embed_id import ParallelEmbedID
from renga.links.parallel.channel.layout_search import choose_layouts, cost_of_call
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.sharding.replacement import LinkReplacement
from renga.links.parallel.sharding.tracing import Call, LayoutGroups, Trace, trace

if TYPE_CHECKING:
    from renga.communicators import Communicator

Layouts = tuple[str, str]  # of the input and the output


class LinkChoice(NamedTuple):
    """How a link is to be computed."""

    layouts: Layouts
    algorithm: str | None = None  # the cheapest one
    pieces: int | None = None  # as many chunks as the machine and a cost model suggest
    is_kept: bool = False  # as the serial link, on every rank


def channel_replacements(
    model: Link,
    comm: Communicator,
    inputs: Sequence[Any],
    choices: Mapping[str, LinkChoice] | None = None,
) -> list[LinkReplacement]:
    """A replacement for every link of a model that has parameters of its own.

    With example ``inputs`` the model is run once, and activations stay sharded between
    links where every operation on them allows it; without, they are replicated.

    Args:
        choices: by the paths of links, in the place of what a cost model chooses.
            Other links are kept.
    """
    traced = trace_channels(model, inputs) if inputs else Trace([], LayoutGroups())
    layouts_of = choose_layouts(traced, comm) if choices is None else None
    replacements = []
    paths = {id(link): path for path, link in reversed(list(model.namedlinks()))}
    for link in dict.fromkeys(model.links()):
        if not link._params:
            continue
        calls = [call for call in traced.calls if call.link is link]
        choice = LinkChoice(("replicated", "replicated"), is_kept=True)
        if layouts_of is not None:
            choice = LinkChoice(layouts_of(link))
        elif choices is not None:
            choice = choices.get(paths[id(link)], choice)
        if choice.is_kept:
            replacements.append(LinkReplacement(link, None, "the plan keeps it"))
        else:
            replacements.append(_replace(link, comm, choice, calls))
    return replacements


def trace_channels(model: Link, inputs: Sequence[Any]) -> Trace:
    """Runs the model once, and finds which layouts its activations may have."""
    traced = trace(model, inputs, tuple(_MAKERS))
    for call in traced.calls:
        _constrain_call(call, traced.groups)
    return traced


def _constrain_call(call: Call, groups: LayoutGroups) -> None:
    # Elements of vectors are channels only where they are the second axis.
    is_sequence = isinstance(call.link, EmbedID) and len(call.y_shape) != 2
    if is_sequence or obstacle(call.link):
        groups.require_replicated(call.x)
        groups.require_replicated(call.y)
    if isinstance(call.link, EmbedID):
        groups.exclude(call.y, "batch")


def _replace(
    link: Link, comm: Communicator, choice: LinkChoice, calls: Sequence[Call]
) -> LinkReplacement:
    layouts = choice.layouts
    make = _MAKERS.get(type(link))
    if make is None:
        return LinkReplacement(link, None, "no channel-parallel link of its kind")
    reason = obstacle(link)
    if not reason and isinstance(link, BatchNormalization):
        is_replicated = layouts == ("replicated", "replicated")
        reason = "its input and output are replicated" if is_replicated else ""
    if reason:
        return LinkReplacement(link, None, reason)
    new = make(link, comm, choice, calls[0] if calls else None)
    new.name = link.name
    cost = cost_of_call(link, comm, layouts, calls[0]) if calls else None
    return LinkReplacement(link, new, "", cost)


def obstacle(link: Any) -> str:
    """Why no channel-parallel link can replace this one; empty if one can."""
    if any(not param.is_initialized for param in link.params()):
        return "its parameters have no shape yet: pass an example of the input"
    if isinstance(link, BatchNormalization):
        if link.axis not in (None, (0,), (0, 2, 3)) or link.avg_mean.ndim != 1:
            return "it normalizes other axes than channels"
    return ""


def _values_of(param: Any) -> Any:
    """An initializer that gives the values of a parameter."""
    return None if param is None else Constant(param.array, param.dtype)


def _convolution(kind: Any) -> Callable[..., Any]:
    def make(
        link: Any, comm: Communicator, choice: LinkChoice, call: Call | None
    ) -> Any:
        options = dict(
            algorithm=choice.algorithm,
            pieces=choice.pieces,
            dilate=link.dilate,
            groups=link.groups,
            initialW=_values_of(link.W),
        )
        if isinstance(link, Deconvolution2D):
            options["outsize"] = link.outsize
        if call is not None:
            options["insize"] = (call.x_shape[0], *call.x_shape[2:])
        inputs, outputs = link.W.shape[1] * link.groups, link.W.shape[0]
        if isinstance(link, Deconvolution2D):
            inputs, outputs = link.W.shape[0], link.W.shape[1] * link.groups
        return kind(
            comm,
            inputs,
            outputs,
            link.W.shape[2:],
            link.stride,
            link.pad,
            link.b is None,
            initial_bias=_values_of(link.b),
            input_layout=choice.layouts[0],
            output_layout=choice.layouts[1],
            **options,
        )

    return make


def _linear(
    link: Any, comm: Communicator, choice: LinkChoice, call: Call | None
) -> Any:
    outputs, inputs = link.W.shape
    options: dict[str, Any] = dict(algorithm=choice.algorithm, pieces=choice.pieces)
    if call is not None:
        options["batch"] = call.x_shape[0]
        if call.has_one_argument:
            options["pixels"] = math.prod(call.x_shape[2:])
    return ParallelLinear(
        comm,
        inputs,
        outputs,
        link.b is None,
        _values_of(link.W),
        _values_of(link.b),
        input_layout=choice.layouts[0],
        output_layout=choice.layouts[1],
        **options,
    )


def _batch_normalization(
    link: Any, comm: Communicator, choice: LinkChoice, call: Call | None
) -> Any:
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
        input_layout=choice.layouts[0],
        output_layout=choice.layouts[1],
    )
    new.N = link.N
    return new


def _embed_id(
    link: Any, comm: Communicator, choice: LinkChoice, call: Call | None
) -> Any:
    inputs, outputs = link.W.shape
    return ParallelEmbedID(
        comm,
        inputs,
        outputs,
        _values_of(link.W),
        link.ignore_label,
        output_layout=choice.layouts[1],
    )


_MAKERS: dict[type, Callable[..., Any]] = {
    Convolution2D: _convolution(ParallelConvolution2D),
    Deconvolution2D: _convolution(ParallelDeconvolution2D),
    Linear: _linear,
    BatchNormalization: _batch_normalization,
    EmbedID: _embed_id,
}
