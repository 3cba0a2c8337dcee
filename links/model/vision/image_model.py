"""ImageModel: base of the image classifiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable, ClassVar

import numpy

from renga.core.configuration import no_backprop_mode, using_config
from renga.core.link import Chain
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import average, reshape
from renga.links.model.vision import weights
from renga.utils import imgproc
from renga.utils.argument import assert_kwargs_empty, check_unexpected_kwargs

Functions = dict[str, list[Callable[..., Any]]]
_CONFIG = "{} argument is not supported anymore. Use renga.using_config"


def prepare_image(
    image: Any, size: tuple[int, int] | None, mean: Sequence[float]
) -> numpy.ndarray:
    """An image in a model's input format: blue, green and red, minus their means.

    ``image`` is an array of (H, W), (1, H, W), (3, H, W) or (H, W, 3) in [0, 255], or
    an image of Pillow, which is required. ``size`` is (width, height), None to keep
    the image's.

    Shapes:
        return: (3, height, width) of float32
    """
    from PIL import Image

    if isinstance(image, numpy.ndarray):
        if image.ndim == 3 and image.shape[0] in (1, 3):
            image = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
        image = Image.fromarray(image.astype(numpy.uint8))
    image = image.convert("RGB")
    if size is not None:
        image = image.resize(size)
    pixels = numpy.asarray(image, numpy.float32)[:, :, ::-1]
    pixels = pixels - numpy.array(mean, numpy.float32)
    return numpy.ascontiguousarray(pixels.transpose(2, 0, 1))


class ImageModel(Chain):
    """A classifier of named steps, all of whose outputs are accessible.

    ``pretrained_model`` is a file of weights, ``.npz`` or ``.caffemodel``. ``"auto"``
    is the npz file converted from the published weights, in the data sets' folder
    ``pfnet/chainer/models``; they are downloaded if possible. None leaves the weights
    random.
    """

    mean: ClassVar[tuple[float, float, float]]
    extracted: ClassVar[str]
    published: weights.Published
    # Steps whose input is not the output of the previous step.
    branches: ClassVar[dict[str, str]] = {}

    def _load(self, pretrained_model: str | None) -> None:
        if pretrained_model is not None:
            weights.load(self, pretrained_model)

    @property
    def functions(self) -> Functions:
        """The steps by name: callables that run one after the other."""
        raise NotImplementedError

    @property
    def available_layers(self) -> list[str]:
        """The names of the steps."""
        return list(self.functions)

    @classmethod
    def convert_caffemodel_to_npz(cls, path_caffemodel: str, path_npz: str) -> None:
        """Writes the weights of a ``.caffemodel`` file as an npz file."""
        make: Any = cls
        weights.convert(make(pretrained_model=path_caffemodel), path_npz)

    def caffe_layers(self) -> dict[str, object]:
        """Caffe's layers by the names of the links that have their weights."""
        raise NotImplementedError

    def forward(
        self, x: ArrayLike, layers: Iterable[str] | None = None, **kwargs: object
    ) -> dict[str, Variable]:
        """The outputs of the steps ``layers``, the probabilities by default."""
        _refuse(kwargs)
        wanted = {"prob"} if layers is None else set(layers)
        found: dict[str, Variable] = {}
        forks: dict[str, Variable] = {}
        h: Any = x
        for name, functions in self.functions.items():
            if not wanted - found.keys():
                break
            h = forks[self.branches[name]] if name in self.branches else h
            for function in functions:
                h = function(h)
            if name in self.branches.values():
                forks[name] = h
            if name in wanted:
                found[name] = h
        return found

    def extract(
        self,
        images: Sequence[object],
        layers: Iterable[str] | None = None,
        size: tuple[int, int] = (224, 224),
        **kwargs: object,
    ) -> dict[str, Variable]:
        """The outputs of steps for images, which ``prepare_image`` describes."""
        _refuse(kwargs)
        x = Variable(self.xp.asarray(self._batch(images, size)))
        return self(x, layers=[self.extracted] if layers is None else layers)

    def predict(self, images: Sequence[object], oversample: bool = True) -> Variable:
        """The probabilities of the classes for images, as for ``extract``.

        They are those of the centre crop, or with ``oversample`` the mean over ten
        crops.

        Shapes:
            return: (number of images, classes)
        """
        x = self._batch(images, (256, 256))
        if oversample:
            x = imgproc.oversample(x, (224, 224))
        else:
            x = x[:, :, 16:240, 16:240]
        with no_backprop_mode(), using_config("train", False):
            y = self(Variable(self.xp.asarray(x)), layers=["prob"])["prob"]
            if oversample:
                y = average(reshape(y, (len(y) // 10, 10, *y.shape[1:])), axis=1)
        return y

    def _batch(self, images: Sequence[Any], size: tuple[int, int]) -> Any:
        return numpy.stack([prepare_image(i, size, self.mean) for i in images])


def _refuse(kwargs: dict[str, Any]) -> None:
    messages = {name: _CONFIG.format(name) for name in ("test", "train", "volatile")}
    check_unexpected_kwargs(kwargs, **messages)
    assert_kwargs_empty(kwargs)
