"""Reading of ``.caffemodel`` files."""

from __future__ import annotations

import math
from typing import Any

import numpy

from renga.links.caffe.messages import NET, OLD_TYPES
from renga.links.caffe.wire import Message


def read_layers(path: str) -> list[Any]:
    """The layers of a file, old ones with their types' new names.

    Raises: ValueError where the file is not a network of Caffe's.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        net = Message(NET, memoryview(data))
    except ValueError as error:
        raise ValueError(f"{path}: expected a caffemodel: {error}") from None
    if net.layer:
        return net.layer
    for layer in net.layers:
        layer.type = OLD_TYPES.get(layer.type, f"number {layer.type}")
    return net.layers


def read_blobs(path: str) -> dict[str, list[numpy.ndarray]]:
    """The weights of every layer of a file, by its name."""
    return {layer.name: blobs_of(layer) for layer in read_layers(path)}


def blobs_of(layer: Any) -> list[numpy.ndarray]:
    """The weights of a layer; old ones have four axes, the first perhaps 1.

    Raises: ValueError where the number of values is not that of the shape.
    """
    return [_array(layer.name, blob) for blob in layer.blobs]


def _array(name: str, blob: Any) -> numpy.ndarray:
    values = blob.data if len(blob.data) else blob.double_data
    shape = tuple(blob.shape.dim)
    if "shape" not in blob.present:
        shape = (blob.num, blob.channels, blob.height, blob.width)
    if math.prod(shape) != len(values):
        raise ValueError(
            f"layer {name}: expected values of {shape}, got {len(values)} of them"
        )
    return values.reshape(shape).astype(numpy.float32)
