"""Residual networks with torchvision's layers and names."""

from __future__ import annotations

from typing import Any, ClassVar

from renga.core.link import Chain, ChainList
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import average, max_pooling_2d, relu
from renga.initializers import HeNormal
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.normalization.batch_normalization import BatchNormalization


def _convolution(inputs: int, outputs: int, ksize: int, stride: int = 1) -> Any:
    return Convolution2D(
        inputs, outputs, ksize, stride, ksize // 2, True, HeNormal(fan_option="fan_out")
    )


def _normalization(channels: int) -> BatchNormalization:
    return BatchNormalization(channels, eps=1e-5)


class _Block(Chain):
    """Convolutions beside the input, or beside a convolution of it."""

    expansion: ClassVar[int]
    downsample: ChainList | None = None

    def _add_downsample(self, inputs: int, outputs: int, stride: int) -> None:
        if stride != 1 or inputs != outputs:
            with self.init_scope():
                self.downsample = ChainList(
                    _convolution(inputs, outputs, 1, stride), _normalization(outputs)
                )

    def _beside(self, x: Any) -> Any:
        for layer in self.downsample or ():
            x = layer(x)
        return x


class BasicBlock(_Block):
    """Two 3 × 3 convolutions; the first changes the image by ``stride``."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        with self.init_scope():
            self.conv1 = _convolution(inputs, width, 3, stride)
            self.bn1 = _normalization(width)
            self.conv2 = _convolution(width, width, 3)
            self.bn2 = _normalization(width)
        self._add_downsample(inputs, width, stride)

    def forward(self, x: ArrayLike) -> Variable:
        """The sum of both ways."""
        h = relu(self.bn1(self.conv1(x)))
        return relu(self.bn2(self.conv2(h)) + self._beside(x))


class Bottleneck(_Block):
    """1 × 1, 3 × 3 and 1 × 1 convolutions; the second changes the image."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = self.expansion * width
        with self.init_scope():
            self.conv1 = _convolution(inputs, width, 1)
            self.bn1 = _normalization(width)
            self.conv2 = _convolution(width, width, 3, stride)
            self.bn2 = _normalization(width)
            self.conv3 = _convolution(width, outputs, 1)
            self.bn3 = _normalization(outputs)
        self._add_downsample(inputs, outputs, stride)

    def forward(self, x: ArrayLike) -> Variable:
        """The sum of both ways."""
        h = relu(self.bn1(self.conv1(x)))
        h = relu(self.bn2(self.conv2(h)))
        return relu(self.bn3(self.conv3(h)) + self._beside(x))


class ResidualNetwork(Chain):
    """A convolution, four groups of residual blocks, and a layer on the mean.

    Layers and names are torchvision's, so that ``load_torch_state_dict`` loads its
    weights, unlike those of ``ResNet50Layers``, which are Caffe's.

    Args:
        block: the class of the blocks.
        blocks: how many there are in each group.
        num_classes: the number of classes.

    Shapes:
        x: (N, 3, H, W)
        y: (N, num_classes), before softmax

    Source: He et al., Deep residual learning for image recognition, 2015.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        blocks: tuple[int, int, int, int],
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        channels = 64
        with self.init_scope():
            self.conv1 = _convolution(3, channels, 7, 2)
            self.bn1 = _normalization(channels)
            for group, count in enumerate(blocks):
                width, layers = 64 << group, ChainList()
                for k in range(count):
                    stride = 2 if k == 0 and group > 0 else 1
                    layers.add_link(block(channels, width, stride))
                    channels = block.expansion * width
                setattr(self, f"layer{group + 1}", layers)
            self.fc = Linear(channels, num_classes)

    def forward(self, x: ArrayLike) -> Variable:
        """The scores of the classes."""
        h = relu(self.bn1(self.conv1(x)))
        h = max_pooling_2d(h, 3, 2, 1, cover_all=False)
        for group in (1, 2, 3, 4):
            for block in self[f"layer{group}"]:
                h = block(h)
        return self.fc(average(h, axis=(2, 3)))


class ResNet18(ResidualNetwork):
    """``ResidualNetwork`` of 18 layers."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(BasicBlock, (2, 2, 2, 2), num_classes)


class ResNet34(ResidualNetwork):
    """``ResidualNetwork`` of 34 layers."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(BasicBlock, (3, 4, 6, 3), num_classes)


class ResNet50(ResidualNetwork):
    """``ResidualNetwork`` of 50 layers."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(Bottleneck, (3, 4, 6, 3), num_classes)


class ResNet101(ResidualNetwork):
    """``ResidualNetwork`` of 101 layers."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__(Bottleneck, (3, 4, 23, 3), num_classes)
