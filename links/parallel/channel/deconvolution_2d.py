"""ParallelDeconvolution2D: a transposed convolution whose channels are sharded."""

from __future__ import annotations

from typing import Any

from renga.communicators import Communicator
from renga.core.types import Initial
from renga.core.variable import Variable
from renga.functions import deconvolution_2d, reshape, swapaxes
from renga.functions.window import as_pair
from renga.links.convolution.deconvolution import Deconvolution2D
from renga.links.parallel.channel.convolution import ParallelConvolution
from renga.links.parallel.forms import parallel_form
from renga.utils.conv import get_deconv_outsize


@parallel_form(Deconvolution2D, "channel")
class ParallelDeconvolution2D(ParallelConvolution):
    """A transposed convolution of which each rank has a block of the weight.

    It computes what Deconvolution2D does, for any number of ranks.

    Args:
        comm, input_layout, output_layout, algorithm, pieces, insize: as for
            ParallelConvolution2D.
        in_channels, ..., groups: as for Deconvolution2D.

    Shapes:
        x: (N, in_channels, H, W), or this rank's shard of it
        y: (N, out_channels, H', W'), or this rank's shard of it
        W: this rank's block of (in_channels, out_channels / groups, *ksize), or with
            groups of (out_channels, in_channels / groups, *ksize)
        b: this rank's shard of (out_channels,), or None with ``nobias``

    Raises:
        ValueError: a layout or algorithm is unknown, or groups do not divide channels.
    """

    _in_axis, _out_axis = 0, 1

    def __init__(
        self,
        comm: Communicator,
        in_channels: int | None,
        out_channels: int | None,
        ksize: int | tuple[int, int] | None = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
        outsize: tuple[int, int] | None = None,
        initialW: Initial | None = None,
        initial_bias: Initial | None = None,
        *,
        dilate: int | tuple[int, int] = 1,
        groups: int = 1,
        input_layout: str = "replicated",
        output_layout: str = "replicated",
        algorithm: str | None = None,
        pieces: int | None = None,
        insize: tuple[int, int, int] = (32, 32, 32),
    ) -> None:
        super().__init__()
        self._set_up(comm, input_layout, output_layout, algorithm, pieces)
        self.outsize = (
            None
            if outsize is None
            else as_pair(outsize, type(self).__name__, "outsize")
        )
        self.groups = int(groups)
        if self.groups > 1:
            self._in_axis, self._out_axis = 1, 0
        window = (stride, pad, dilate, groups)
        channels, initial = (in_channels, out_channels, ksize), (initialW, initial_bias)
        self._build(channels, window, nobias, initial, insize)

    @classmethod
    def _options_of(cls, link: Any) -> dict[str, Any]:
        return {"outsize": link.outsize}

    @property
    def _regrouped_groups(self) -> int:
        return self.groups

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        return (in_channels, self.out_channels // self.groups, *self._kernel_extents())

    def _initialize_by(self, shape: tuple[int, ...]) -> None:
        self._initialize(shape[0])

    def _outsize(self, axis: int) -> int:
        if self.outsize is not None:
            return int(self.outsize[axis])
        return get_deconv_outsize(
            self.insize[1 + axis],
            self._kernel_extents()[axis],
            self.stride[axis],
            self.pad[axis],
            d=self.dilate[axis],
        )

    def _convolve(self, x: Any, W: Any, b: Any, groups: int) -> Variable:
        if self.groups > 1:
            W = _with_inputs_first(W, groups)
        window: dict[str, Any] = dict(dilate=self.dilate, groups=groups)
        return deconvolution_2d(x, W, b, self.stride, self.pad, self.outsize, **window)


def _with_inputs_first(W: Any, groups: int) -> Variable:
    """(O, I / groups, ...) as (I, O / groups, ...)."""
    outputs, inputs, *kernel = W.shape
    by_group = reshape(W, (groups, outputs // groups, inputs, *kernel))
    shape = (groups * inputs, outputs // groups, *kernel)
    return reshape(swapaxes(by_group, 1, 2), shape)
