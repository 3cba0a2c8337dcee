"""Functions in a model's ``forward`` where every rank has a part of the images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from renga import _core
from renga.function_hook import FunctionHook
from renga.functions.overrides import overriding
from renga.link import Link
from renga.links.parallel.spatial.batch_normalization import SpatialBatchNormalization
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.image import scatter_image
from renga.links.parallel.spatial.link import SpatialLink
from renga.links.parallel.spatial.model.arguments import (
    give_whole,
    require_same_call,
    take_parts,
)
from renga.links.parallel.spatial.model.substitutes import substitutes
from renga.links.parallel.spatial.parts import Knowledge, current, known
from renga.operation_cost import operation_name
from renga.parameter import Parameter
from renga.variable import Variable

# Operations that compute each element from those at the same place.
_ELEMENTWISE = frozenset(
    """absolute add arccos arcsin arctan arctan2 cast ceil clip cos cosh divide dropout
    elu erf exp expm1 fixed_batch_normalization floor floor_divide gaussian leaky_relu
    log log10 log1p log2 maximum minimum multiply negative power reciprocal relu rsqrt
    sigmoid sign sin sinh softplus sqrt square subtract tan tanh where""".split()
)
# Those that look along an axis, which may be another than an image's.
_ALONG_AXIS = frozenset(
    """argmax argmin concat log_softmax logsumexp max min prod softmax split_axis
    sum""".split()
)
_INSTEAD = {
    "batch_normalization": "a BatchNormalization link",
    "convolution_2d": "a link, or spatial_convolution",
    "convolution_nd": "a link, or spatial_convolution",
    "deconvolution_2d": "a link, or spatial_deconvolution",
    "deconvolution_nd": "a link, or spatial_deconvolution",
    "softmax_cross_entropy": "reduce='no' and spatial_average",
    "sum": "spatial_sum or spatial_average",
}


class Watch(FunctionHook):
    """Raises where what a function makes of a part is no part of what it would make.

    Raises:
        ValueError: it sees more than a pixel, or takes what has a gradient on every
            rank together with what has it in parts.
    """

    name = "images in parts"

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        if self.knowledge.paused:
            return
        if not isinstance(function, _core.Call):
            if any(getattr(x, "ndim", 0) > 2 for x in in_data):
                _refuse(function.label, in_data, "gather_image before it")
            return
        xs, results = list(_arrays(function.arguments)), function.results
        kinds = [self.knowledge.kind_of(x) for x in xs]
        if "part" in kinds or "for parts" in kinds:
            self._check_gradients(function.label, xs, kinds)
        if "part" in kinds:
            self._check(operation_name(function), function, xs, kinds)
            return
        for y in results:
            self.knowledge.note(y, "for parts" if "for parts" in kinds else "whole")

    def _check_gradients(self, label: str, xs: list[Any], kinds: list[str]) -> None:
        if not _core.backprop_enabled():
            return
        for x, kind in zip(xs, kinds):
            if kind == "whole" and _is_trained(x):
                name = f" {x.name}" if getattr(x, "name", None) else ""
                raise ValueError(
                    f"{label}: expected {x.shape}{name}, which every rank has, to come "
                    "through spatial_broadcast where it meets parts of images, for the "
                    "gradient is the sum of what the ranks find"
                )

    def _check(self, name: str, function: Any, xs: Any, kinds: list[str]) -> None:
        parts = [x for x, kind in zip(xs, kinds) if kind == "part"]
        others = [x for x, kind in zip(xs, kinds) if kind != "part" and x.ndim > 2]
        extents = {tuple(x.shape[2:]) for x in (*parts, *function.results)}
        kept = len(extents) == 1 and all(set(x.shape[2:]) == {1} for x in others)
        axes = len(next(iter(extents)))
        if not (kept and _is_local(name, function.arguments, parts[0].shape, axes)):
            _refuse(name, parts, _INSTEAD.get(name, "gather_image before it"))


def _is_local(name: str, arguments: Any, shape: Any, axes: int) -> bool:
    """Whether each pixel of the result comes from the same pixel of a part."""
    if name in _ALONG_AXIS:
        axis = arguments[-1] if name == "split_axis" else arguments[1]
        along = axis if isinstance(axis, (list, tuple)) else (axis,)
        return all(i is not None and i % (2 + axes) < 2 for i in along)
    if name == "slice":
        return all(taken == (0, n, 1) for taken, n in zip(arguments[1][2:], shape[2:]))
    return name in _ELEMENTWISE or name in ("reshape", "broadcast_to")


def _refuse(name: str, xs: Any, instead: str) -> None:
    shapes = ", ".join(str(x.shape) for x in xs)
    raise ValueError(
        f"{name}: expected {instead}, as every rank has but a part of the images here, "
        f"got {shapes}"
    )


def _is_trained(x: Any) -> bool:
    if not isinstance(x, Variable) or not x.requires_grad:
        return False
    return isinstance(x, Parameter) or x.creator_node is not None


def _arrays(arguments: Any) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, (Variable, numpy.ndarray)):
            yield argument
        elif isinstance(argument, (list, tuple)):
            yield from _arrays(argument)


class _Watched(Link):
    """A model whose functions are watched while it runs."""

    _spatial_grid: SpatialGrid
    _takes_whole: bool

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._watch(super().forward, args, kwargs)  # type: ignore[misc]

    def _watch(self, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if current() is not None:
            return run(*args, **kwargs)
        grid, whole, name = self._spatial_grid, self._takes_whole, type(self).__name__
        require_same_call(grid, name, (args, kwargs), whole)
        knowledge = Knowledge(functools.partial(scatter_image, grid))
        if whole:
            args, kwargs = take_parts(grid, knowledge, (args, kwargs))
        stand_in = overriding(substitutes(grid, knowledge))
        with known(knowledge), Watch(knowledge), stand_in:
            result = run(*args, **kwargs)
        return give_whole(grid, knowledge, name, result) if whole else result


class _WatchedCall(_Watched):
    """One that says by itself what happens when it is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._watch(super().__call__, args, kwargs)


def watch(model: Link, grid: SpatialGrid, whole: bool) -> None:
    """From now on the model's functions are spatial ones, or raise, when it is called.

    Links in it that are called by themselves are watched, too.

    Args:
        whole: all ranks call it with whole images and get whole images; else with
            their parts.
    """
    for link in model.links():
        kind = type(link)
        if not whole and isinstance(link, (SpatialLink, SpatialBatchNormalization)):
            continue
        watched = _Watched if kind.__call__ is Link.__call__ else _WatchedCall
        names = {
            "_spatial_grid": grid,
            "_takes_whole": whole,
            "__module__": kind.__module__,
            "__qualname__": kind.__qualname__,
        }
        link.__class__ = type(kind.__name__, (watched, kind), names)


def is_watched(model: Link) -> bool:
    """Whether a link of the model is one for images in parts already."""
    return any(isinstance(link, _Watched) for link in model.links())
