"""Convolutions of images that are sharded over several ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.core.configuration import using_config
from renga.core.gradients import grad_of_shards
from renga.core.types import Array, ArrayLike, Extents, Grads, Indexes, Shape, Variables
from renga.core.variable import Variable, as_variable
from renga.functions.noise.seed import give_stream
from renga.links.parallel.spatial.grid import ShardedFunction, SpatialGrid
from renga.links.parallel.spatial.halo_convolution import halo_convolution
from renga.links.parallel.spatial.halo_exchange_plan import (
    plan_transposed_window,
    plan_window,
    require,
    require_same_geometry,
)
from renga.links.parallel.spatial.window import SpatialWindow
from renga.parallel.placement.memory_format import channels_last
from renga.parallel.placement.tracker import placed
from renga.parallel.redistribute import with_summed_gradient
from renga.utils.type_check import InvalidType

ops = _core.ops


@placed()
def spatial_convolution(
    comm: Communicator | SpatialGrid,
    x: ArrayLike,
    W: ArrayLike,
    b: Variable | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    cover_all: bool = False,
    *,
    dilate: Extents = 1,
    groups: int = 1,
    name: str = "spatial_convolution",
) -> Variable:
    """The convolution of images that are sharded over a grid of ranks.

    Each rank gets its shard of ``convolution_2d`` or ``convolution_nd`` of the whole
    images. ``W`` and ``b`` are replicated, and so are their gradients, which are those
    of the whole images.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        name: of the function in errors.

    Shapes:
        x: (N, I, ...) of this rank
        W: (O, I / groups, kh, kw) or with more axes
        b: (O,)
        result: (N, O, ...) of this rank

    Raises:
        InvalidType: shapes do not fit.
    """
    grid, x, W = SpatialGrid.of(comm), as_variable(x), as_variable(W)
    x = _core.as_activation(x)
    window = SpatialWindow.of(W.shape[2:], stride, pad, dilate, W.ndim - 2)
    _check_types(name, x, W, b)
    inputs = grid.whole_extents(name, x)
    outputs = window.out_extents(inputs, cover_all)
    _check(name, grid, x, inputs, W.shape[1] * groups, outputs)
    if grid.size == 1:
        options = (window.stride, window.pad, window.dilate, groups)
        return ops.convolution_nd(x, W, b, options, cover_all)
    return _apply(grid, window, groups, (inputs, outputs), False, (x, W, b))


@placed()
def spatial_deconvolution(
    comm: Communicator | SpatialGrid,
    x: ArrayLike,
    W: ArrayLike,
    b: Variable | None = None,
    stride: Extents = 1,
    pad: Extents = 0,
    outsize: Sequence[int] | None = None,
    *,
    dilate: Extents = 1,
    groups: int = 1,
    name: str = "spatial_deconvolution",
) -> Variable:
    """The transposed convolution of images that are sharded over a grid of ranks.

    Each rank gets its shard of ``deconvolution_2d`` or ``deconvolution_nd`` of the
    whole images. ``W`` and ``b`` are replicated, and so are their gradients, which are
    those of the whole images.

    Args:
        comm: a :class:`SpatialGrid`, or a communicator, for bands of rows.
        outsize: the extents of the whole result; the smallest by default.
        name: of the function in errors.

    Shapes:
        x: (N, I, ...) of this rank
        W: (I, O / groups, kh, kw) or with more axes
        b: (O,)
        result: (N, O, ...) of this rank

    Raises:
        InvalidType: shapes do not fit.
    """
    grid, x, W = SpatialGrid.of(comm), as_variable(x), as_variable(W)
    x = _core.as_activation(x)
    window = SpatialWindow.of(W.shape[2:], stride, pad, dilate, W.ndim - 2)
    _check_types(name, x, W, b)
    inputs = grid.whole_extents(name, x)
    outputs = window.in_extents(inputs) if outsize is None else tuple(outsize)
    _check(name, grid, x, inputs, W.shape[0], outputs)
    if outsize is not None:
        require_same_geometry(grid, name, outputs)
    fits = all(
        least <= n <= most
        for least, n, most in zip(
            window.out_extents(outputs), inputs, window.out_extents(outputs, True)
        )
    )
    expected = f"an outsize whose convolution has extents {inputs}, not {outputs},"
    require(fits, name, expected, grid, x, inputs)
    if grid.size == 1:
        options = (window.stride, window.pad, window.dilate, groups)
        return ops.deconvolution_nd(x, W, b, options, outputs)
    return _apply(grid, window, groups, (inputs, outputs), True, (x, W, b))


def _apply(
    grid: SpatialGrid,
    window: SpatialWindow,
    groups: int,
    extents: Any,
    transposed: bool,
    xs: Any,
) -> Variable:
    x, W, b = xs
    # The node's arrays are NumPy's, which has no bfloat16: it gets float32.
    image = ops.cast(x, x.dtype)
    is_bfloat16 = image is not x
    node = SpatialConvolution(grid, window, groups, extents, transposed, is_bfloat16)
    (y,) = node.apply((image, W) if b is None else (image, W, b))
    return _core.in_dtype_of(y, x)


def _check_types(name: str, x: Variable, W: Variable, b: Any) -> None:
    """Checks the axes and dtypes as the serial convolution does.

    Raises:
        InvalidType: they do not fit.
    """
    if x.ndim != W.ndim or x.dtype.kind != "f" or W.dtype.kind != "f":
        raise InvalidType(
            f"{name}: expected x and W of a float dtype with as many axes, got "
            f"{x.dtype} {x.shape} and {W.dtype} {W.shape}"
        )
    # In Python, bfloat16 images have the dtype float32, as the bias has.
    if b is not None and b.dtype != x.dtype:
        raise InvalidType(
            f"{name}: expected b of dtype {x.dtype}, as x is, got {b.dtype}"
        )


def _check(
    name: str, grid: SpatialGrid, x: Any, inputs: Any, channels: int, outputs: Any
) -> None:
    fits = x.shape[1] == channels
    require(fits, name, f"images with {channels} channels", grid, x, inputs)
    expected = f"images no smaller than the kernel, whose result is not {outputs},"
    require(min(outputs) > 0, name, expected, grid, x, inputs)


class SpatialConvolution(ShardedFunction):
    """Of (x, W) or (x, W, b); W and b are replicated.

    In the backward pass, the halo of gy is exchanged while the gradient of W is
    computed, and the latter is all-reduced while the gradient of x is computed.

    Args:
        extents: of the whole images, of x and of the result.
        transposed: whether it is the transposed convolution.
        in_bfloat16: whether products are of numbers rounded to bfloat16.
    """

    def __init__(
        self,
        grid: SpatialGrid,
        window: SpatialWindow,
        groups: int,
        extents: tuple[Shape, Shape],
        transposed: bool,
        in_bfloat16: bool,
    ) -> None:
        self.grid, self.window, self.groups = grid, window, groups
        self.extents, self.transposed = extents, transposed
        self.result_extents = extents[1]
        self.in_bfloat16 = in_bfloat16
        self.convolution = halo_convolution(grid, window, *extents, transposed)
        give_stream(self, grid.comm)

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        given: tuple[Any, ...] = (*inputs, None)
        x, W, b = given[:3]
        self.retain_inputs(range(len(inputs)))
        image = _in_kernel_format(x)
        self.converted = None if image is x else image
        with self._precision():
            W = _cast_like(x, W)
            y, self.halos = self.convolution.run(image, W, b, self.groups)
        return (y,)

    def _precision(self) -> Any:
        """The context in which products have the node's precision."""
        if not self.in_bfloat16:
            return contextlib.nullcontext()
        return using_config("compute_precision", "medium")

    def backward(self, target_input_indexes: Indexes, grad_outputs: Variables) -> Grads:
        xs = self.get_retained_inputs()
        if not _core.backprop_enabled():
            arrays = [x.array for x in xs]
            if self.converted is not None:
                arrays[0] = self.converted
            with self._precision():
                gy = _in_kernel_format(grad_outputs[0].array)
                return self._gradients(target_input_indexes, arrays, gy)
        y, targets = self.compose(*xs), [xs[i] for i in target_input_indexes]
        return tuple(
            grad_of_shards([y], targets, grad_outputs, enable_double_backprop=True)
        )

    def _gradients(
        self, wanted: tuple[int, ...], arrays: list[Any], gy: numpy.ndarray
    ) -> tuple[Any, ...]:
        x, W = arrays[0], _cast_like(arrays[0], arrays[1])
        found: dict[int, numpy.ndarray] = {}
        if 0 in wanted:
            adjoint = halo_convolution(
                self.grid, self.window, *self.extents[::-1], not self.transposed
            )
            started = adjoint.exchange.start(gy)
        if 1 in wanted:
            found[1] = self.convolution.weight_grad(x, self.halos, gy, W, self.groups)
        if 2 in wanted:
            axes = (0, *range(2, gy.ndim))
            found[2] = ops.sum(gy, axes).array
        sums = list(found.values())
        work = self.grid.comm.all_reduce(sums, out=sums, wait=False) if sums else None
        if 0 in wanted:
            found[0], _ = adjoint.run(gy, W, None, self.groups, started)
        if work is not None:
            work.wait()
        return tuple(Variable(_cast_like(arrays[i], found[i])) for i in wanted)

    def compose(self, x: Variable, W: Variable, b: Variable | None = None) -> Variable:
        """The same by differentiable functions, for derivatives of higher order."""
        options = (self.window.stride, (0,) * len(self.window.pad), self.window.dilate)
        W = W if W.dtype == x.dtype else ops.cast(W, x.dtype)
        W = with_summed_gradient(self.grid.comm, W)
        plan_for = plan_transposed_window if self.transposed else plan_window
        plan = plan_for(self.grid, self.window, *self.extents)
        convolve = ops.deconvolution_nd if self.transposed else ops.convolution_nd
        y = plan.crop(convolve(plan.extend(x), W, None, (*options, self.groups)))
        if b is None:
            return y
        b = with_summed_gradient(self.grid.comm, b)
        b = ops.reshape(b, (-1,) + (1,) * len(options[0]))
        return ops.add(y, ops.broadcast_to(b, y.shape))


def _in_kernel_format(x: numpy.ndarray) -> numpy.ndarray:
    """``x`` in the memory format of float32 kernels, so that none has to convert it."""
    is_converted = x.dtype == numpy.float32 and x.ndim == 4
    return channels_last(x) if is_converted else x


def _cast_like(x: numpy.ndarray, W: numpy.ndarray) -> numpy.ndarray:
    """W in the dtype of x."""
    return W if W.dtype == x.dtype else W.astype(x.dtype)
