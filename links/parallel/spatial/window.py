"""The halo rule: which inputs a box of outputs of a sliding window needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.core.types import Extents, Shape
from renga.links.parallel.spatial.grid import Box
from renga.utils.conv import get_conv_outsize, get_deconv_outsize


class SpatialWindow(NamedTuple):
    """A window that slides over an image.

    Output ``o`` sees inputs ``o stride - pad + k dilate`` for ``k`` in
    ``range(ksize)``, along each axis. Of the two images, ``inputs`` are
    always the larger one: the input of a convolution, the output of its transpose.
    """

    ksize: Shape
    stride: Shape
    pad: Shape
    dilate: Shape

    @classmethod
    def of(
        cls,
        ksize: Extents,
        stride: Extents | None = None,
        pad: Extents = 0,
        dilate: Extents = 1,
        axes: int = 2,
    ) -> SpatialWindow:
        """A window.

        Args:
            ksize, stride, pad, dilate: one number, or one for each axis; a stride of
                None is ``ksize``.
            axes: the number of spatial axes.

        Raises:
            ValueError: there is another number of values than of axes.
        """
        stride = ksize if stride is None else stride
        return cls(*(_per_axis(x, axes) for x in (ksize, stride, pad, dilate)))

    def reach(self, axis: int) -> int:
        """The number of inputs from the first to the last one of a window."""
        return (self.ksize[axis] - 1) * self.dilate[axis] + 1

    def out_extents(self, extents: Sequence[int], cover_all: bool = False) -> Shape:
        """The extents of the outputs."""
        geometry = zip(extents, self.ksize, self.stride, self.pad, self.dilate)
        return tuple(
            get_conv_outsize(n, k, s, p, cover_all, d) for n, k, s, p, d in geometry
        )

    def in_extents(self, extents: Sequence[int], cover_all: bool = False) -> Shape:
        """The extents of the smallest inputs that have such outputs."""
        geometry = zip(extents, self.ksize, self.stride, self.pad, self.dilate)
        return tuple(
            get_deconv_outsize(n, k, s, p, cover_all, d) for n, k, s, p, d in geometry
        )

    def inputs_of(self, outputs: Box) -> Box:
        """The inputs of a box of outputs that is not empty, padding included."""
        return tuple(
            range(ys.start * s - p, (ys.stop - 1) * s - p + self.reach(i))
            for i, (ys, s, p) in enumerate(zip(outputs, self.stride, self.pad))
        )

    def outputs_around(self, inputs: Box) -> Box:
        """The outputs whose windows have some of the inputs; the image has no end here.

        Where strides leave gaps between windows, also the last output whose window
        starts at or before the first of the inputs.
        """
        box = []
        for i, (xs, s, p) in enumerate(zip(inputs, self.stride, self.pad)):
            first = -((self.reach(i) - 1 - xs.start - p) // s)
            first = min(first, (xs.start + p) // s)
            box.append(range(first, (xs.stop - 1 + p) // s + 1))
        return tuple(box)

    def align(self, axis: int, xs: range, ys: range) -> tuple[range, range, int] | None:
        """The inputs and outputs, of those given, that depend on each other.

        Returns:
            The inputs in windows of some of the outputs, these outputs, and the
            distance from the start of their first window to the first of the inputs;
            None if there are none.
        """
        s, p, reach = self.stride[axis], self.pad[axis], self.reach(axis)
        if not xs or not ys:
            return None
        first, last = -((reach - 1 - xs.start - p) // s), (xs.stop - 1 + p) // s
        ys = range(max(ys.start, first), min(ys.stop, last + 1))
        if not ys:
            return None
        begin, end = ys.start * s - p, (ys.stop - 1) * s - p + reach
        xs = range(max(xs.start, begin), min(xs.stop, end))
        return (xs, ys, xs.start - begin) if xs else None


def _per_axis(x: Any, axes: int) -> Shape:
    values = tuple(x) if hasattr(x, "__getitem__") else (x,) * axes
    if len(values) != axes:
        raise ValueError(f"window: expected one value for each of {axes} axes, got {x}")
    return values
