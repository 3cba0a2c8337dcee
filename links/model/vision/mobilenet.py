"""MobileNets: image classifiers for small devices, with torchvision's layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.core.variable import Variable
from renga.functions import hard_swish, relu, relu6
from renga.initializers import Normal
from renga.links.connection.linear import Linear
from renga.links.model.torch_names import State, renamed
from renga.links.model.vision.inverted_residual import (
    Activation,
    InvertedResidual,
    InvertedResidualNetwork,
    SqueezeExcitation,
    convolution,
    divisible,
)

# Expansion, channels, blocks, and the stride of the first of them.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
# torchvision's names, and those of the parts here; the first block is not widened.
_NAMES = {
    r"^features\.1\.conv\.1\.(\w+)$": r"features.1.block.1.0.\1",
    r"^features\.1\.conv\.2\.(\w+)$": r"features.1.block.1.1.\1",
    r"\.conv\.2\.(\w+)$": r".block.2.0.\1",
    r"\.conv\.3\.(\w+)$": r".block.2.1.\1",
    r"\.conv\.": ".block.",
}
# Kernel, channels within, channels, whether it squeezes, activation, stride.
_LARGE = (
    (3, 16, 16, False, relu, 1),
    (3, 64, 24, False, relu, 2),
    (3, 72, 24, False, relu, 1),
    (5, 72, 40, True, relu, 2),
    (5, 120, 40, True, relu, 1),
    (5, 120, 40, True, relu, 1),
    (3, 240, 80, False, hard_swish, 2),
    (3, 200, 80, False, hard_swish, 1),
    (3, 184, 80, False, hard_swish, 1),
    (3, 184, 80, False, hard_swish, 1),
    (3, 480, 112, True, hard_swish, 1),
    (3, 672, 112, True, hard_swish, 1),
    (5, 672, 160, True, hard_swish, 2),
    (5, 960, 160, True, hard_swish, 1),
    (5, 960, 160, True, hard_swish, 1),
)
_SMALL = (
    (3, 16, 16, True, relu, 2),
    (3, 72, 24, False, relu, 2),
    (3, 88, 24, False, relu, 1),
    (5, 96, 40, True, hard_swish, 2),
    (5, 240, 40, True, hard_swish, 1),
    (5, 240, 40, True, hard_swish, 1),
    (5, 120, 48, True, hard_swish, 1),
    (5, 144, 48, True, hard_swish, 1),
    (5, 288, 96, True, hard_swish, 2),
    (5, 576, 96, True, hard_swish, 1),
    (5, 576, 96, True, hard_swish, 1),
)


class MobileNetV2(InvertedResidualNetwork):
    """Inverted residuals with ``relu6``.

    ``load_torch_state_dict`` loads torchvision's weights.

    Args:
        num_classes: the number of classes.
        stages: of each stage, how many times as many channels its blocks have within,
            their channels, their number, and the stride of the first.
        dropout: the probability with which a feature is dropped in training.

    Source: Sandler et al., MobileNetV2: inverted residuals and linear bottlenecks,
    2018.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        stages: Sequence[tuple[int, int, int, int]] = _STAGES,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        channels, last = 32, 1280
        layers: list[Any] = [convolution(3, channels, 3, 2, activation=relu6)]
        for expansion, outputs, count, stride in stages:
            for k in range(count):
                inner, step = expansion * channels, stride if k == 0 else 1
                layers.append(
                    InvertedResidual(channels, inner, outputs, 3, step, relu6)
                )
                channels = outputs
        layers.append(convolution(channels, last, activation=relu6))
        self._set_layers(layers, [_linear(last, num_classes)], dropout)

    def torch_state(self, state: State) -> dict[str, numpy.ndarray]:
        """The arrays of torchvision's state with the names of the parts here."""
        return renamed(state, _NAMES)


class MobileNetV3(InvertedResidualNetwork):
    """Inverted residuals with squeezes and ``hard_swish``, and two layers on top.

    ``load_torch_state_dict`` loads torchvision's weights.

    Args:
        blocks: of each block, the extent of the kernel, the channels within and after
            it, whether it squeezes, the activation and the stride.
        hidden: the units between the two layers on top.
        num_classes: the number of classes.
        dropout: the probability with which a unit is dropped in training.

    Source: Howard et al., Searching for MobileNetV3, 2019.
    """

    def __init__(
        self,
        blocks: Sequence[tuple[int, int, int, bool, Activation, int]],
        hidden: int,
        num_classes: int = 1000,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        # The published weights have these options.
        options: dict[str, Any] = {"eps": 1e-3, "decay": 0.99}
        channels = 16
        layers: list[Any] = [
            convolution(3, channels, 3, 2, activation=hard_swish, **options)
        ]
        for ksize, inner, outputs, squeezes, activation, stride in blocks:
            squeeze = None
            if squeezes:
                squeeze = SqueezeExcitation(inner, divisible(inner / 4), relu, _gate)
            sizes = channels, inner, outputs, ksize, stride
            layers.append(InvertedResidual(*sizes, activation, squeeze, **options))
            channels = outputs
        last = 6 * channels
        layers.append(convolution(channels, last, activation=hard_swish, **options))
        first, second = _linear(last, hidden), _linear(hidden, num_classes)
        self._set_layers(layers, [first, hard_swish, second], dropout)


class MobileNetV3Large(MobileNetV3):
    """``MobileNetV3`` of 15 blocks."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(_LARGE, 1280, num_classes)


class MobileNetV3Small(MobileNetV3):
    """``MobileNetV3`` of 11 blocks."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(_SMALL, 1024, num_classes)


def _gate(x: Any) -> Variable:
    """``hard_sigmoid`` of slope 1 / 6."""
    return relu6(x + 3) / 6


def _linear(inputs: int, outputs: int) -> Linear:
    return Linear(inputs, outputs, initialW=Normal(0.01))
