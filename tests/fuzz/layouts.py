"""The same elements in memory in many ways."""

from __future__ import annotations

import dataclasses

import numpy

from .draw import Draw, Operand

GUARD = 64  # bytes before and after every array, which must stay unchanged


@dataclasses.dataclass
class Layout:
    """How the elements of an array lie.

    Attributes:
        order: The axes from the widest stride to the narrowest.
        steps: Per axis, in elements of a dense array: 0 repeats one element.
        swapped: The bytes of an element are in the other order.
        offset: Bytes by which the elements miss their alignment.
        writeable: Whether NumPy lets one write.
    """

    order: tuple[int, ...]
    steps: tuple[int, ...]
    swapped: bool = False
    offset: int = 0
    writeable: bool = True

    @property
    def plain(self) -> bool:
        in_order = self.order == tuple(range(len(self.order)))
        dense = in_order and all(step == 1 for step in self.steps)
        return dense and not self.swapped and not self.offset and self.writeable

    def text(self) -> str:
        flags = ["swapped"] * self.swapped + ["readonly"] * (not self.writeable)
        flags += [f"offset {self.offset}"] * (self.offset > 0)
        if self.order != tuple(range(len(self.order))):
            flags.append(f"order {self.order}")
        if any(step != 1 for step in self.steps):
            flags.append(f"steps {self.steps}")
        return " ".join(flags)


def plain(x: Operand) -> Layout:
    ndim = x.value.ndim
    return Layout(tuple(range(ndim)), (1,) * ndim)


def choose(g: Draw, x: Operand) -> Layout:
    """A random layout; repeats elements of ``x`` where it broadcasts them."""
    layout = plain(x)
    ndim = x.value.ndim
    if g.chance(0.3):
        return layout
    if ndim and g.chance(0.4):
        layout.order = tuple(int(a) for a in g.rng.permutation(ndim))
    if ndim and g.chance(0.5):
        layout.steps = tuple(g.pick(1, 1, -1, 2, -2, 3) for _ in range(ndim))
    repeats = x.role in ("x", "constant") or (x.role == "target" and g.chance(0.1))
    if ndim and repeats and g.chance(0.15):
        axis = g.integer(0, ndim - 1)
        if x.value.shape[axis] > 0:
            repeat(x, axis)
            steps = list(layout.steps)
            steps[axis] = 0
            layout.steps = tuple(steps)
    layout.swapped = x.value.dtype.itemsize > 1 and g.chance(0.1)
    layout.offset = g.integer(1, 7) if g.chance(0.1) else 0
    layout.writeable = not g.chance(0.15)
    return layout


def repeat(x: Operand, axis: int) -> None:
    first = x.value.take([0], axis)
    x.value = numpy.ascontiguousarray(numpy.broadcast_to(first, x.value.shape))


def arrange(
    value: numpy.ndarray, layout: Layout
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The array, and the bytes that it lies in."""
    dtype = value.dtype.newbyteorder("S") if layout.swapped else value.dtype
    size, strides, first = dtype.itemsize, [0] * value.ndim, 0
    extent = 1
    for axis in reversed(layout.order):
        step = layout.steps[axis]
        strides[axis] = step * extent * size
        n = value.shape[axis]
        if step < 0 and n > 0:
            first -= (n - 1) * step * extent * size
        extent *= max(n, 1) * abs(step) if step else 1
    memory = numpy.full(extent * size + 2 * GUARD + 8, 0xA5, numpy.uint8)
    address = memory.ctypes.data + GUARD
    offset = GUARD + (-address) % 8 + layout.offset
    array = numpy.ndarray(value.shape, dtype, memory, offset + first, strides)
    array[...] = value
    array.flags.writeable = layout.writeable
    return array, memory
