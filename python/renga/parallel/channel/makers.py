"""Channel-parallel links with the weights of serial ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from renga.communicators import Communicator
from renga.initializers import Constant
from renga.links.connection.embed_id import EmbedID
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution_2d import Convolution2D
from renga.links.convolution.deconvolution_2d import Deconvolution2D
from renga.links.normalization.batch_normalization import BatchNormalization
from renga.links.parallel.channel.batch_normalization import ParallelBatchNormalization
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.deconvolution_2d import ParallelDeconvolution2D
from renga.links.parallel.channel.embed_id import ParallelEmbedID
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.channel.vocab_embed_id import ParallelVocabEmbedID
from renga.parallel.conversion.tracing import Call

Layouts = tuple[str, str]  # of the input and the output


class LinkChoice(NamedTuple):
    """How a link is to be computed."""

    layouts: Layouts
    algorithm: str | None = None  # the cheapest one
    pieces: int | None = None  # as many chunks as the machine and a cost model suggest
    is_kept: bool = False  # as the serial link, on every rank


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


def vocab_embed_id(link: Any, comm: Communicator, attend_layout: str) -> Any:
    """For an embedding whose weight gives the scores of a vocabulary, too."""
    inputs, outputs = link.W.shape
    return ParallelVocabEmbedID(
        comm,
        inputs,
        outputs,
        _values_of(link.W),
        link.ignore_label,
        attend_layout=attend_layout,
    )


# Each is called with the serial link, the communicator, the choice and a call or None.
MAKERS: dict[type, Callable[..., Any]] = {
    Convolution2D: _convolution(ParallelConvolution2D),
    Deconvolution2D: _convolution(ParallelDeconvolution2D),
    Linear: _linear,
    BatchNormalization: _batch_normalization,
    EmbedID: _embed_id,
}
