"""Caffe's layers as links and functions."""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable

from renga import functions as F
from renga.core.configuration import using_config
from renga.core.types import ArrayLike
from renga.links.caffe.network import blobs_of
from renga.links.caffe.pooling import average_pooling, max_pooling
from renga.links.connection.linear import Linear
from renga.links.connection.scale import Scale
from renga.links.convolution.convolution import Convolution2D
from renga.links.convolution.deconvolution import Deconvolution2D
from renga.links.normalization.batch_normalization import BatchNormalization

Builder = Callable[[Any], Any]


def _pair(values: list[int], rows: int, columns: int, default: int) -> Any:
    """(rows, columns) of an option given in one of Caffe's three ways."""
    if len(values) > 1:
        return values[0], values[1]
    if values:
        return values[0], values[0]
    return (rows, columns) if rows > 0 or columns > 0 else (default, default)


def _window(param: Any) -> dict[str, Any]:
    return {
        "ksize": _pair(param.kernel_size, param.kernel_h, param.kernel_w, 0),
        "stride": _pair(param.stride, param.stride_h, param.stride_w, 1),
        "pad": _pair(param.pad, param.pad_h, param.pad_w, 0),
        "dilate": _pair(param.dilation, 0, 0, 1),
        "groups": param.group,
        "nobias": not param.bias_term,
    }


def _convolution(layer: Any) -> Convolution2D:
    param = layer.convolution_param
    W, *b = blobs_of(layer, param.bias_term)
    window = _window(param)
    _require_shape(W, (param.num_output, None, *window["ksize"]))
    channels = W.shape[1] * param.group
    link = Convolution2D(channels, param.num_output, initialW=0, **window)
    return _filled(link, W, b)


