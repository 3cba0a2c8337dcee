"""Blocks of inverted residuals, of which mobile networks consist."""

from __future__ import annotations

import functools
from typing import Any, Callable

from renga.core.link import Chain
from renga.core.sequential import Sequential
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import average, dropout, reshape
from renga.initializers import HeNormal
from renga.links.convolution.convolution import Convolution2D
from renga.links.normalization.batch_normalization import BatchNormalization

Activation = Callable[[Any], Variable]


def convolution(
    inputs: int,
    outputs: int,
    ksize: int = 1,
    stride: int = 1,
    groups: int = 1,
    activation: Activation | None = None,
    **normalization: Any,
) -> Sequential:
    """A convolution, its normalization and an activation, if one is given."""
    layers = [
        Convolution2D(
            inputs,
            outputs,
            ksize,
            stride,
            ksize // 2,
            True,
            HeNormal(fan_option="fan_out"),
            groups=groups,
        ),
        BatchNormalization(outputs, **{"eps": 1e-5, **normalization}),
    ]
    return Sequential(*layers, *([] if activation is None else [activation]))


class SqueezeExcitation(Chain):
    """``x`` times a gate for each channel, computed from the means of all channels.

    Args:
        channels: the number C of channels.
        squeezed: how many numbers represent an image in between.
        activation: the function between the two layers.
        gate: the function of the second layer's outputs.

    Shapes:
        x, y: (N, C, H, W)

    Source: Hu et al., Squeeze-and-excitation networks, 2018.
    """

    def __init__(
        self, channels: int, squeezed: int, activation: Activation, gate: Activation
    ) -> None:
        super().__init__()
        self.activation, self.gate = activation, gate
        with self.init_scope():
            self.fc1 = Convolution2D(channels, squeezed, 1)
            self.fc2 = Convolution2D(squeezed, channels, 1)

    def forward(self, x: Variable) -> Variable:
        """The channels of ``x``, each scaled."""
        h = average(x, axis=(2, 3), keepdims=True)
        return x * self.gate(self.fc2(self.activation(self.fc1(h))))


class InvertedResidual(Chain):
    """Channels are widened, convolved one by one, and narrowed, beside ``x``.

    The sum with ``x`` is left out where its shape differs, and the widening where
    there is none.

    Args:
        inputs, inner, outputs: the channels before, within and after the block.
        ksize, stride: those of the convolution of each channel.
        activation: the function after the first two convolutions.
        squeeze: what the channels within are passed through before they are narrowed.
        drop: the probability with which a sample skips the block in training.
        normalization: options of the batch normalizations.

    Source: Sandler et al., MobileNetV2: inverted residuals and linear bottlenecks,
    2018.
    """

    def __init__(
        self,
        inputs: int,
        inner: int,
        outputs: int,
        ksize: int,
        stride: int,
        activation: Activation,
        squeeze: SqueezeExcitation | None = None,
        drop: float = 0.0,
        **normalization: Any,
    ) -> None:
        super().__init__()
        self.drop = drop
        self.is_residual = stride == 1 and inputs == outputs
        options = {"activation": activation, **normalization}
        layers: list[Any] = []
        if inner != inputs:
            layers.append(convolution(inputs, inner, **options))
        layers.append(convolution(inner, inner, ksize, stride, inner, **options))
        if squeeze is not None:
            layers.append(squeeze)
        layers.append(convolution(inner, outputs, **normalization))
        with self.init_scope():
            self.block = Sequential(*layers)

    def forward(self, x: ArrayLike) -> Variable:
        """The narrowed channels, with ``x`` added where its shape allows."""
        h = self.block(x)
        if not self.is_residual:
            return h
        if self.drop:
            kept = dropout(self.xp.ones((len(h), 1), h.dtype), self.drop)
            h = h * reshape(kept, (len(h), 1, 1, 1))
        return x + h


class InvertedResidualNetwork(Chain):
    """An image's features, and layers on their means: scores of the classes.

    Shapes:
        x: (N, 3, H, W)
        y: (N, num_classes), before softmax
    """

    features: Sequential
    classifier: Sequential

    def _set_layers(self, features: list[Any], top: list[Any], ratio: float) -> None:
        """``ratio`` is that of the dropout before the last layer."""
        drop = functools.partial(dropout, ratio=ratio)
        with self.init_scope():
            self.features = Sequential(*features)
            self.classifier = Sequential(*top[:-1], drop, top[-1])

    def forward(self, x: ArrayLike) -> Variable:
        """The scores of the classes."""
        return self.classifier(average(self.features(x), axis=(2, 3)))


def divisible(channels: float, divisor: int = 8) -> int:
    """``channels`` as a multiple of ``divisor``, at least 0.9 of them."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded
