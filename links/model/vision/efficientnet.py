"""EfficientNets: image classifiers whose sizes were searched for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renga.core.sequential import Sequential
from renga.functions import sigmoid, silu
from renga.initializers import Uniform
from renga.links.connection.linear import Linear
from renga.links.model.vision.inverted_residual import (
    InvertedResidual,
    InvertedResidualNetwork,
    SqueezeExcitation,
    convolution,
)

# Expansion, kernel, stride of the first block, channels, blocks.
_B0 = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)


class EfficientNet(InvertedResidualNetwork):
    """Inverted residuals with squeezes and ``silu``, in stages.

    ``load_torch_state_dict`` loads torchvision's weights.

    Args:
        stages: of each stage, how many times as many channels its blocks have within,
            the extent of their kernels, the stride of the first, their channels, and
            their number.
        num_classes: the number of classes.
        dropout: the probability with which a feature is dropped in training.
        drop: the probability with which a sample skips the last block in training; it
            grows from 0 at the first.

    Source: Tan and Le, EfficientNet: rethinking model scaling for convolutional neural
    networks, 2019; Huang et al., Deep networks with stochastic depth, 2016.
    """

    def __init__(
        self,
        stages: Sequence[tuple[int, int, int, int, int]],
        num_classes: int = 1000,
        dropout: float = 0.2,
        drop: float = 0.2,
    ) -> None:
        super().__init__()
        channels, done = 32, 0
        total = sum(stage[-1] for stage in stages)
        layers: list[Any] = [convolution(3, channels, 3, 2, activation=silu)]
        for expansion, ksize, stride, outputs, count in stages:
            blocks = []
            for k in range(count):
                inner = expansion * channels
                squeeze = SqueezeExcitation(inner, max(1, channels // 4), silu, sigmoid)
                sizes = channels, inner, outputs, ksize, stride if k == 0 else 1
                skip = drop * done / total
                blocks.append(InvertedResidual(*sizes, silu, squeeze, skip))
                channels, done = outputs, done + 1
            layers.append(Sequential(*blocks))
        last = 4 * channels
        layers.append(convolution(channels, last, activation=silu))
        top = Linear(last, num_classes, initialW=Uniform(num_classes**-0.5))
        self._set_layers(layers, [top], dropout)


class EfficientNetB0(EfficientNet):
    """``EfficientNet`` of the smallest published sizes, for images of 224 × 224."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(_B0, num_classes)