def _deconvolution(layer: Any) -> Deconvolution2D:
    param = layer.convolution_param
    W, *b = blobs_of(layer, param.bias_term)
    window = _window(param)
    if param.group < 1 or param.num_output % param.group:
        raise ValueError(f"{param.num_output} outputs in {param.group} groups")
    _require_shape(W, (None, param.num_output // param.group, *window["ksize"]))
    link = Deconvolution2D(W.shape[0], param.num_output, initialW=0, **window)
    return _filled(link, W, b)


def _inner_product(layer: Any) -> Linear:
    param = layer.inner_product_param
    if param.axis != 1:
        raise RuntimeError("Non-default axis in InnerProduct is not supported")
    W, *b = blobs_of(layer, param.bias_term)
    W = W.T if param.transpose else W
    if W.ndim == 0 or W.size != W.shape[-1] * param.num_output:
        raise ValueError(f"weights of {W.shape} for {param.num_output} outputs")
    link = Linear(W.shape[-1], param.num_output, nobias=not param.bias_term, initialW=0)
    return _filled(link, W, b)


def _require_shape(W: Any, expected: tuple[int | None, ...]) -> None:
    """Checks the shape of a layer's weights before memory is allocated for them."""
    fits = W.ndim == len(expected) and all(
        n is None or n == have for n, have in zip(expected, W.shape)
    )
    if not fits:
        raise ValueError(f"weights of {W.shape}, where {expected} follows")


def _filled(link: Any, W: Any, b: list[Any]) -> Any:
    link.W.array[...] = W.reshape(link.W.shape)
    if link.b is not None:
        link.b.array[...] = b[0].reshape(link.b.shape)
    return link


def _pooling(layer: Any) -> Callable[..., Any]:
    param = layer.pooling_param
    if param.pool not in (0, 1):
        raise RuntimeError("Stochastic pooling is not supported")
    if param.global_pooling:
        return functools.partial(_global_pooling, param.pool == 0)
    ksize = _pair([], param.kernel_h, param.kernel_w, param.kernel_size)
    stride = _pair([], param.stride_h, param.stride_w, param.stride)
    pad = _pair([], param.pad_h, param.pad_w, param.pad)
    if min(stride) < 1:
        raise ValueError(f"a stride of {stride}")
    pool = max_pooling if param.pool == 0 else average_pooling
    return functools.partial(pool, ksize, stride, pad, param.round_mode == 1)


def _global_pooling(largest: bool, x: Any) -> Any:
    pool = F.max_pooling_2d if largest else F.average_pooling_2d
    return pool(x, x.shape[2:])


def _lrn(layer: Any) -> Callable[..., Any]:
    param = layer.lrn_param
    if param.norm_region != 0:
        raise RuntimeError("Within-channel LRN is not supported")
    if param.local_size < 1:
        raise ValueError(f"a local_size of {param.local_size}")
    return functools.partial(
        F.local_response_normalization,
        n=param.local_size,
        k=param.k,
        alpha=param.alpha / param.local_size,
        beta=param.beta,
    )


def _relu(layer: Any) -> Callable[..., Any]:
    slope = layer.relu_param.negative_slope
    return functools.partial(F.leaky_relu, slope=slope) if slope else F.relu


def _dropout(layer: Any) -> Callable[..., Any]:
    return functools.partial(F.dropout, ratio=layer.dropout_param.dropout_ratio)


def _axis(param: Any, old_name: str) -> int:
    """The axis of a layer, which has another name in old files."""
    axis = param.axis
    if "axis" not in param.present and old_name in param.present:
        axis = getattr(param, old_name)
    return axis


def _concat(layer: Any) -> Callable[..., Any]:
    return functools.partial(_concatenate, _axis(layer.concat_param, "concat_dim"))


def _concatenate(axis: int, *xs: Any) -> Any:
    return F.concat(xs, axis=axis)


def _slice(layer: Any) -> Callable[..., Any]:
    param = layer.slice_param
    points = list(param.slice_point) or len(layer.top)
    axis = _axis(param, "slice_dim")
    return functools.partial(F.split_axis, indices_or_sections=points, axis=axis)


def _eltwise(layer: Any) -> Callable[..., Any]:
    param = layer.eltwise_param
    if not 0 <= param.operation <= 2:
        raise ValueError(f"an operation of {param.operation}")
    if len(param.coeff) not in (0, len(layer.bottom)):
        raise ValueError(
            f"{len(param.coeff)} coefficients of {len(layer.bottom)} blobs"
        )
    return functools.partial(_combine, param.operation, [float(c) for c in param.coeff])


def _combine(operation: int, coefficients: list[float], *xs: Any) -> Any:
    """The product (0), the sum (1) or the maximum (2)."""
    if operation == 1 and coefficients:
        xs = tuple(c * x for c, x in zip(coefficients, xs))
    return functools.reduce((operator.mul, operator.add, F.maximum)[operation], xs)


def _scale(layer: Any) -> Scale:
    param = layer.scale_param
    given = len(layer.bottom) > 1
    blobs = blobs_of(layer, param.bias_term, required=0 if given else 1)
    bias = blobs[-1] if param.bias_term else None
    W_shape = None if given else blobs[0].shape
    link = Scale(
        param.axis, W_shape, param.bias_term, None if bias is None else bias.shape
    )
    if not given:
        link.W.array[...] = blobs[0]
    if bias is not None:
        link.bias.b.array[...] = bias
    return link


class _GlobalNormalization(BatchNormalization):
    """Normalizes by the statistics in the file, also during training."""

    def forward(self, x: ArrayLike, **kwargs: Any) -> Any:
        with using_config("train", False):
            return super().forward(x, **kwargs)


def _batch_norm(layer: Any) -> BatchNormalization:
    mean, variance, weight = blobs_of(layer, required=3)
    if mean.size != variance.size or weight.size != 1:
        raise ValueError(
            f"statistics of {mean.shape}, {variance.shape}, {weight.shape}"
        )
    param = layer.batch_norm_param
    cls = _GlobalNormalization if param.use_global_stats else BatchNormalization
    link = cls(
        mean.size,
        decay=param.moving_average_fraction,
        eps=param.eps,
        use_gamma=False,
        use_beta=False,
    )
    # The blobs are sums whose weight is the last blob; it is 0 before any update.
    factor = 1 / weight.ravel() if weight.any() else 0
    link.avg_mean[...] = mean.ravel() * factor
    link.avg_var[...] = variance.ravel() * factor
    return link


def _reshape(layer: Any) -> Callable[..., Any]:
    param = layer.reshape_param
    if param.axis != 0 or param.num_axes != -1:
        raise RuntimeError("Reshape of some axes is not supported")
    return functools.partial(_reshaped, list(param.shape.dim))


def _reshaped(dims: list[int], x: Any) -> Any:
    """``x`` reshaped to ``dims``, where 0 keeps the extent of the axis."""
    shape = tuple(n if n != 0 else x.shape[axis] for axis, n in enumerate(dims))
    return F.reshape(x, shape)


def _softmax(layer: Any) -> Callable[..., Any]:
    _require_channels(layer)
    return F.softmax


def _softmax_with_loss(layer: Any) -> Callable[..., Any]:
    _require_channels(layer)
    param, by_samples = layer.loss_param, layer.loss_param.normalization == 2
    if "normalization" not in param.present:
        by_samples = not param.normalize
    elif param.normalization not in (1, 2):
        raise RuntimeError("Normalization by all elements, or none, is not supported")
    options = (
        {"ignore_label": param.ignore_label} if "ignore_label" in param.present else {}
    )
    return functools.partial(
        F.softmax_cross_entropy, normalize=not by_samples, **options
    )


def _require_channels(layer: Any) -> None:
    if layer.softmax_param.axis != 1:
        raise RuntimeError("Softmax along non-channel axis is not supported")


BUILDERS: dict[str, Builder] = {
    "BatchNorm": _batch_norm,
    "Concat": _concat,
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "Dropout": _dropout,
    "Eltwise": _eltwise,
    "InnerProduct": _inner_product,
    "LRN": _lrn,
    "Pooling": _pooling,
    "ReLU": _relu,
    "Reshape": _reshape,
    "Scale": _scale,
    "Sigmoid": lambda layer: F.sigmoid,
    "Slice": _slice,
    "Softmax": _softmax,
    "SoftmaxWithLoss": _softmax_with_loss,
}
