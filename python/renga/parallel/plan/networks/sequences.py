"""Recurrent networks as graphs, unrolled in time."""

from __future__ import annotations

from renga.parallel.plan.graph import Graph, Operation, along, whole
from renga.parallel.plan.layers import concat, embedding, linear, loss, lstm, source


def rnn_classifier(
    batch: int = 64, steps: int = 40, layers: int = 4, size: int = 1024
) -> Graph:
    """RNNTC: LSTM layers, of whose last output a text's class is predicted."""
    graph = Graph("RNNTC")
    outputs = _stack(graph, "", batch, steps, layers, size, 10_000, [None] * layers)
    loss(graph, "loss", linear(graph, "classes", outputs[-1][-1], 2))
    return graph


def rnn_language_model(
    batch: int = 64,
    steps: int = 40,
    layers: int = 2,
    size: int = 2048,
    words: int = 10_000,
) -> Graph:
    """RNNLM: LSTM layers that predict the next word in each step."""
    graph = Graph("RNNLM")
    outputs = _stack(graph, "", batch, steps, layers, size, words, [None] * layers)
    for t, h in enumerate(outputs[-1]):
        loss(graph, f"loss {t}", linear(graph, f"words {t}", h, words, "words"))
    return graph


def nmt(
    batch: int = 64,
    steps: int = 40,
    layers: int = 2,
    size: int = 1024,
    words: int = 32_000,
) -> Graph:
    """NMT: an encoder and a decoder of LSTM layers with attention between them."""
    graph = Graph("NMT")
    start: list[int | None] = [None] * layers
    encoded = _stack(graph, "encoder ", batch, steps, layers, size, words, start)
    start = [outputs[-1] for outputs in encoded]
    decoded = _stack(graph, "decoder ", batch, steps, layers, size, words, start)
    for t, h in enumerate(decoded[-1]):
        context = _attention(graph, f"attention {t}", h, encoded[-1])
        x = concat(graph, f"concat {t}", [h, context])
        x = linear(graph, f"combine {t}", x, size, "combine")
        x = linear(graph, f"words {t}", x, words, "words")
        loss(graph, f"loss {t}", x)
    return graph


def _stack(
    graph: Graph,
    name: str,
    batch: int,
    steps: int,
    layers: int,
    size: int,
    words: int,
    start: list[int | None],
) -> list[list[int]]:
    """Embedded words and LSTM layers; the outputs of each layer in each step."""
    states = list(start)
    outputs: list[list[int]] = [[] for _ in range(layers)]
    for t in range(steps):
        x = source(graph, f"{name}word {t}", (batch, 1))
        x = embedding(graph, f"{name}embedding {t}", x, words, size, f"{name}embedding")
        for i in range(layers):
            key = f"{name}lstm {i}"
            x = lstm(graph, f"{key} step {t}", x, states[i], size, key)
            states[i] = x
            outputs[i].append(x)
    return outputs


def _attention(graph: Graph, name: str, query: int, keys: list[int]) -> int:
    """The mean of encoded states, weighted by their products with a decoded one.

    The states are gathered once, and read by all steps of the decoder.
    """
    memory = next(
        (i for i, op in enumerate(graph.operations) if op.name == "memory"), None
    )
    n, size = graph.extents(query)
    if memory is None:
        states = tuple(graph.read(key, [along(0), along(2)]) for key in keys)
        extents = (n, len(keys), size)
        memory = graph.add(Operation("memory", "stack", extents, "S.A", states))
    reads = (
        graph.read(query, [along(0), whole()]),
        graph.read(memory, [along(0), whole(), whole()]),
    )
    flops = 4.0 * n * size * len(keys)
    return graph.add(Operation(name, "attention", (n, size), "S.", reads, flops=flops))
