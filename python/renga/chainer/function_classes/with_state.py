"""Classes whose attributes hold what was drawn or found by their forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from renga import functions as F
from renga._core import Variable
from renga.chainer.function_classes.operation import OperationNode
from renga.chainer.function_classes.window_attributes import window_attributes
from renga.core.function_node import FunctionNode
from renga.core.types import ArrayLike, Extents
from renga.core.variable import as_array
from renga.utils import type_check


class Dropout(OperationNode):
    """Random zeros; ``mask`` holds the factors."""

    def __init__(
        self,
        dropout_ratio: float,
        mask: ArrayLike | None = None,
        return_mask: bool = False,
    ) -> None:
        if not 0 <= dropout_ratio < 1:
            raise ValueError(
                f"Dropout: expected a ratio in [0, 1), got {dropout_ratio}"
            )
        self.dropout_ratio = dropout_ratio
        self.mask = mask
        self.return_mask = return_mask

    def compute(self, x: ArrayLike) -> Variable:
        if self.mask is None:
            ones = numpy.ones(x.shape, x.dtype)
            kept = numpy.random.rand(*x.shape) >= self.dropout_ratio
            self.mask = ones * kept / x.dtype.type(1 - self.dropout_ratio)
        return F.identity(x) * self.mask


class RReLU(OperationNode):
    """Leaky ReLU; ``r`` holds the slopes."""

    def __init__(
        self, lower: float = 1 / 8, upper: float = 1 / 3, r: ArrayLike | None = None
    ) -> None:
        self.lower, self.upper, self.r = lower, upper, r

    def compute(self, x: ArrayLike) -> Variable:
        if self.r is None:
            y, self.r = F.rrelu(x, self.lower, self.upper, return_r=True)
            return y
        return F.rrelu(x, self.lower, self.upper, r=self.r)


class Gaussian(OperationNode):
    """Samples; ``eps`` holds the standard normal ones."""

    def __init__(self, eps: ArrayLike | None = None) -> None:
        self.eps = eps

    def compute(self, mean: ArrayLike, ln_var: ArrayLike) -> Variable:
        y, self.eps = F.gaussian(mean, ln_var, eps=self.eps, return_eps=True)
        return y


class SimplifiedDropconnect(OperationNode):
    """Dropped weights; ``mask`` tells which were kept."""

    def __init__(
        self,
        ratio: float,
        mask: ArrayLike | None = None,
        use_batchwise_mask: bool = True,
    ) -> None:
        if not 0 <= ratio < 1:
            raise ValueError(
                f"SimplifiedDropconnect: expected a ratio in [0, 1), got {ratio}"
            )
        self.ratio, self.mask = ratio, mask
        self.use_batchwise_mask = use_batchwise_mask

    def compute(
        self, x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None
    ) -> Variable:
        if self.mask is None:
            shape = (len(x), *W.shape) if self.use_batchwise_mask else W.shape
            self.mask = numpy.random.rand(*shape) >= self.ratio
        return F.simplified_dropconnect(
            x, W, b, self.ratio, True, self.mask, self.use_batchwise_mask
        )


class Zoneout(OperationNode):
    """Hidden units that keep their values; ``flag_h`` tells which."""

    def __init__(self, zoneout_ratio: float) -> None:
        self.zoneout_ratio = zoneout_ratio
        self.flag_h: Any = None

    def compute(self, h: ArrayLike, x: ArrayLike) -> Variable:
        if self.flag_h is None:
            self.flag_h = numpy.random.rand(*x.shape) < self.zoneout_ratio
        return F.where(self.flag_h, h, x)


class SoftmaxCrossEntropy(OperationNode):
    """``y`` holds the probabilities, None without ``cache_score``."""

    def __init__(
        self,
        normalize: bool = True,
        cache_score: bool = True,
        class_weight: ArrayLike | None = None,
        ignore_label: int = -1,
        reduce: str = "mean",
        soft_target_loss: str = "cross-entropy",
    ) -> None:
        self.normalize = normalize
        self.cache_score = cache_score
        self.class_weight = class_weight
        self.ignore_label = ignore_label
        self.reduce = reduce
        self.soft_target_loss = soft_target_loss
        self.y: Any = None

    def compute(self, x: ArrayLike, t: ArrayLike) -> Variable:
        if self.cache_score and not self.again:
            self.y = F.softmax(x, axis=1).array
        return F.softmax_cross_entropy(
            x,
            as_array(t),
            self.normalize,
            self.cache_score,
            self.class_weight,
            self.ignore_label,
            self.reduce,
            soft_target_loss=self.soft_target_loss,
        )


class MaxPoolingND(OperationNode):
    """``indexes`` holds the positions of the maxima in their windows."""

    ksize: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]

    def __init__(
        self,
        ndim: int,
        ksize: Extents,
        stride: Extents | None = None,
        pad: Extents = 0,
        cover_all: bool = True,
        return_indices: bool = False,
    ) -> None:
        options = {"ndim": ndim, "ksize": ksize, "stride": stride, "pad": pad}
        vars(self).update(window_attributes("MaxPoolingND", options))
        self.cover_all, self.return_indices = cover_all, return_indices
        self.indexes: Any = None

    def compute(self, x: ArrayLike) -> Variable:
        y, self.indexes = F.max_pooling_nd(
            x, self.ksize, self.stride, self.pad, self.cover_all, return_indices=True
        )
        return y


class Pooling2D(FunctionNode):
    """The options of a pooling of images, for subclasses that compute it."""

    def __init__(
        self,
        ksize: Extents,
        stride: Extents | None = None,
        pad: Extents = 0,
        cover_all: bool = True,
        return_indices: bool = False,
    ) -> None:
        options = {"ksize": ksize, "stride": stride, "pad": pad}
        vars(self).update(window_attributes("Pooling2D", options))
        self.cover_all, self.return_indices = cover_all, return_indices

    def check_type_forward(self, in_types: type_check.InTypes) -> None:
        type_check.expect(
            in_types.size() == 1, in_types[0].dtype.kind == "f", in_types[0].ndim == 4
        )


class BatchNormalization(OperationNode):
    """Updates ``running_mean`` and ``running_var`` in place."""

    def __init__(
        self,
        eps: float = 2e-5,
        mean: ArrayLike | None = None,
        var: ArrayLike | None = None,
        decay: float = 0.9,
        axis: int | Sequence[int] | None = None,
    ) -> None:
        self.eps, self.decay, self.axis = eps, decay, axis
        self.running_mean, self.running_var = mean, var

    def compute(self, x: ArrayLike, gamma: ArrayLike, beta: ArrayLike) -> Variable:
        averages: dict[str, Any] = {}
        if not self.again:
            shape, dtype = gamma.shape, gamma.dtype
            if self.running_mean is None:
                self.running_mean = numpy.zeros(shape, dtype)
                self.running_var = numpy.zeros(shape, dtype)
            averages = {
                "running_mean": self.running_mean,
                "running_var": self.running_var,
            }
        return F.batch_normalization(
            x, gamma, beta, eps=self.eps, decay=self.decay, axis=self.axis, **averages
        )


MODULES: dict[str, list[type[FunctionNode]]] = {
    "activation.rrelu": [RReLU],
    "loss.softmax_cross_entropy": [SoftmaxCrossEntropy],
    "noise.dropout": [Dropout],
    "noise.gaussian": [Gaussian],
    "noise.simplified_dropconnect": [SimplifiedDropconnect],
    "noise.zoneout": [Zoneout],
    "normalization.batch_normalization": [BatchNormalization],
    "pooling.max_pooling_nd": [MaxPoolingND],
    "pooling.pooling_2d": [Pooling2D],
}
