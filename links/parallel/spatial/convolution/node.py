"""Convolution of images in parts, as a vertex of the graph."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy

from renga import _core
from renga.configuration import using_config
from renga.function_node import grad
from renga.functions.noise.seed import enable_random_streams
from renga.links.parallel.moves import channels_last
from renga.links.parallel.spatial.convolution.passage import passage
from renga.links.parallel.spatial.grid import PartFunction, SpatialGrid
from renga.links.parallel.spatial.plan import (
    plan_convolution,
    plan_transposed,
    replicate,
)
from renga.links.parallel.spatial.window import SpatialWindow
from renga.variable import Variable

ops = _core.ops
Extents = tuple[int, ...]


class SpatialConvolution(PartFunction):
    """Of (x, W) or (x, W, b); W and b are the same on every rank.

    ``up`` is the transposed convolution, from the smaller image to the larger; it
    ``rounds`` what it multiplies to bfloat16. On the way back halos travel while W's
    gradient is computed, and then this does while x's is: the ranks sum up what they
    have found.
    """

    def __init__(
        self,
        grid: SpatialGrid,
        window: SpatialWindow,
        groups: int,
        extents: tuple[Extents, Extents],
        up: bool = False,
        rounds: bool = False,
    ) -> None:
        self.grid, self.window, self.groups = grid, window, groups
        self.extents, self.up = extents, up
        self.result_extents = extents[1]
        self.rounds = rounds
        self.there = passage(grid, window, *extents, up)
        # Random numbers for parts differ, as they do within the whole.
        self.random_stream = grid.rank + 1
        enable_random_streams()

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x, W, b = (*inputs, None)[:3]
        self.retain_inputs(range(len(inputs)))
        image = _in_order(x)
        self.reordered = None if image is x else image
        with self._precision():
            y, self.halos = self.there.run(image, _like(x, W), b, self.groups)
        return (y,)

    def _precision(self) -> Any:
        """What multiplies bfloat16 numbers and adds up in float32, where it rounds."""
        if not self.rounds:
            return contextlib.nullcontext()
        return using_config("compute_precision", "medium")

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        xs = self.get_retained_inputs()
        if not _core.backprop_enabled():
            arrays = [x.array for x in xs]
            if self.reordered is not None:
                arrays[0] = self.reordered
            with self._precision():
                gy = _in_order(grad_outputs[0].array)
                return self._gradients(target_input_indexes, arrays, gy)
        ways = grad_outputs, [xs[i] for i in target_input_indexes]
        return tuple(
            grad([self.compose(*xs)], ways[1], ways[0], enable_double_backprop=True)
        )

    def _gradients(
        self, wanted: tuple[int, ...], arrays: list[Any], gy: numpy.ndarray
    ) -> tuple[Any, ...]:
        x, W = arrays[0], _like(arrays[0], arrays[1])
        found: dict[int, numpy.ndarray] = {}
        if 0 in wanted:
            back = passage(self.grid, self.window, *self.extents[::-1], not self.up)
            arriving = back.halo.start(gy)
        if 1 in wanted:
            found[1] = self.there.weight_grad(x, self.halos, gy, W, self.groups)
        if 2 in wanted:
            axes = (0, *range(2, gy.ndim))
            found[2] = ops.sum(gy, axes).array
        sums = list(found.values())
        work = self.grid.comm.all_reduce(sums, out=sums, wait=False) if sums else None
        if 0 in wanted:
            found[0], _ = back.run(gy, W, None, self.groups, arriving)
        if work is not None:
            work.wait()
        return tuple(Variable(_like(arrays[i], found[i])) for i in wanted)

    def compose(self, x: Variable, W: Variable, b: Any = None) -> Variable:
        """The same written with functions, for derivatives of higher order."""
        options = (self.window.stride, (0,) * len(self.window.pad), self.window.dilate)
        W = replicate(self.grid, W if W.dtype == x.dtype else ops.cast(W, x.dtype))
        plan_for = plan_transposed if self.up else plan_convolution
        plan = plan_for(self.grid, self.window, *self.extents)
        convolve = ops.deconvolution_nd if self.up else ops.convolution_nd
        y = plan.keep(convolve(plan.extend(x), W, None, (*options, self.groups)))
        if b is None:
            return y
        b = ops.reshape(replicate(self.grid, b), (-1,) + (1,) * len(options[0]))
        return ops.add(y, ops.broadcast_to(b, y.shape))


def _in_order(x: numpy.ndarray) -> numpy.ndarray:
    """``x`` as float32 kernels want images, so that none of them has to copy it."""
    is_wanted = x.dtype == numpy.float32 and x.ndim == 4
    return channels_last(x) if is_wanted else x


def _like(x: numpy.ndarray, W: numpy.ndarray) -> numpy.ndarray:
    """W in the dtype of x."""
    return W if W.dtype == x.dtype else W.astype(x.dtype)
