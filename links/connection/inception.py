"""Inception: four branches whose channels are concatenated."""

from __future__ import annotations

from typing import Any

from renga.core.link import Chain
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import concat, max_pooling_2d, relu
from renga.links.convolution.convolution_2d import Convolution2D
from renga.utils.extents import check_sizes


class Inception(Chain):
    """1 × 1, 3 × 3 and 5 × 5 convolutions and a pooling of the same image.

    The larger convolutions come after projections to ``proj3`` and ``proj5``
    channels, the projection to ``proj_pool`` channels after the pooling. ReLU follows
    every convolution.

    Shapes:
        x: (N, in_channels, H, W)
        y: (N, out1 + out3 + out5 + proj_pool, H, W)

    Source: Szegedy et al., Going deeper with convolutions, 2014.
    """

    conv1: Convolution2D
    proj3: Convolution2D
    conv3: Convolution2D
    proj5: Convolution2D
    conv5: Convolution2D
    projp: Convolution2D

    def __init__(
        self,
        in_channels: int | None,
        out1: int,
        proj3: int,
        out3: int,
        proj5: int,
        out5: int,
        proj_pool: int,
        conv_init: Initial | None = None,
        bias_init: Initial | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, proj3=proj3, proj5=proj5, proj_pool=proj_pool)
        check_sizes(self, in_channels=in_channels, out1=out1, out3=out3, out5=out5)
        init: dict[str, Any] = {"initialW": conv_init, "initial_bias": bias_init}
        with self.init_scope():
            self.conv1 = Convolution2D(in_channels, out1, 1, **init)
            self.proj3 = Convolution2D(in_channels, proj3, 1, **init)
            self.conv3 = Convolution2D(proj3, out3, 3, pad=1, **init)
            self.proj5 = Convolution2D(in_channels, proj5, 1, **init)
            self.conv5 = Convolution2D(proj5, out5, 5, pad=2, **init)
            self.projp = Convolution2D(in_channels, proj_pool, 1, **init)

    def forward(self, x: ArrayLike) -> Variable:
        """The four outputs, one after the other, for ``x``."""
        ways = (
            self.conv1(x),
            self.conv3(relu(self.proj3(x))),
            self.conv5(relu(self.proj5(x))),
            self.projp(max_pooling_2d(x, 3, stride=1, pad=1)),
        )
        return relu(concat(ways, axis=1))
