"""Compression of gradients between nodes.

``create_multi_node_optimizer(..., compression=compression.TopK(0.01))`` sends gradients
in fewer bytes. A :class:`Compressor` is one file, or shares it with its kind.
"""

from renga.distributed.compression.auto import Auto
from renga.distributed.compression.cast import Cast
from renga.distributed.compression.compressor import Compressor
from renga.distributed.compression.dgc import DGC
from renga.distributed.compression.hook import CompressionHook
from renga.distributed.compression.powersgd import PowerSGD
from renga.distributed.compression.quantization import QSGD, TernGrad
from renga.distributed.compression.signs import OneBit
from renga.distributed.compression.sparsification import RandomK, TopK
from renga.distributed.compression.state import State

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
