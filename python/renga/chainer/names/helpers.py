"""Private functions that copies of Chainer's functions, links and data sets call."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga import functions as F
from renga.core.types import Array, DTypeLike
from renga.core.variable import Variable
from renga.datasets import image_dataset
from renga.datasets.downloaded.idx import idx_arrays

# chainer.datasets.image_dataset


def _check_pillow_availability() -> None:
    """Raises ImportError where Pillow is not installed."""
    if not image_dataset.available:
        raise ImportError("image_dataset: Pillow is not installed")


def _read_image_as_array(path: Any, dtype: DTypeLike) -> numpy.ndarray:
    """The pixels of an image as (height, width) or (height, width, channels)."""
    from PIL import Image

    with Image.open(path) as image:
        return numpy.asarray(image, dtype)


def _postprocess_image(image: numpy.ndarray) -> numpy.ndarray:
    """Pixels as (channels, height, width)."""
    if image.ndim == 2:
        image = image[..., None]
    return image.transpose(2, 0, 1)


# chainer.datasets.mnist


def _retrieve_mnist_training() -> dict[str, numpy.ndarray]:
    """The pixels and labels of MNIST's training set, as bytes: ``x`` and ``y``."""
    return idx_arrays("mnist", "train")


def _retrieve_mnist_test() -> dict[str, numpy.ndarray]:
    """The pixels and labels of MNIST's test set, as bytes: ``x`` and ``y``."""
    return idx_arrays("mnist", "test")


# chainer.distributions.normal

ENTROPYC = 0.5 * math.log(2 * math.pi * math.e)
LOGPROBC = -0.5 * math.log(2 * math.pi)
PROBC = 1 / math.sqrt(2 * math.pi)


# chainer.functions.activation.log_softmax


def _log_softmax(x: Array, axis: int = 1) -> Array:
    """The logarithm of the softmax of an array."""
    return F.log_softmax(x, axis).array


# chainer.functions.loss.softmax_cross_entropy


def _check_class_weight_option(class_weight: Any) -> None:
    """Raises ValueError unless it is None or a vector of floats that is an array."""
    if class_weight is None:
        return
    if class_weight.ndim != 1 or class_weight.dtype.kind != "f":
        raise ValueError(
            "class_weight: expected a vector of floats, got "
            f"{class_weight.ndim} axes of {class_weight.dtype}"
        )
    if isinstance(class_weight, Variable):
        raise ValueError("class_weight: expected an array, got a Variable")


def _check_reduce_option(reduce: str) -> None:
    """Raises ValueError unless it is "mean" or "no"."""
    if reduce not in ("mean", "no"):
        raise ValueError(f"reduce: expected 'mean' or 'no', got {reduce!r}")


# chainer.functions.normalization.batch_normalization


def _x_hat(x: Any, mean: Any, inv_std: Any) -> Any:
    """``x`` by its mean and the inverse of its deviation, in its own dtype."""
    x_hat = x - mean
    x_hat *= inv_std
    return x_hat


# chainer.optimizers.adam


def _learning_rate(hp: Any, t: int) -> float:
    """The step size of Adam with the corrections of bias in update ``t``."""
    if t == 0:
        raise RuntimeError("Adam: expected an update before its step size is asked for")
    corrected = math.sqrt(1 - math.pow(hp.beta2, t)) / (1 - math.pow(hp.beta1, t))
    return float(hp.alpha * corrected)
