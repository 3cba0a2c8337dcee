"""The classifiers of the Visual Geometry Group: 16 and 19 layers with weights."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy

from renga.functions import dropout, max_pooling_2d, relu, softmax
from renga.initializers import Constant, Normal
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.model.vision.image_model import Functions, ImageModel, prepare_image
from renga.links.model.vision.weights import Published

_MEAN = (103.939, 116.779, 123.68)
_URL = "https://www.robots.ox.ac.uk/%7Evgg/software/very_deep/caffe/{}.caffemodel"


def prepare(image: object, size: tuple[int, int] | None = (224, 224)) -> numpy.ndarray:
    """An image in these models' input format; see ``prepare_image``."""
    return prepare_image(image, size, _MEAN)


class VGGLayers(ImageModel):
    """3 × 3 convolutions with a pooling after each block, and three layers on top.

    ``pretrained_model`` as in ``ImageModel``.

    Shapes:
        x: (N, 3, 224, 224), as ``prepare`` makes it
        prob: (N, 1000)

    Source: Simonyan and Zisserman, Very deep convolutional networks for large-scale
    image recognition, 2014.
    """

    mean = _MEAN
    extracted = "fc7"
    # Convolutions of each block.
    blocks: ClassVar[tuple[int, ...]]

    def __init__(self, pretrained_model: str | None = "auto") -> None:
        super().__init__()
        initialW = Normal(0.01) if pretrained_model is None else Constant(0)
        channels = 3
        with self.init_scope():
            for block, n in enumerate(self.blocks, 1):
                for k in range(1, n + 1):
                    width = min(64 << block - 1, 512)
                    conv = Convolution2D(channels, width, 3, 1, 1, initialW=initialW)
                    setattr(self, f"conv{block}_{k}", conv)
                    channels = width
            self.fc6 = Linear(512 * 7 * 7, 4096, initialW=initialW)
            self.fc7 = Linear(4096, 4096, initialW=initialW)
            self.fc8 = Linear(4096, 1000, initialW=initialW)
        self._load(pretrained_model)

    @property
    def functions(self) -> Functions:
        """The steps by name: callables that run one after the other."""
        steps: Functions = {}
        for block, n in enumerate(self.blocks, 1):
            for k in range(1, n + 1):
                name = f"conv{block}_{k}"
                steps[name] = [self[name], relu]
            steps[f"pool{block}"] = [functools.partial(max_pooling_2d, ksize=2)]
        steps["fc6"] = [self.fc6, relu, dropout]
        steps["fc7"] = [self.fc7, relu, dropout]
        steps["fc8"] = [self.fc8]
        steps["prob"] = [softmax]
        return steps

    def caffe_layers(self) -> dict[str, object]:
        children: dict[str, Any] = {str(link.name): link for link in self.children()}
        return {name: (link.W.array, link.b.array) for name, link in children.items()}


class VGG16Layers(VGGLayers):
    """``VGGLayers`` of 13 convolutions."""

    blocks = (2, 2, 3, 3, 3)
    published = Published("VGG_ILSVRC_16_layers", _URL.format("VGG_ILSVRC_16_layers"))


class VGG19Layers(VGGLayers):
    """``VGGLayers`` of 16 convolutions."""

    blocks = (2, 2, 4, 4, 4)
    # Not https: the address under which Chainer has its copy.
    published = Published(
        "VGG_ILSVRC_19_layers",
        _URL.format("VGG_ILSVRC_19_layers").replace("https", "http"),
    )
