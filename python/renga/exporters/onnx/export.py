"""Models as ONNX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Callable

import numpy

from renga.core.types import Path
from renga.exporters.onnx.batches import for_any_batch
from renga.exporters.onnx.recording import Recording, each
from renga.serializers.atomic import atomic_write

if TYPE_CHECKING:
    import onnx


def export(
    model: Callable[..., object],
    args: object,
    filename: Path | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = False,
) -> onnx.ModelProto:
    """The graph that ``model(*args)`` computes, as an ``onnx.ModelProto``.

    The model, a link or a function, is run in test mode on the given arrays and its
    operations are recorded: shapes are those of these arrays. A second run, with
    other values, shows whether numbers that the model reads from arrays would be
    wrong as constants. Copies of the model are run, so that states stay as they are.
    Parameters are named as in the link, with dots. With ``filename`` the graph is
    saved.

    >>> import numpy, renga.links as L
    >>> from renga.exporters.onnx import export
    >>> proto = export(L.Linear(4, 3), numpy.zeros((2, 4), numpy.float32))
    >>> [node.op_type for node in proto.graph.node]
    ['Gemm', 'Identity']

    Args:
        args: an array, a tuple or a list of arrays, or a dictionary of keywords.
        dynamic_batch: the first axis of every input is the batch, and the graph takes
            batches of any size. The model is run with one and two examples more.

    Raises:
        NotImplementedError: an operation has no counterpart in ONNX, or a constant
            depends on the values of the inputs or the size of the batch.
        TypeError: an input is no array, or an output no Variable.
        ValueError: an input has no batch axis, or no example; names are too few; ranks
            compute the model together.
        ImportError: the package onnx is not installed.
    """
    import onnx

    recording = Recording(model, args, input_names, output_names)
    proto = recording.checked_graph()
    if dynamic_batch:
        larger = each(args, _with_one_more)
        sizes = [proto]
        sizes += map(recording.graph, (larger, each(larger, _with_one_more)))
        proto = for_any_batch(sizes)
    for node in proto.graph.node:
        node.ClearField("doc_string")  # files and lines, for errors
    onnx.checker.check_model(proto, full_check=True)
    if filename is not None:
        with atomic_write(filename) as file:
            file.write(proto.SerializeToString())
    return proto


def _with_one_more(x: numpy.ndarray) -> numpy.ndarray:
    """The first example once more at the end."""
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(
            f"export: expected inputs with a batch axis and an example, got {x.shape}"
        )
    return numpy.concatenate([x, x[:1]])
