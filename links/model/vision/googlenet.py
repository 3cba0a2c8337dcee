"""GoogLeNet: an image classifier of inception blocks."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from renga.functions import (
    average_pooling_2d,
    dropout,
    local_response_normalization,
    max_pooling_2d,
    relu,
    softmax,
)
from renga.initializers import Constant, LeCunUniform
from renga.links.connection.inception import Inception
from renga.links.connection.linear import Linear
from renga.links.convolution.convolution import Convolution2D
from renga.links.model.vision.image_model import Functions, ImageModel, prepare_image
from renga.links.model.vision.weights import Published

_MEAN = (104.0, 117.0, 123.0)
# Channels: in, 1 × 1, before 3 × 3, 3 × 3, before 5 × 5, 5 × 5, after the pooling.
_INCEPTIONS = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}
# Caffe's names of the convolutions of an inception.
_WAYS = {
    "conv1": "1x1",
    "proj3": "3x3_reduce",
    "conv3": "3x3",
    "proj5": "5x5_reduce",
    "conv5": "5x5",
    "projp": "pool_proj",
}
_OTHERS = {
    "conv1": "conv1/7x7_s2",
    "conv2_reduce": "conv2/3x3_reduce",
    "conv2": "conv2/3x3",
    "loss3_fc": "loss3/classifier",
    "loss1_conv": "loss1/conv",
    "loss1_fc1": "loss1/fc",
    "loss1_fc2": "loss1/classifier",
    "loss2_conv": "loss2/conv",
    "loss2_fc1": "loss2/fc",
    "loss2_fc2": "loss2/classifier",
}


def prepare(image: object, size: tuple[int, int] | None = (224, 224)) -> numpy.ndarray:
    """An image in this model's input format; see ``prepare_image``."""
    return prepare_image(image, size, _MEAN)


class GoogLeNet(ImageModel):
    """Nine inceptions, with classifiers for training after the third and the sixth.

    ``pretrained_model`` as in ``ImageModel``. The outputs of the two are ``loss1_fc2``
    and ``loss2_fc2``, that of the last layer ``loss3_fc``, all before softmax.

    Shapes:
        x: (N, 3, 224, 224), as ``prepare`` makes it
        prob: (N, 1000)

    Source: Szegedy et al., Going deeper with convolutions, 2014.
    """

    mean = _MEAN
    extracted = "pool5"
    branches = {"loss1_fc2": "inception_4a", "loss2_fc2": "inception_4d"}
    published = Published(
        "bvlc_googlenet", "http://dl.caffe.berkeleyvision.org/bvlc_googlenet.caffemodel"
    )

    def __init__(self, pretrained_model: str | None = "auto") -> None:
        super().__init__()
        random = pretrained_model is None
        init: dict[str, Any] = {"initialW": LeCunUniform() if random else Constant(0)}
        with self.init_scope():
            self.conv1 = Convolution2D(3, 64, 7, 2, 3, **init)
            self.conv2_reduce = Convolution2D(64, 64, 1, **init)
            self.conv2 = Convolution2D(64, 192, 3, 1, 1, **init)
            for name, channels in _INCEPTIONS.items():
                setattr(self, "inc" + name, Inception(*channels))
            self.loss3_fc = Linear(1024, 1000, **init)
            for head, inputs in (("loss1", 512), ("loss2", 528)):
                setattr(self, head + "_conv", Convolution2D(inputs, 128, 1, **init))
                setattr(self, head + "_fc1", Linear(2048, 1024, **init))
                setattr(self, head + "_fc2", Linear(1024, 1000, **init))
        self._load(pretrained_model)

    @property
    def functions(self) -> Functions:
        """The steps by name: callables that run one after the other."""
        pool = functools.partial(max_pooling_2d, ksize=3, stride=2)
        normalize = functools.partial(
            local_response_normalization, n=5, k=1, alpha=1e-4 / 5
        )
        steps: Functions = {
            "conv1": [self.conv1, relu],
            "pool1": [pool, normalize],
            "conv2_reduce": [self.conv2_reduce, relu],
            "conv2": [self.conv2, relu, normalize],
            "pool2": [pool],
        }
        for name in _INCEPTIONS:
            steps["inception_" + name] = [self["inc" + name]]
            if name in ("3b", "4e"):
                steps["pool3" if name == "3b" else "pool4"] = [pool]
        steps["pool5"] = [functools.partial(average_pooling_2d, ksize=7, stride=1)]
        steps["loss3_fc"] = [functools.partial(dropout, ratio=0.4), self.loss3_fc]
        steps["prob"] = [softmax]
        for head in ("loss1", "loss2"):
            steps[head + "_fc2"] = [
                functools.partial(average_pooling_2d, ksize=5, stride=3),
                self[head + "_conv"],
                relu,
                self[head + "_fc1"],
                relu,
                self[head + "_fc2"],
            ]
        return steps

    def caffe_layers(self) -> dict[str, object]:
        links = {caffe: self[name] for name, caffe in _OTHERS.items()}
        for name in _INCEPTIONS:
            for way, caffe in _WAYS.items():
                links[f"inception_{name}/{caffe}"] = self["inc" + name][way]
        return {name: (link.W.array, link.b.array) for name, link in links.items()}
