"""VGG networks with batch normalization, with torchvision's layers and names."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy

from renga.core.link import Chain
from renga.core.variable import Variable
from renga.functions import dropout, matmul, max_pooling_2d, relu
from renga.initializers import HeNormal, Normal
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.normalization.batch_normalization import BatchNormalization

_EXTENT = 7  # of the image before the layers on top


class VGGBN(Chain):
    """3 × 3 convolutions with a pooling after each block, and three layers on top.

    Layers and names are torchvision's, so that ``load_torch_state_dict`` loads its
    weights.

    Shapes:
        x: (N, 3, H, W), H and W at least 32
        y: (N, num_classes), before softmax

    Source: Simonyan and Zisserman, Very deep convolutional networks for large-scale
    image recognition, 2014; Ioffe and Szegedy, ICML 2015.
    """

    # Convolutions of each block.
    blocks: ClassVar[tuple[int, ...]]
    hidden: ClassVar[int] = 4096  # units of the layers on top

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        with self.init_scope():
            self.features = self._features()
            self.classifier = Chain()
        sizes = (512 * _EXTENT**2, self.hidden, self.hidden, num_classes)
        # Activations and dropouts have the names in between.
        for name, inputs, outputs in zip(("0", "3", "6"), sizes, sizes[1:]):
            layer = Linear(inputs, outputs, initialW=Normal(0.01))
            self.classifier.add_link(name, layer)

    def _features(self) -> Chain:
        features, channels, index = Chain(), 3, 0
        for block, count in enumerate(self.blocks):
            width = min(64 << block, 512)
            for _ in range(count):
                W = HeNormal(fan_option="fan_out")
                conv = Convolution2D(channels, width, 3, 1, 1, initialW=W)
                features.add_link(str(index), conv)
                features.add_link(str(index + 1), BatchNormalization(width, eps=1e-5))
                channels, index = width, index + 3  # the third is an activation
            index += 1  # a pooling
        return features

    def forward(self, x: Variable) -> Variable:
        """The scores of the classes."""
        index = 0
        for count in self.blocks:
            for _ in range(count):
                x = self.features[str(index)](x)
                x = relu(self.features[str(index + 1)](x))
                index += 3
            x = max_pooling_2d(x, 2)
            index += 1
        h = _resized(x)
        for name in ("0", "3"):
            h = dropout(relu(self.classifier[name](h)))
        return self.classifier["6"](h)


def _resized(x: Variable) -> Variable:
    """Means over the parts of an image of any extents."""
    if x.shape[2:] == (_EXTENT, _EXTENT):
        return x
    rows, columns = (_means(n, x.dtype) for n in x.shape[2:])
    return matmul(matmul(rows, x), columns.T)


def _means(extent: int, dtype: Any) -> numpy.ndarray:
    """The matrix that takes means over ``_EXTENT`` parts of so many elements."""
    matrix = numpy.zeros((_EXTENT, extent), dtype)
    for i in range(_EXTENT):
        begin, end = i * extent // _EXTENT, -(-(i + 1) * extent // _EXTENT)
        matrix[i, begin:end] = 1 / (end - begin)
    return matrix


class VGG11BN(VGGBN):
    """``VGGBN`` of 8 convolutions."""

    blocks = (1, 1, 2, 2, 2)


class VGG13BN(VGGBN):
    """``VGGBN`` of 10 convolutions."""

    blocks = (2, 2, 2, 2, 2)


class VGG16BN(VGGBN):
    """``VGGBN`` of 13 convolutions."""

    blocks = (2, 2, 3, 3, 3)


class VGG19BN(VGGBN):
    """``VGGBN`` of 16 convolutions."""

    blocks = (2, 2, 4, 4, 4)
