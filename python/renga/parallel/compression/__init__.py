"""Compression of gradients between nodes.

``create_multi_node_optimizer(..., compression=compression.TopK(0.01))`` sends gradients
in fewer bytes. A :class:`Compressor` is one file, or shares it with its kind.
"""

from renga.parallel.compression.auto import Auto
from renga.parallel.compression.compressor import Compressor
from renga.parallel.compression.dgc import DGC
from renga.parallel.compression.hook import CompressionHook
from renga.parallel.compression.powersgd import PowerSGD
from renga.parallel.compression.quantization import QSGD, Cast, OneBit, TernGrad
from renga.parallel.compression.sparsification import RandomK, TopK
from renga.parallel.compression.state import State

__all__ = [
    "DGC",
    "QSGD",
    "Auto",
    "Cast",
    "CompressionHook",
    "Compressor",
    "OneBit",
    "PowerSGD",
    "RandomK",
    "State",
    "TernGrad",
    "TopK",
]
