"""Layers as operations of a graph, by their shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from renga.parallel.plan.graph import Graph, Operation, along, reduced, whole
from renga.utils.conv import get_conv_outsize

Pair = tuple[int, int]


def source(graph: Graph, name: str, extents: Sequence[int]) -> int:
    """What the network is called with, split by samples; every rank has its own."""
    axes = "S" + "." * (len(extents) - 1)
    return graph.add(Operation(name, "input", tuple(extents), axes))


def convolution(
    graph: Graph,
    name: str,
    x: int,
    channels: int,
    kernel: int | Pair,
    stride: int = 1,
    pad: int | Pair = 0,
) -> int:
    """A convolution with bias, and the activation behind it."""
    n, inputs, *image = graph.extents(x)
    kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
    pad = (pad, pad) if isinstance(pad, int) else pad
    extents = [get_conv_outsize(e, k, stride, p) for e, k, p in zip(image, kernel, pad)]
    weights = inputs * channels * math.prod(kernel)
    windows = [
        along(2 + i, stride=stride, pad=pad[i], reach=kernel[i]) for i in range(2)
    ]
    return graph.add(
        Operation(
            name,
            "convolution",
            (n, channels, *extents),
            "SPAA",
            (graph.read(x, [along(0), reduced(), *windows]),),
            reduction=inputs,
            flops=2.0 * n * weights * math.prod(extents),
            parameters=weights + channels,
            detail=f"{kernel[0]}x{kernel[1]}/{stride}+{pad[0]}+{pad[1]}",
        )
    )


def pooling(
    graph: Graph, name: str, x: int, kernel: int, stride: int, pad: int = 0
) -> int:
    """Maxima or means of windows."""
    n, channels, *image = graph.extents(x)
    extents = [get_conv_outsize(e, kernel, stride, pad) for e in image]
    windows = [along(2 + i, stride=stride, pad=pad, reach=kernel) for i in range(2)]
    return graph.add(
        Operation(
            name,
            "pooling",
            (n, channels, *extents),
            "SAAA",
            (graph.read(x, [along(0), along(1), *windows]),),
            flops=float(n * channels * math.prod(extents) * kernel**2),
            detail=f"{kernel}/{stride}+{pad}",
        )
    )


def linear(
    graph: Graph, name: str, x: int, size: int, shared: str | None = None
) -> int:
    """A fully connected layer; images are flattened."""
    n, channels, *image = graph.extents(x)
    pixels = math.prod(image)
    features = channels * pixels
    axes = [along(0), reduced(pixels), *(whole() for _ in image)]
    return graph.add(
        Operation(
            name,
            "linear",
            (n, size),
            "SP",
            (graph.read(x, axes),),
            reduction=features,
            flops=2.0 * n * features * size,
            parameters=(features + 1) * size,
            shared=shared,
        )
    )


def combine(graph: Graph, name: str, inputs: Sequence[int]) -> int:
    """The sum of outputs with the same shape."""
    extents = graph.extents(inputs[0])
    axes = "S" + "A" * (len(extents) - 1)
    reads = [graph.read(x, [along(i) for i in range(len(extents))]) for x in inputs]
    flops = float(len(inputs) * math.prod(extents))
    return graph.add(Operation(name, "add", extents, axes, tuple(reads), flops=flops))


def concat(graph: Graph, name: str, inputs: Sequence[int], axis: int = 1) -> int:
    """Outputs one after the other along an axis."""
    shapes = [graph.extents(x) for x in inputs]
    extents = list(shapes[0])
    extents[axis] = sum(shape[axis] for shape in shapes)
    reads, offset = [], 0
    for x, shape in zip(inputs, shapes):
        axes = [along(i) for i in range(len(extents))]
        axes[axis] = along(axis, offset=offset)
        reads.append(graph.read(x, axes))
        offset += shape[axis]
    kinds = "S" + "A" * (len(extents) - 1)
    return graph.add(Operation(name, "concat", tuple(extents), kinds, tuple(reads)))


def embedding(graph: Graph, name: str, x: int, words: int, size: int, key: str) -> int:
    """A row of a table for each sample."""
    n = graph.extents(x)[0]
    return graph.add(
        Operation(
            name,
            "embedding",
            (n, size),
            "SP",
            (graph.read(x, [along(0), whole()]),),
            parameters=words * size,
            shared=key,
        )
    )


def lstm(
    graph: Graph, name: str, x: int, before: int | None, size: int, key: str
) -> int:
    """A time step of a layer: the outputs from those below and those before."""
    n, features = graph.extents(x)
    reads = [graph.read(x, [along(0), whole()])]
    if before is not None:
        reads.append(graph.read(before, [along(0), whole()]))
    products = 4 * size * (features + size)
    return graph.add(
        Operation(
            name,
            "lstm",
            (n, size),
            "SP",
            tuple(reads),
            flops=2.0 * n * products,
            parameters=products + 4 * size,
            shared=key,
        )
    )


def loss(graph: Graph, name: str, x: int) -> int:
    """Softmax cross entropy of each sample."""
    n, classes = graph.extents(x)
    read = graph.read(x, [along(0), whole()])
    return graph.add(
        Operation(name, "loss", (n, 1), "S.", (read,), flops=4.0 * n * classes)
    )
