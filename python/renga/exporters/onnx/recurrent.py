"""ONNX nodes of recurrent layers, unrolled step by step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable

import numpy

from renga.exporters.onnx.registry import writes

# Called with the graph and the names of the gates' input terms, of their terms of the
# last output, and of the states; returns the names of the next states.
Step = Callable[[Any, str, str, "list[str]"], "list[str]"]


def _rows(graph: Any, x: Any, start: int, end: int) -> str:
    bounds = ([start], [end], [0])
    return graph.node("Slice", x, *(numpy.array(b, numpy.int64) for b in bounds))


def _parts(graph: Any, x: Any, sizes: Sequence[int], axis: int) -> list[str]:
    if len(sizes) == 1:
        return [graph.node("Identity", x)]
    cuts = numpy.array(sizes, numpy.int64)
    return graph.node("Split", x, cuts, axis=axis, outputs=len(sizes))


def _shaped(graph: Any, x: Any, shape: Sequence[int]) -> str:
    return graph.node("Reshape", x, numpy.array(shape, numpy.int64), allowzero=1)


def _cell(graph: Any, c: Any, a: str, i: str, f: str, o: str) -> tuple[str, str]:
    """The new cell and output of an LSTM."""
    i, f, o = (graph.node("Sigmoid", gate) for gate in (i, f, o))
    new = graph.node("Mul", graph.node("Tanh", a), i)
    c = graph.node("Add", new, graph.node("Mul", f, c))
    return c, graph.node("Mul", o, graph.node("Tanh", c))


@writes("lstm")
def _lstm(graph: Any, ys: Any, c_prev: Any, x: Any, hidden: Any) -> Sequence[str]:
    going, (_, width, *rest) = ys[1].shape[0], x.shape
    both = x if hidden is None else graph.node("Add", x, hidden)
    turns = _shaped(graph, both, (going, width // 4, 4, *rest))
    gates = _parts(graph, turns, [1] * 4, 2)
    gates = [_shaped(graph, gate, ys[1].shape) for gate in gates]
    c, h = _cell(graph, _rows(graph, c_prev, 0, going), *gates)
    unchanged = _rows(graph, c_prev, going, ys[0].shape[0])
    return [graph.node("Concat", c, unchanged, axis=0), h]


@writes("lstm_layer")
def _lstm_layer(
    graph: Any, ys: Any, x: Any, h: Any, c: Any, W: Any, lengths: Any, backwards: bool
) -> Sequence[str]:
    def step(graph: Any, inputs: str, hidden: str, states: list[str]) -> list[str]:
        gates = graph.node("Add", inputs, hidden)
        units = [h.shape[1]] * 4
        return list(_cell(graph, states[1], *_parts(graph, gates, units, 1)))[::-1]

    return _unrolled(graph, step, x, [h, c], [W], lengths, backwards)


@writes("gru_layer")
def _gru_layer(
    graph: Any, ys: Any, x: Any, h: Any, W: Any, b: Any, lengths: Any, backwards: bool
) -> Sequence[str]:
    def step(graph: Any, inputs: str, hidden: str, states: list[str]) -> list[str]:
        units = [h.shape[1]] * 3
        xs, hs = (_parts(graph, gates, units, 1) for gates in (inputs, hidden))
        sums = (graph.node("Add", *pair) for pair in zip(xs[:2], hs))
        r, z = (graph.node("Sigmoid", gate) for gate in sums)
        inner = graph.node("Add", xs[2], graph.node("Mul", r, hs[2]))
        a = graph.node("Tanh", inner)
        unchanged = graph.node("Mul", z, graph.node("Sub", states[0], a))
        return [graph.node("Add", a, unchanged)]

    return _unrolled(graph, step, x, [h], [W, b], lengths, backwards)


@writes("rnn_layer")
def _rnn_layer(
    graph: Any,
    ys: Any,
    x: Any,
    h: Any,
    W: Any,
    lengths: Any,
    backwards: bool,
    activation: str,
) -> Sequence[str]:
    def step(graph: Any, inputs: str, hidden: str, states: list[str]) -> list[str]:
        return [graph.node(activation.title(), graph.node("Add", inputs, hidden))]

    return _unrolled(graph, step, x, [h], [W], lengths, backwards)


def _unrolled(
    graph: Any,
    step: Step,
    x: Any,
    states: list[Any],
    weights: list[Any],
    lengths: Sequence[int],
    backwards: bool,
) -> list[str]:
    """The outputs of all steps and the last states."""
    samples = states[0].shape[0]
    steps = _parts(graph, x, lengths, 0)
    ys = [""] * len(lengths)
    for t in range(len(lengths))[:: -1 if backwards else 1]:
        going = [_rows(graph, state, 0, lengths[t]) for state in states]
        waiting = [_rows(graph, state, lengths[t], samples) for state in states]
        hidden = graph.node("Gemm", going[0], *weights, transB=1)
        going = step(graph, steps[t], hidden, going)
        pairs = zip(going, waiting)
        states = [graph.node("Concat", *pair, axis=0) for pair in pairs]
        ys[t] = going[0]
    return [graph.node("Concat", *ys, axis=0), *states]


@writes("transpose_sequence")
def _transpose_sequence(graph: Any, ys: Any, xs: Any) -> Sequence[str]:
    steps: list[list[str]] = [[] for _ in ys]
    for x in xs:
        for t, step in enumerate(itertools.islice(steps, x.shape[0])):
            step.append(_rows(graph, x, t, t + 1))
    return [graph.node("Concat", *step, axis=0) for step in steps]
