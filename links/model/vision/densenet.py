"""DenseNets: image classifiers whose layers read all layers of their block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga.core.link import Chain
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import average, average_pooling_2d, concat, max_pooling_2d, relu
from renga.initializers import HeNormal
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.model.torch_names import State, renamed
from renga.links.normalization.batch_normalization import BatchNormalization

# The published files separate numbers of layers by a dot.
_NAMES = {r"(\.denselayer\d+\.(?:norm|conv))\.([12])\.": r"\1\2."}


def _convolution(inputs: int, outputs: int, ksize: int, stride: int = 1) -> Any:
    pad = ksize // 2
    return Convolution2D(inputs, outputs, ksize, stride, pad, True, HeNormal())


def _normalization(channels: int) -> BatchNormalization:
    return BatchNormalization(channels, eps=1e-5)


class DenseLayer(Chain):
    """``x`` and, as further channels, two convolutions of it.

    Args:
        inputs: the number of channels of x.
        growth: how many channels are added.
        widening: how many times as many there are between the convolutions.
    """

    def __init__(self, inputs: int, growth: int, widening: int) -> None:
        super().__init__()
        inner = widening * growth
        with self.init_scope():
            self.norm1 = _normalization(inputs)
            self.conv1 = _convolution(inputs, inner, 1)
            self.norm2 = _normalization(inner)
            self.conv2 = _convolution(inner, growth, 3)

    def forward(self, x: ArrayLike) -> Variable:
        """The channels of ``x`` and the added ones."""
        h = self.conv1(relu(self.norm1(x)))
        return concat((x, self.conv2(relu(self.norm2(h)))), 1)


class Transition(Chain):
    """A convolution to half of the channels, and means over 2 × 2 pixels."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        with self.init_scope():
            self.norm = _normalization(inputs)
            self.conv = _convolution(inputs, inputs // 2, 1)

    def forward(self, x: ArrayLike) -> Variable:
        """The smaller image."""
        return average_pooling_2d(self.conv(relu(self.norm(x))), 2)


class DenseNet(Chain):
    """Blocks of layers that read the outputs of all layers of their block before them.

    ``load_torch_state_dict`` loads torchvision's weights.

    Args:
        growth: how many channels each layer adds.
        blocks: the number of layers of each block.
        channels: those before the first block.
        num_classes: the number of classes.
        widening: as for ``DenseLayer``.

    Shapes:
        x: (N, 3, H, W)
        y: (N, num_classes), before softmax

    Source: Huang et al., Densely connected convolutional networks, 2017.
    """

    def __init__(
        self,
        growth: int,
        blocks: Sequence[int],
        channels: int = 64,
        num_classes: int = 1000,
        widening: int = 4,
    ) -> None:
        super().__init__()
        self.blocks = tuple(blocks)
        features: Any = Chain()
        with features.init_scope():
            features.conv0 = _convolution(3, channels, 7, 2)
            features.norm0 = _normalization(channels)
            for k, count in enumerate(self.blocks, 1):
                if k > 1:
                    setattr(features, f"transition{k - 1}", Transition(channels))
                    channels //= 2
                block = Chain()
                for i in range(1, count + 1):
                    layer = DenseLayer(channels, growth, widening)
                    block.add_link(f"denselayer{i}", layer)
                    channels += growth
                setattr(features, f"denseblock{k}", block)
            features.norm5 = _normalization(channels)
        with self.init_scope():
            self.features = features
            self.classifier = Linear(channels, num_classes)

    def forward(self, x: ArrayLike) -> Variable:
        """The scores of the classes."""
        features: Any = self.features
        h = relu(features.norm0(features.conv0(x)))
        h = max_pooling_2d(h, 3, 2, 1, cover_all=False)
        for k, count in enumerate(self.blocks, 1):
            if k > 1:
                h = features[f"transition{k - 1}"](h)
            block = features[f"denseblock{k}"]
            for i in range(1, count + 1):
                h = block[f"denselayer{i}"](h)
        return self.classifier(average(relu(features.norm5(h)), axis=(2, 3)))

    def torch_state(self, state: State) -> dict[str, numpy.ndarray]:
        """The arrays of torchvision's state with the names of the parts here."""
        return renamed(state, _NAMES)


class DenseNet121(DenseNet):
    """``DenseNet`` of 121 layers."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(32, (6, 12, 24, 16), num_classes=num_classes)
