"""The halo rule: which inputs a part of the outputs of a sliding window needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from renga.links.parallel.spatial.grid import Box
from renga.utils.conv import get_conv_outsize, get_deconv_outsize

Extents = tuple[int, ...]


class SpatialWindow(NamedTuple):
    """A window that slides over an image.

    Output ``o`` sees inputs ``o stride - pad + k dilate`` for ``k`` in
    ``range(ksize)``, along each axis. Of two images that a window joins, ``inputs``
    are always the larger: those of a convolution, the outputs of its transpose.
    """

    ksize: Extents
    stride: Extents
    pad: Extents
    dilate: Extents

    @classmethod
    def of(
        cls,
        ksize: Any,
        stride: Any = None,
        pad: Any = 0,
        dilate: Any = 1,
        axes: int = 2,
    ) -> SpatialWindow:
        """A window from numbers, or one for each axis; stride None is ksize."""
        stride = ksize if stride is None else stride
        return cls(*(_each(x, axes) for x in (ksize, stride, pad, dilate)))

    def reach(self, axis: int) -> int:
        """How far a window reaches, from the first input it sees to the last."""
        return (self.ksize[axis] - 1) * self.dilate[axis] + 1

    def out_extents(self, extents: Sequence[int], cover_all: bool = False) -> Extents:
        """The extents of the outputs."""
        geometry = zip(extents, self.ksize, self.stride, self.pad, self.dilate)
        return tuple(
            get_conv_outsize(n, k, s, p, cover_all, d) for n, k, s, p, d in geometry
        )

    def in_extents(self, extents: Sequence[int], cover_all: bool = False) -> Extents:
        """The extents of the smallest inputs that have such outputs."""
        geometry = zip(extents, self.ksize, self.stride, self.pad, self.dilate)
        return tuple(
            get_deconv_outsize(n, k, s, p, cover_all, d) for n, k, s, p, d in geometry
        )

    def inputs_of(self, outputs: Box) -> Box:
        """What the outputs, of which there are some, see, padding included."""
        return tuple(
            range(part.start * s - p, (part.stop - 1) * s - p + self.reach(i))
            for i, (part, s, p) in enumerate(zip(outputs, self.stride, self.pad))
        )

    def outputs_around(self, inputs: Box) -> Box:
        """The outputs that see some of the inputs, as if there were some everywhere.

        Where strides leave gaps between windows, also the last one that begins at or
        before the first of the inputs.
        """
        parts = []
        for i, (part, s, p) in enumerate(zip(inputs, self.stride, self.pad)):
            first = -((self.reach(i) - 1 - part.start - p) // s)
            first = min(first, (part.start + p) // s)
            parts.append(range(first, (part.stop - 1 + p) // s + 1))
        return tuple(parts)

    def align(self, axis: int, xs: range, ys: range) -> tuple[range, range, int] | None:
        """What inputs and outputs have to do with each other; None for nothing.

        Returns:
            The inputs that some of the outputs see, those outputs, and how far before
            the first of these inputs the first of their windows begins.
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


def _each(x: Any, axes: int) -> Extents:
    values = tuple(x) if hasattr(x, "__getitem__") else (x,) * axes
    if len(values) != axes:
        raise ValueError(f"window: expected one value for each of {axes} axes, got {x}")
    return values
