"""ONNX nodes of softmax cross-entropy."""

from __future__ import annotations

from typing import Any

import numpy

from renga.exporters.onnx.registry import writes


def _negative_log(
    graph: Any, x: Any, t: Any, class_weight: Any, ignore_label: int
) -> str:
    """The loss of each sample; 0 where it is ignored."""
    return graph.node(
        "NegativeLogLikelihoodLoss",
        graph.node("LogSoftmax", x, axis=1),
        t,
        *([] if class_weight is None else [class_weight]),
        ignore_index=ignore_label,
        reduction="none",
    )


@writes("softmax_nll")
def _softmax_nll(
    graph: Any, ys: Any, x: Any, t: Any, class_weight: Any, ignore_label: int
) -> str:
    return _negative_log(graph, x, t, class_weight, ignore_label)


@writes("softmax_cross_entropy")
def _softmax_cross_entropy(
    graph: Any,
    ys: Any,
    x: Any,
    t: Any,
    normalize: bool,
    class_weight: Any,
    ignore_label: int,
) -> str:
    losses = _negative_log(graph, x, t, class_weight, ignore_label)
    if normalize:
        counted = graph.node(
            "Not", graph.node("Equal", t, numpy.asarray(ignore_label, t.dtype))
        )
        ones = graph.node("Cast", counted, to=_float(x))
        count = graph.node("ReduceSum", ones, keepdims=0)
        count = graph.node("Max", count, numpy.ones((), x.dtype))
    else:
        samples = graph.node("Shape", x, start=0, end=1)
        count = graph.node("Cast", graph.node("Squeeze", samples), to=_float(x))
    total = graph.node("ReduceSum", losses, keepdims=0)
    return graph.node("Div", total, count)


def _float(x: Any) -> int:
    import onnx

    return onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
