"""Residual networks of 50, 101 and 152 layers."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from renga.core.link import Chain, Link
from renga.core.types import ArrayLike, Initial
from renga.core.variable import Variable
from renga.functions import average, max_pooling_2d, relu, softmax
from renga.initializers import Constant, HeNormal
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.model.vision import weights
from renga.links.model.vision.image_model import Functions, ImageModel, prepare_image
from renga.links.normalization.batch_normalization import BatchNormalization

_MEAN = (103.063, 115.903, 123.152)
_URL = "https://github.com/KaimingHe/deep-residual-networks"
# Blocks of each group, by the number of layers.
_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def prepare(image: object, size: tuple[int, int] | None = (224, 224)) -> numpy.ndarray:
    """An image in these models' input format; see ``prepare_image``."""
    return prepare_image(image, size, _MEAN)


class ResNetLayers(ImageModel):
    """A convolution and four groups of residual blocks.

    There are ``n_layers``: 50, 101 or 152. ``pretrained_model`` is as in
    ``ImageModel``. A group halves the image in the first
    1 × 1 convolution of its first block, with ``downsample_fb`` in the 3 × 3 one.

    Shapes:
        x: (N, 3, H, W), as ``prepare`` makes it
        pool5: (N, 2048), the mean over the image
        prob: (N, 1000)

    Raises:
        ValueError: another number of layers.

    Source: He et al., Deep residual learning for image recognition, 2015.
    """

    mean = _MEAN
    extracted = "pool5"

    def __init__(
        self, pretrained_model: str | None, n_layers: int, downsample_fb: bool = False
    ) -> None:
        if n_layers not in _BLOCKS:
            raise ValueError(
                f"ResNetLayers: expected n_layers of 50, 101 or 152, got {n_layers}"
            )
        super().__init__()
        self.n_layers = n_layers
        self.published = weights.Published(f"ResNet-{n_layers}-model", _URL, False)
        random = pretrained_model is None
        initialW = HeNormal() if random else Constant(0)
        with self.init_scope():
            self.conv1 = Convolution2D(3, 64, 7, 2, 3, initialW=initialW)
            self.bn1 = BatchNormalization(64)
            channels = 64
            for group, n in enumerate(_BLOCKS[n_layers]):
                width, stride = 64 << group, 1 if group == 0 else 2
                block = BuildingBlock(
                    n, channels, width, 4 * width, stride, initialW, downsample_fb
                )
                setattr(self, f"res{group + 2}", block)
                channels = 4 * width
            self.fc6 = Linear(2048, 1000, initialW=None if random else initialW)
        self._load(pretrained_model)

    @property
    def functions(self) -> Functions:
        """The steps by name: callables that run one after the other."""
        return {
            "conv1": [self.conv1, self.bn1, relu],
            "pool1": [functools.partial(max_pooling_2d, ksize=3, stride=2)],
            **{f"res{k}": [self[f"res{k}"]] for k in (2, 3, 4, 5)},
            "pool5": [functools.partial(average, axis=(2, 3))],
            "fc6": [self.fc6],
            "prob": [softmax],
        }

    @classmethod
    def convert_caffemodel_to_npz(
        cls, path_caffemodel: str, path_npz: str, n_layers: int = 50
    ) -> None:
        """Writes the weights of a ``.caffemodel`` file as an npz file.

        ``n_layers`` selects the network, if the class does not.

        Raises:
            ValueError: ``n_layers`` is not 50, 101 or 152.
        """
        if cls is ResNetLayers:
            weights.convert(cls(path_caffemodel, n_layers), path_npz)
        else:
            super().convert_caffemodel_to_npz(path_caffemodel, path_npz)

    def caffe_layers(self) -> dict[str, object]:
        # The bias of the first convolution is in the smallest network's file only.
        layers: dict[str, Any] = {
            "conv1": _arrays(self.conv1),
            **_normalization("_conv1", self.bn1),
            "fc1000": _arrays(self.fc6),
        }
        for group in (2, 3, 4, 5):
            for k, block in enumerate(self[f"res{group}"].layers):
                # The long groups of the large networks have numbered blocks.
                numbered = k > 0 and group in (3, 4) and self.n_layers > 50
                name = f"b{k}" if numbered else "abcdef"[k]
                layers.update(block.caffe_layers(f"{group}{name}"))
        return layers


