"""Replacement of serial links by channel-parallel ones with the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from renga.initializers import Constant
from renga.link import Link
from renga.links.attention.multi_head_attention import MultiHeadAttention
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.attention import ParallelMultiHeadAttention
from renga.links.parallel.channel.batch_normalization import ParallelBatchNormalization
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.deconvolution_2d import ParallelDeconvolution2D
from renga.links.parallel.channel.embed_id import ParallelEmbedID
from renga.links.parallel.channel.layout_search import choose_layouts, cost_of_call
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.channel.vocab_embed_id import ParallelVocabEmbedID
from renga.links.parallel.sharding.cost import Cost, rates_of
from renga.links.parallel.sharding.model.replacement import LinkReplacement
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
    output: str = "replicated",
) -> list[LinkReplacement]:
    """A replacement for every link of a model that has parameters of its own.

    With example ``inputs`` the model is run once, and activations stay sharded between
    links where every operation on them allows it; without, they are replicated.

    Args:
        choices: by the paths of links, in the place of what a cost model chooses.
            Other links are kept.
        output: ``sharded`` if the outputs of the model stay sharded.

    Raises:
        ValueError: outputs shall stay sharded and cannot, or there is no example.
    """
    traced = Trace([], LayoutGroups())
    if inputs:
        traced = trace_channels(model, inputs, output)
    if output == "sharded":
        _require_sharded_outputs(traced)
    layouts_of = choose_layouts(traced, comm) if choices is None else None
    replacements = []
    paths = {id(link): path for path, link in reversed(list(model.namedlinks()))}
    kept = LinkChoice(("replicated", "replicated"), is_kept=True)
    by_heads = [
        link
        for link in attentions(model)
        if choices is None or not choices.get(paths[id(link)], kept).is_kept
    ]
    inside = {id(child) for link in by_heads for child in link.children()}
    for link in dict.fromkeys(model.links()):
        if link in by_heads:
            replacements.append(_shard_heads(link, comm, traced))
        if not link._params or id(link) in inside:
            continue
        calls = [call for call in traced.calls if call.link is link]
        if layouts_of is not None:
            choice = LinkChoice(layouts_of(link))
        else:
            choice = (choices or {}).get(paths[id(link)], kept)
        if choice.is_kept:
            replacements.append(LinkReplacement(link, None, "the plan keeps it"))
        else:
            replacements.append(_replace(link, comm, choice, calls, traced))
    return replacements


def trace_channels(
    model: Link, inputs: Sequence[Any], output: str = "replicated"
) -> Trace:
    """Runs the model once, and finds which layouts its activations may have."""
    traced = trace(model, inputs, tuple(_MAKERS), output)
    inside = {id(child) for link in attentions(model) for child in link.children()}
    attended = {id(call.link) for call in traced.attended}
    for call in traced.calls:
        _constrain_call(call, traced.groups)
        if id(call.link) in inside | attended:
            traced.groups.require_replicated(call.x)
            traced.groups.require_replicated(call.y)
    return traced


def _require_sharded_outputs(traced: Trace) -> None:
    groups = traced.groups
    of_links = {groups.find(call.y) for call in (*traced.calls, *traced.attended)}
    if not traced.outputs:
        raise ValueError(
            "parallelize: expected an example of the input for sharded outputs"
        )
    for y in traced.outputs:
        if groups.find(y) not in of_links or not groups.choices(y):
            raise ValueError(
                "parallelize: expected outputs of links, which can stay sharded, or "
                f"pointwise functions of them, got {tuple(y.shape)} of "
                f"{y.creator_node.label if y.creator_node else 'the input'}"
            )


def attentions(model: Link) -> list[MultiHeadAttention]:
    """The attentions whose heads can be sharded."""
    links = dict.fromkeys(model.links())
    return [link for link in links if type(link) is MultiHeadAttention]


def _shard_heads(
    link: MultiHeadAttention, comm: Communicator, traced: Trace
) -> LinkReplacement:
    new = ParallelMultiHeadAttention.from_link(link, comm)
    new.name = link.name
    calls = [call for call in traced.calls if call.link is link.out_proj]
    # The all-reduces of y and of the gradient of x.
    cost = _cost_of_all_reduces(comm, 2, calls[0].y_shape) if calls else None
    return LinkReplacement(link, new, "", cost)


def _cost_of_all_reduces(comm: Communicator, count: int, shape: Sequence[int]) -> Cost:
    rates, others = rates_of(comm), comm.size - 1
    moved = 2 * count * 4 * math.prod(shape) * others / comm.size
    return Cost(2 * count * others * rates.alpha + moved * rates.beta, 0, moved)


def _constrain_call(call: Call, groups: LayoutGroups) -> None:
    # Elements of vectors are channels only where they are the second axis.
    is_sequence = isinstance(call.link, EmbedID) and len(call.y_shape) != 2
    if is_sequence or obstacle(call.link):
        groups.require_replicated(call.x)
        groups.require_replicated(call.y)
    if isinstance(call.link, EmbedID):
        groups.exclude(call.y, "batch")


def _replace(
    link: Link,
    comm: Communicator,
    choice: LinkChoice,
    calls: Sequence[Call],
    traced: Trace,
) -> LinkReplacement:
    layouts = choice.layouts
    make = _MAKERS.get(type(link))
    if make is None:
        return LinkReplacement(link, None, "no channel-parallel link of its kind")
    if any(param.node in traced.leaves for param in link.params()):
        return LinkReplacement(link, None, "its parameters are used outside of it")
    attended = [call for call in traced.attended if call.link is link]
    if isinstance(link, EmbedID) and (attended or not traced.calls):
        return _vocab_embed_id(link, comm, attended, traced.groups)
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
        options["batch"] = math.prod(call.x_shape[: call.batch_axes])
        options["pixels"] = call.pixels
    # The features of a sequence are the channels of each position.
    layouts = ["channel" if a == "features" else a for a in choice.layouts]
    return ParallelLinear(
        comm,
        inputs,
        outputs,
        link.b is None,
        _values_of(link.W),
        _values_of(link.b),
        input_layout=layouts[0],
        output_layout=layouts[1],
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


def _vocab_embed_id(
    link: Any, comm: Communicator, attended: Sequence[Call], groups: LayoutGroups
) -> LinkReplacement:
    """For an embedding whose weight gives the scores of a vocabulary, too."""
    inputs, outputs = link.W.shape
    can_stay = bool(attended) and all(groups.choices(call.y) for call in attended)
    layout = "channel" if can_stay else "replicated"
    new = ParallelVocabEmbedID(
        comm,
        inputs,
        outputs,
        _values_of(link.W),
        link.ignore_label,
        attend_layout=layout,
    )
    new.name = link.name
    if not attended:
        return LinkReplacement(link, new)
    # Vectors and the gradients of x are all-reduced, and replicated scores gathered.
    communication, _, moved = _cost_of_all_reduces(comm, 2, attended[0].x_shape)
    if not can_stay:
        rates, others = rates_of(comm), comm.size - 1
        gathered = 4 * math.prod(attended[0].y_shape) * others / comm.size
        communication += others * rates.alpha + gathered * rates.beta
        moved += gathered
    return LinkReplacement(link, new, "", Cost(communication, 0, moved))


_MAKERS: dict[type, Callable[..., Any]] = {
    Convolution2D: _convolution(ParallelConvolution2D),
    Deconvolution2D: _convolution(ParallelDeconvolution2D),
    Linear: _linear,
    BatchNormalization: _batch_normalization,
    EmbedID: _embed_id,
}
