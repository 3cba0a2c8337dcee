"""ParallelConvolution2D: a convolution whose channels are sharded."""

from __future__ import annotations

from typing import Any

from renga.communicators import Communicator
from renga.core.types import Initial
from renga.core.variable import Variable
from renga.functions import convolution_2d
from renga.links.convolution.convolution import Convolution2D
from renga.links.parallel.channel.convolution import ParallelConvolution
from renga.links.parallel.forms import parallel_form
from renga.utils.conv import get_conv_outsize


@parallel_form(Convolution2D, "channel")
class ParallelConvolution2D(ParallelConvolution):
    """A two-dimensional convolution of which each rank has a block of the weight.

    It computes what Convolution2D does, for any number of ranks. Every rank calls it
    with the same images. Channels are sharded as by ``numpy.array_split``.

    Args:
        comm: the communicator of the ranks.
        in_channels, ..., groups: as for Convolution2D.
        input_layout, output_layout: ``replicated``; ``channel`` or ``batch`` where each
            rank has only its own channels or samples of x or y.
        algorithm: ``column-parallel``, ``row-parallel``, ``2-D`` or
            ``weight-gathered``; by default the one that a cost model finds cheapest.
            ``2-D 2x4`` is a grid of 2 input by 4 output blocks. With
            ``weight-replicated`` W is not sharded.
        pieces: into how many chunks to cut the batch, of which some are sent while
            others are computed, 0 for no overlap; by default as many as the machine
            and the cost model suggest.
        insize: the (N, H, W) of the inputs that the cost model assumes.

    Shapes:
        x: (N, in_channels, H, W), or this rank's shard of it
        y: (N, out_channels, H', W'), or this rank's shard of it
        W: this rank's block of (out_channels, in_channels / groups, *ksize)
        b: this rank's shard of (out_channels,), or None with ``nobias``

    Raises:
        ValueError: a layout or algorithm is unknown, or groups do not divide channels.
    """

    def __init__(
        self,
        comm: Communicator,
        in_channels: int | None,
        out_channels: int | None,
        ksize: int | tuple[int, int] | None = None,
        stride: int | tuple[int, int] = 1,
        pad: int | tuple[int, int] = 0,
        nobias: bool = False,
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
        window = (stride, pad, dilate, groups)
        channels, initial = (in_channels, out_channels, ksize), (initialW, initial_bias)
        self._build(channels, window, nobias, initial, insize)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        return (self.out_channels, in_channels // self.groups, *self._kernel_extents())

    def _initialize_by(self, shape: tuple[int, ...]) -> None:
        self._initialize(shape[1] * self.groups)

    def _outsize(self, axis: int) -> int:
        return get_conv_outsize(
            self.insize[1 + axis],
            self._kernel_extents()[axis],
            self.stride[axis],
            self.pad[axis],
            d=self.dilate[axis],
        )

    def _convolve(self, x: Any, W: Any, b: Any, groups: int) -> Variable:
        return convolution_2d(
            x, W, b, self.stride, self.pad, dilate=self.dilate, groups=groups
        )