class BuildingBlock(Chain):
    """One group: a block that may halve the image, and others that do not."""

    def __init__(
        self,
        n_layer: int,
        in_channels: int,
        mid_channels: int,
        out_channels: int,
        stride: int,
        initialW: Initial | None = None,
        downsample_fb: bool = False,
    ) -> None:
        super().__init__()
        with self.init_scope():
            self.a = BottleneckA(
                in_channels, mid_channels, out_channels, stride, initialW, downsample_fb
            )
            for k in range(1, n_layer):
                setattr(
                    self, f"b{k}", BottleneckB(out_channels, mid_channels, initialW)
                )
        self.n_layer = n_layer

    @property
    def layers(self) -> list[Link]:
        """The blocks, in their order."""
        return [self.a, *(self[f"b{k}"] for k in range(1, self.n_layer))]

    def forward(self, x: Variable) -> Variable:
        """The output of the last block."""
        for layer in self.layers:
            x = layer(x)
        return x


class _Bottleneck(Chain):
    """Three convolutions, each with a normalization, with a residual connection."""

    def _convolutions(
        self, channels: tuple[int | None, int, int], strides: tuple[int, int], W: Any
    ) -> None:
        inputs, middle, outputs = channels
        first, second = strides
        with self.init_scope():
            self.conv1 = Convolution2D(inputs, middle, 1, first, 0, True, W)
            self.bn1 = BatchNormalization(middle)
            self.conv2 = Convolution2D(middle, middle, 3, second, 1, True, W)
            self.bn2 = BatchNormalization(middle)
            self.conv3 = Convolution2D(middle, outputs, 1, 1, 0, True, W)
            self.bn3 = BatchNormalization(outputs)

    def _residual(self, x: Any) -> Variable:
        h = relu(self.bn1(self.conv1(x)))
        h = relu(self.bn2(self.conv2(h)))
        return self.bn3(self.conv3(h))

    def caffe_layers(self, name: str) -> dict[str, object]:
        """Caffe's layers of this block, called ``name``."""
        layers: dict[str, Any] = {}
        ways = {"branch2a": 1, "branch2b": 2, "branch2c": 3, "branch1": 4}
        for way, k in ways.items():
            if hasattr(self, f"conv{k}"):
                layers[f"res{name}_{way}"] = [self[f"conv{k}"].W.array]
                layers.update(_normalization(f"{name}_{way}", self[f"bn{k}"]))
        return layers


class BottleneckA(_Bottleneck):
    """A block that changes the channels, and the image by ``stride``."""

    def __init__(
        self,
        in_channels: int,
        mid_channels: int,
        out_channels: int,
        stride: int = 2,
        initialW: Initial | None = None,
        downsample_fb: bool = False,
    ) -> None:
        super().__init__()
        strides = (1, stride) if downsample_fb else (stride, 1)
        channels = (in_channels, mid_channels, out_channels)
        self._convolutions(channels, strides, initialW)
        with self.init_scope():
            self.conv4 = Convolution2D(
                in_channels, out_channels, 1, stride, 0, True, initialW
            )
            self.bn4 = BatchNormalization(out_channels)

    def forward(self, x: ArrayLike) -> Variable:
        """The sum of the block and a convolution of ``x``."""
        return relu(self._residual(x) + self.bn4(self.conv4(x)))


class BottleneckB(_Bottleneck):
    """A block that keeps the shape."""

    def __init__(
        self, in_channels: int, mid_channels: int, initialW: Initial | None = None
    ) -> None:
        super().__init__()
        self._convolutions((in_channels, mid_channels, in_channels), (1, 1), initialW)

    def forward(self, x: ArrayLike) -> Variable:
        """The sum of the block and ``x``."""
        return relu(self._residual(x) + x)


def _arrays(link: Any) -> tuple[Any, Any]:
    return link.W.array, link.b.array


def _normalization(name: str, link: BatchNormalization) -> dict[str, Any]:
    """The two Caffe layers of a normalization."""
    assert link.gamma is not None and link.beta is not None

    def statistics(blobs: list[numpy.ndarray]) -> None:
        # The third blob is the weight of the sums in the others.
        link.avg_mean[...] = blobs[0].ravel() / blobs[2].ravel()
        link.avg_var[...] = blobs[1].ravel() / blobs[2].ravel()

    scale = (link.gamma.array, link.beta.array)
    return {f"bn{name}": statistics, f"scale{name}": scale}


class ResNet50Layers(ResNetLayers):
    """``ResNetLayers`` of 50 layers."""

    def __init__(
        self, pretrained_model: str | None = "auto", downsample_fb: bool = False
    ) -> None:
        super().__init__(pretrained_model, 50, downsample_fb)


class ResNet101Layers(ResNetLayers):
    """``ResNetLayers`` of 101 layers."""

    def __init__(
        self, pretrained_model: str | None = "auto", downsample_fb: bool = False
    ) -> None:
        super().__init__(pretrained_model, 101, downsample_fb)


class ResNet152Layers(ResNetLayers):
    """``ResNetLayers`` of 152 layers."""

    def __init__(
        self, pretrained_model: str | None = "auto", downsample_fb: bool = False
    ) -> None:
        super().__init__(pretrained_model, 152, downsample_fb)
