"""The six networks of the FlexFlow paper, as graphs at full size.

They hold shapes only. Batches are the paper's: 64 samples, 256 for AlexNet, and 40 time
steps in recurrent networks.
"""

from __future__ import annotations

from collections.abc import Callable

from renga.parallel.plan.graph import Graph
from renga.parallel.plan.networks.images import alexnet, inception_v3, resnet, vgg16
from renga.parallel.plan.networks.sequences import (
    nmt,
    rnn_classifier,
    rnn_language_model,
)

NETWORKS: dict[str, Callable[[], Graph]] = {
    "AlexNet": alexnet,
    "Inception-v3": inception_v3,
    "ResNet-101": resnet,
    "RNNTC": rnn_classifier,
    "RNNLM": rnn_language_model,
    "NMT": nmt,
}

__all__ = [
    "NETWORKS",
    "alexnet",
    "inception_v3",
    "nmt",
    "resnet",
    "rnn_classifier",
    "rnn_language_model",
    "vgg16",
]
