"""Convolutions of images that are sharded over several ranks."""

from __future__ import annotations

from typing import Any

from renga import _core
from renga.communicators import Communicator
from renga.core.types import ArrayLike, Extents
from renga.core.variable import Variable, as_variable
from renga.links.parallel.spatial.convolution.node import SpatialConvolution
from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.halo_exchange_plan import require
from renga.links.parallel.spatial.window import SpatialWindow
from renga.parallel.placement.tracker import placed
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
    outsize: Any = None,
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
