"""Layers by what they compute, move, store and send for a sample."""

from __future__ import annotations

from typing import NamedTuple

from renga.parallel.plan.costs import Device
from renga.parallel.plan.graph import Graph

# A step without recomputation costs so many forward passes: a backward pass computes
# two products for each one.
PASSES = 3


class Layer(NamedTuple):
    """A layer's forward pass for a sample.

    Args:
        flops: of products, which tensor-parallel ranks share.
        moved: bytes that its other functions read and write; they are shared, too.
        parameters: their number.
        output: bytes that the next layer reads.
        whole: bytes that every tensor-parallel rank moves.
        summed: bytes that tensor-parallel ranks add up in a pass.
        sums: in how many parts, one after the other.
        halo: bytes of a row of its input, and of a column, that a neighbour needs.
        recomputed: whether a job that recomputes runs it again.
    """

    name: str
    flops: float
    moved: float
    parameters: int
    output: float
    whole: float = 0.0
    summed: float = 0.0
    sums: int = 1
    halo: float = 0.0
    recomputed: bool = True

    def seconds(self, device: Device, tensor: int = 1) -> float:
        """The time of a sample: of products, then of memory."""
        moved = self.moved / tensor + self.whole
        return self.flops / tensor / device.flops + moved / device.bandwidth


def layers_of(graph: Graph, itemsize: int = 4) -> list[Layer]:
    """The operations of a described network as layers."""
    found = []
    for op in graph.operations:
        if op.kind == "input":
            continue
        samples = op.extents[0]
        is_product = op.parameters > 0 or op.shared is not None
        output = itemsize * op.size / samples
        moved = itemsize * (op.size + op.input_size) / samples
        halo = 0.0
        if op.kind in ("convolution", "pooling"):
            rows = max(map(int, op.detail.partition("/")[0].split("x"))) - 1
            channels, height = op.inputs[0].extents[1:3]
            halo = itemsize * channels * height * rows / 2
        found.append(
            Layer(
                op.name,
                op.flops / samples * is_product,
                moved,
                op.parameters,
                output,
                # An all-gather of outputs is half of a sum.
                summed=output / 2 if is_product else 0.0,
                halo=halo,
            )
        )
    return found


def transformer(
    blocks: int,
    width: int,
    length: int,
    words: int,
    heads: int,
    itemsize: int = 2,
    has_sharded_norms: bool = False,
    attention: str = "stored",
    loss_itemsize: int = 4,
) -> list[Layer]:
    """A GPT or BERT of so many blocks, for sequences of ``length``.

    Products are those of Megatron-LM's formula: 24 s h² (1 + s / 6h) in a block, and
    2 s h V of the output layer. Every other function reads and writes its arrays once.
    Layer normalizations (twice 2 values of a feature) and the sums of biases, dropouts
    and residuals (twice 3 values and a mask) are not shared by tensor-parallel ranks,
    unless they are sharded by positions. Shared are biases of 3 h and GELU of 4 h
    features, the transposed context, and a softmax and a dropout for each pair of
    positions and head: their results are ``"stored"``, computed ``"again"`` in the
    backward pass, or never in memory (``"fused"``). The logits are written, and their
    softmax has ``loss_itemsize`` bytes a number. Only blocks are recomputed. Ranks
    with a part of the words each add up what the embedding gives in the forward pass
    and the gradient of what the output layer reads in the backward pass.

    Source: Narayanan et al., Efficient large-scale language model training on GPU
    clusters using Megatron-LM, 2021.
    """
    features = itemsize * length * width
    whole = (2 * 2 + 2 * 3) * features + 2 * length * width
    shared = (3 * 2 + 4 * 2 + 2) * features
    passes = {"stored": 1, "again": (PASSES + 1) / PASSES, "fused": 0}[attention]
    scores = passes * heads * length**2 * (4 * itemsize + 1)
    if has_sharded_norms:
        shared, whole = shared + whole, 0
    block = Layer(
        "block",
        24 * length * width**2 + 4 * length**2 * width,
        shared + scores,
        12 * width**2 + 13 * width,
        features,
        whole,
        2 * features,
        2,
    )
    embedding = Layer(
        "embedding", 0.0, 2 * features, words * width, features, recomputed=False
    )
    # They are cast if the loss has other bytes, and the softmax reads and writes them.
    casts = loss_itemsize != itemsize
    logits = (itemsize + (2 + casts) * loss_itemsize) * length * words
    output = Layer(
        "output",
        2 * length * width * words,
        logits,
        0,
        features,
        summed=features,
        recomputed=False,
    )
    return [embedding, *[block] * blocks, output]
