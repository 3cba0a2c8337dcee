"""Reads ``.caffemodel`` files."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga.links.caffe.messages import NET, OLD_TYPES
from renga.links.caffe.wire import ProtobufMessage
from renga.serializers.files import File as Path, name_of, open_to_read, parsing


def read_layers(path: Path) -> list[ProtobufMessage]:
    """The layers of a file; old ones get the new names of their types.

    Raises:
        FileFormatError: the file is not a Caffe network.
    """
    with open_to_read(path) as file:
        data = file.read()
    with parsing(f"{name_of(path)}: expected a caffemodel", path):
        net = ProtobufMessage(NET, memoryview(data))
    if net.layer:
        return net.layer
    for layer in net.layers:
        layer.type = OLD_TYPES.get(layer.type, f"number {layer.type}")
    return net.layers


def read_blobs(path: Path) -> dict[str, list[numpy.ndarray]]:
    """The weights of every layer of a file, by its name."""
    layers = read_layers(path)
    with parsing(f"{name_of(path)}: expected a layer's weights", path):
        return {layer.name: blobs_of(layer, required=0) for layer in layers}


def blobs_of(
    layer: ProtobufMessage, bias: bool = False, required: int = 1
) -> list[numpy.ndarray]:
    """The weights of a layer; old ones have four axes, of which the first may be 1.

    Raises:
        ValueError: the number of values does not fit the shape, or there are fewer
            blobs than ``required`` (one more with a ``bias``).
    """
    arrays = [_array(layer.name, blob) for blob in layer.blobs]
    if len(arrays) < required + bias:
        raise ValueError(
            f"layer {layer.name}: expected {required + bias} blobs, got {len(arrays)}"
        )
    return arrays


def _array(name: str, blob: Any) -> numpy.ndarray:
    values = blob.data if len(blob.data) else blob.double_data
    shape = tuple(blob.shape.dim)
    if "shape" not in blob.present:
        shape = (blob.num, blob.channels, blob.height, blob.width)
    if min(shape, default=0) < 0 or math.prod(shape) != len(values):
        raise ValueError(
            f"layer {name}: expected values of {shape}, got {len(values)} of them"
        )
    return values.reshape(shape).astype(numpy.float32)
