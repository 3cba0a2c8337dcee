"""The sizes of layers, for both libraries."""

from collections.abc import Iterator

import numpy as np

# Filters, layers, and the ratio of dropout between them.
VGG_STAGES = [(64, 2, 0.3), (128, 2, 0.4), (256, 3, 0.4), (512, 3, 0.4), (512, 3, 0.4)]
# Channels, filters, kernel and stride.
DISCRIMINATOR = [(3, 64, 3, 1), (64, 128, 4, 2), (128, 128, 3, 1), (128, 256, 4, 2)]
DISCRIMINATOR += [(256, 256, 3, 1), (256, 512, 4, 2), (512, 512, 3, 1)]


def resnet20_blocks() -> Iterator[tuple[int, int, int]]:
    """Channels, filters and stride of each."""
    channels = 16
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        for k in range(3):
            yield channels, filters, stride if k == 0 else 1
            channels = filters


def graph_edges(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source, target and weight of each edge; 14 edges a node, as in ogbn-arxiv."""
    source, target = np.random.RandomState(0).randint(0, nodes, (2, 14 * nodes))
    degrees = np.bincount(np.concatenate([source, target]), minlength=nodes)
    weights = 1 / np.sqrt(degrees[source] * degrees[target])
    return source, target, weights.astype("f")[:, None]


def residual_3d_blocks() -> Iterator[tuple[int, int, int]]:
    """Channels, filters and stride of each."""
    channels = 64
    for filters in (64, 128, 256, 512):
        for _ in range(2):
            yield channels, filters, 1 + (filters > channels)
            channels = filters


def dilations() -> list[int]:
    """Those of a WaveNet's layers."""
    return [2**k for k in range(10)] * 2
