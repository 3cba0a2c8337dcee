"""What creators keep of their forward pass: probabilities, masks, flags.

The functions here stand for those of ``renga.functions``. They compute the same with
the same random numbers, and leave the attributes of ``y.creator`` with ``y``. Where the
graph has them, they are computed when they are read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy

from renga import functions as F
from renga.chainer.function_classes.graph_attributes import CREATOR_ATTRIBUTES
from renga.core.configuration import config
from renga.core.gradients import grad
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions.array.cast import promoted
from renga.functions.math.elementwise import identity
from renga.functions.noise.seed import generator
from renga.links.activation import simplified_dropconnect as dropconnect_link
from renga.links.rnn import lstm
from renga.program import is_recording


def keep(output: Variable, /, **attributes: object) -> None:
    """Leaves attributes of its creator with an output; functions are called if read."""
    if config.enable_backprop:
        vars(output)[CREATOR_ATTRIBUTES] = attributes


def kept_by(y: ArrayLike) -> dict[str, object] | None:
    """The attributes of the creator of ``y`` that were left with it."""
    return getattr(y, "__dict__", {}).get(CREATOR_ATTRIBUTES)


def attribute_of(
    class_name: str, node: object, kept: dict[str, object] | None, name: str
) -> object:
    """An attribute of a creator; AttributeError without one.

    ``node`` is the core's, None if no input requires a gradient.
    """
    if kept is not None and name in kept:
        value = kept[name]
        return value() if callable(value) else value
    if node is not None and kept is None and (class_name, name) in _COMPUTED:
        return _COMPUTED[class_name, name](node)
    return getattr(node, name)


def _factors(node: Any) -> Any:
    """The mask of a dropout is the gradient of a gradient of ones."""
    nodes = (node.outputs[0](), node.inputs[0])
    ones = numpy.ones(nodes[0].shape, nodes[0].dtype)
    y, x = (each.get_variable() for each in nodes)
    for var in (y, x):
        if not var.is_initialized:  # it stands for one that is gone
            var.array = ones
    return grad([y], [x], [Variable(ones)])[0].array


_COMPUTED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("Dropout", "mask"): _factors,
}


def _is_on_host(x: Any) -> bool:
    """Whether ``x`` has elements now that can be read without a device to wait for."""
    if not isinstance(x, Variable):
        return isinstance(x, numpy.ndarray)
    is_part = x.is_meta or x.stage >= 0 or is_recording()
    return not is_part and x.device_name == "cpu"


def _softmax_cross_entropy(function: Any) -> Any:
    parameters = list(inspect.signature(function).parameters)
    caches = parameters.index("cache_score")
    twice = parameters.index("enable_double_backprop")

    def softmax_cross_entropy(
        x: ArrayLike, t: ArrayLike, *args: object, **kwargs: object
    ) -> Any:
        loss = function(x, t, *args, **kwargs)
        if args or kwargs:
            given = dict(zip(parameters[2:], args), **kwargs)
            if given.get(parameters[twice]):
                keep(loss)
                return loss
            if not given.get(parameters[caches], True):
                keep(loss, y=None)
                return loss
        if _is_on_host(x):
            scores = x.array if isinstance(x, Variable) else x
            keep(loss, y=lambda: F.softmax(scores, axis=1).array)
        return loss

    return softmax_cross_entropy


def _dropout(function: Any) -> Any:
    def dropout(x: ArrayLike, ratio: float = 0.5, **kwargs: object) -> Any:
        if kwargs or not config.train:
            return function(x, ratio, **kwargs)
        if isinstance(x, Variable) and x.requires_grad:
            y = function(x, ratio)
            if y is x:
                y = identity(x)
                keep(y, mask=numpy.ones(x.shape, x.dtype))
            return y
        y, mask = function(x, ratio, return_mask=True)
        keep(y, mask=mask)
        return y

    return dropout


def _is_ratio(ratio: Any) -> bool:
    return isinstance(ratio, (int, float)) and 0 <= ratio <= 1


def _are_alike(h: Any, x: Any) -> bool:
    return hasattr(h, "dtype") and getattr(x, "shape", None) == h.shape


def _zoneout(function: Any) -> Any:
    def zoneout(
        h: ArrayLike, x: ArrayLike, ratio: float = 0.5, **kwargs: object
    ) -> Any:
        fits = not kwargs and _is_ratio(ratio) and _are_alike(h, x)
        if not config.train or not fits:
            return function(h, x, ratio, **kwargs)
        flag_x = generator(h).rand(*h.shape) >= ratio
        y = F.where(flag_x, *promoted(x, h))
        keep(y, flag_x=flag_x, flag_h=~flag_x)
        return y

    return zoneout


def _simplified_dropconnect(function: Any) -> Any:
    def simplified_dropconnect(
        x: ArrayLike,
        W: ArrayLike,
        b: ArrayLike | None = None,
        ratio: float = 0.5,
        train: bool = True,
        mask: Any = None,
        use_batchwise_mask: bool = True,
    ) -> Any:
        if train and mask is None and _is_ratio(ratio) and ratio < 1:
            shape = (len(x), *W.shape) if use_batchwise_mask else W.shape
            mask = generator(x).rand(*shape) >= ratio
        y = function(x, W, b, ratio, train, mask, use_batchwise_mask)
        if mask is not None:
            keep(y, mask=mask)
        return y

    return simplified_dropconnect


#: What makes the functions whose creators have attributes from those without.
KEEPING: dict[str, Callable[[Any], Any]] = {
    "dropout": _dropout,
    "simplified_dropconnect": _simplified_dropconnect,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "zoneout": _zoneout,
}


def replace_in_links() -> None:
    """Has links call those functions that ``renga.functions`` has now."""
    for module, name in (
        (dropconnect_link, "simplified_dropconnect"),
        (lstm, "zoneout"),
    ):
        setattr(module, name, getattr(F, name))
