"""Convolutional networks as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from renga.parallel.plan.graph import Graph
from renga.parallel.plan.layers import (
    combine,
    concat,
    convolution,
    linear,
    loss,
    pooling,
    source,
)

# A convolution of a branch: channels, kernel, stride and pad; or a pooling of a window.
_Layer = tuple[int, Union[int, tuple[int, int]], int, Union[int, tuple[int, int]]]


def alexnet(batch: int = 256) -> Graph:
    """AlexNet for images of 224 × 224 pixels (Krizhevsky, 2014)."""
    graph = Graph("AlexNet")
    x = source(graph, "images", (batch, 3, 224, 224))
    x = convolution(graph, "conv1", x, 64, 11, 4, 2)
    x = pooling(graph, "pool1", x, 3, 2)
    x = convolution(graph, "conv2", x, 192, 5, 1, 2)
    x = pooling(graph, "pool2", x, 3, 2)
    for i, channels in enumerate((384, 256, 256), 3):
        x = convolution(graph, f"conv{i}", x, channels, 3, 1, 1)
    x = pooling(graph, "pool5", x, 3, 2)
    for i, size in enumerate((4096, 4096, 1000), 6):
        x = linear(graph, f"fc{i}", x, size)
    loss(graph, "loss", x)
    return graph


def vgg16(batch: int = 64) -> Graph:
    """VGG-16 (Simonyan and Zisserman, 2014)."""
    graph = Graph("VGG-16")
    x = source(graph, "images", (batch, 3, 224, 224))
    for i, (size, number) in enumerate(
        ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1
    ):
        for j in range(number):
            x = convolution(graph, f"conv{i}_{j + 1}", x, size, 3, 1, 1)
        x = pooling(graph, f"pool{i}", x, 2, 2)
    for i, size in enumerate((4096, 4096, 1000), 6):
        x = linear(graph, f"fc{i}", x, size)
    loss(graph, "loss", x)
    return graph


def resnet(
    batch: int = 64, blocks: Sequence[int] = (3, 4, 23, 3), name: str = "ResNet-101"
) -> Graph:
    """A residual network of bottlenecks (He et al., 2016).

    Args:
        blocks: bottlenecks of each stage: (3, 4, 6, 3) is ResNet-50.
    """
    graph = Graph(name)
    x = source(graph, "images", (batch, 3, 224, 224))
    x = convolution(graph, "conv1", x, 64, 7, 2, 3)
    x = pooling(graph, "pool1", x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            at = f"res{stage + 2}_{i + 1}"
            h = convolution(graph, f"{at}/conv1", x, width, 1)
            h = convolution(graph, f"{at}/conv2", h, width, 3, stride, 1)
            h = convolution(graph, f"{at}/conv3", h, 4 * width, 1)
            if i == 0:
                x = convolution(graph, f"{at}/shortcut", x, 4 * width, 1, stride)
            x = combine(graph, f"{at}/add", [h, x])
    x = pooling(graph, "pool5", x, 7, 7)
    x = linear(graph, "fc", x, 1000)
    loss(graph, "loss", x)
    return graph


def inception_v3(batch: int = 64) -> Graph:
    """Inception-v3 without its auxiliary classifier (Szegedy et al., 2016)."""
    graph = Graph("Inception-v3")
    x = source(graph, "images", (batch, 3, 299, 299))
    stem: list[_Layer] = [(32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1)]
    for i, layer in enumerate(stem):
        x = convolution(graph, f"stem{i + 1}", x, *layer)
    x = pooling(graph, "pool1", x, 3, 2)
    x = convolution(graph, "stem4", x, 80, 1)
    x = convolution(graph, "stem5", x, 192, 3)
    x = pooling(graph, "pool2", x, 3, 2)
    for i, channels in enumerate((32, 64, 64)):
        x = _block_35(graph, f"a{i + 1}", x, channels)
    x = _reduction_35(graph, "b", x)
    for i, channels in enumerate((128, 160, 160, 192)):
        x = _block_17(graph, f"c{i + 1}", x, channels)
    x = _reduction_17(graph, "d", x)
    for i in range(2):
        x = _block_8(graph, f"e{i + 1}", x)
    x = pooling(graph, "pool3", x, 8, 8)
    x = linear(graph, "fc", x, 1000)
    loss(graph, "loss", x)
    return graph


def _chain(graph: Graph, name: str, x: int, layers: Sequence[_Layer]) -> int:
    for i, layer in enumerate(layers):
        x = convolution(graph, f"{name}_{i + 1}", x, *layer)
    return x


def _pooled(graph: Graph, name: str, x: int, channels: int) -> int:
    x = pooling(graph, f"{name}_pool", x, 3, 1, 1)
    return convolution(graph, f"{name}_1x1", x, channels, 1)


def _block_35(graph: Graph, name: str, x: int, channels: int) -> int:
    branches = [
        _chain(graph, f"{name}/1x1", x, [(64, 1, 1, 0)]),
        _chain(graph, f"{name}/5x5", x, [(48, 1, 1, 0), (64, 5, 1, 2)]),
        _chain(graph, f"{name}/3x3", x, [(64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 1, 1)]),
        _pooled(graph, f"{name}/pool", x, channels),
    ]
    return concat(graph, f"{name}/concat", branches)


def _reduction_35(graph: Graph, name: str, x: int) -> int:
    branches = [
        _chain(graph, f"{name}/3x3", x, [(384, 3, 2, 0)]),
        _chain(graph, f"{name}/dbl", x, [(64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 2, 0)]),
        pooling(graph, f"{name}/pool", x, 3, 2),
    ]
    return concat(graph, f"{name}/concat", branches)


def _block_17(graph: Graph, name: str, x: int, c: int) -> int:
    row: _Layer = (c, (1, 7), 1, (0, 3))
    column: _Layer = (c, (7, 1), 1, (3, 0))
    last_row: _Layer = (192, (1, 7), 1, (0, 3))
    last_column: _Layer = (192, (7, 1), 1, (3, 0))
    double = [(c, 1, 1, 0), column, row, column, last_row]
    branches = [
        _chain(graph, f"{name}/1x1", x, [(192, 1, 1, 0)]),
        _chain(graph, f"{name}/7x7", x, [(c, 1, 1, 0), row, last_column]),
        _chain(graph, f"{name}/dbl", x, double),
        _pooled(graph, f"{name}/pool", x, 192),
    ]
    return concat(graph, f"{name}/concat", branches)


def _reduction_17(graph: Graph, name: str, x: int) -> int:
    seven: list[_Layer] = [
        (192, 1, 1, 0),
        (192, (1, 7), 1, (0, 3)),
        (192, (7, 1), 1, (3, 0)),
        (192, 3, 2, 0),
    ]
    branches = [
        _chain(graph, f"{name}/3x3", x, [(192, 1, 1, 0), (320, 3, 2, 0)]),
        _chain(graph, f"{name}/7x7", x, seven),
        pooling(graph, f"{name}/pool", x, 3, 2),
    ]
    return concat(graph, f"{name}/concat", branches)


def _block_8(graph: Graph, name: str, x: int) -> int:
    single = _chain(graph, f"{name}/3x3", x, [(384, 1, 1, 0)])
    double = _chain(graph, f"{name}/dbl", x, [(448, 1, 1, 0), (384, 3, 1, 1)])
    branches = [_chain(graph, f"{name}/1x1", x, [(320, 1, 1, 0)])]
    for at, h in (("3x3", single), ("dbl", double)):
        branches.append(
            convolution(graph, f"{name}/{at}_row", h, 384, (1, 3), 1, (0, 1))
        )
        branches.append(
            convolution(graph, f"{name}/{at}_col", h, 384, (3, 1), 1, (1, 0))
        )
    branches.append(_pooled(graph, f"{name}/pool", x, 192))
    return concat(graph, f"{name}/concat", branches)
