"""Weights of published models, in Caffe files and npz files converted from them."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from renga.core.link import Link
from renga.core.types import Path
from renga.dataset.download import cache_or_load_file, download, get_dataset_directory
from renga.serializers import DictionarySerializer, NpzDeserializer, load_npz, save_npz
from renga.serializers.files import parsing

_FOLDER = "pfnet/chainer/models"


class Published(NamedTuple):
    """The published weights of a model."""

    name: str
    url: str
    # Whether the url is that of the file, or of a page about it.
    is_file: bool = True


def load(model: Any, path: Path) -> None:
    """Loads a file into a model: npz, ``.caffemodel``, or ``"auto"``, its own.

    Raises:
        OSError: the file cannot be downloaded; the message says where to put it.
        FileFormatError: the file is damaged.
    """
    path = os.fspath(path)
    if path.endswith(".caffemodel"):
        _load_caffe(model, path)
        return
    if path != "auto":
        load_npz(path, model)
        return
    folder = get_dataset_directory(_FOLDER)
    name = model.published.name

    def create(target: str) -> None:
        _load_caffe(model, _fetch(model.published, folder))
        save_npz(target, model, compression=False)

    cache_or_load_file(
        os.path.join(folder, name + ".npz"),
        create,
        lambda source: load_npz(source, model),
    )


def convert(model: Link, path: Path) -> None:
    """Writes the weights of a model as an npz file."""
    save_npz(path, model, compression=False)


def _fetch(published: Published, folder: str) -> str:
    path = os.path.join(folder, published.name + ".caffemodel")
    if published.is_file:
        return download([published.url], path)
    if not os.path.exists(path):
        raise OSError(
            "The pre-trained caffemodel does not exist. Please download it from "
            f"{published.url!r}, and put it at {path}"
        )
    return path


def _load_caffe(model: Any, path: str) -> None:
    """Copies the blobs of Caffe's layers to the links that ``model`` names."""
    # Imported late: few models are loaded from Caffe files.
    from renga.links.caffe.network import read_blobs

    blobs = read_blobs(path)
    saved = DictionarySerializer()
    saved.save(model)
    before = {name: array.copy() for name, array in saved.target.items()}
    try:
        for name, arrays in model.caffe_layers().items():
            if name not in blobs:
                raise ValueError(f"{path}: expected a layer {name}")
            with parsing(f"{path}: expected the weights of {name}", path):
                _fill(arrays, blobs[name])
    except BaseException:
        NpzDeserializer(before).load(model)
        raise


def _fill(arrays: Any, blobs: list[Any]) -> None:
    if callable(arrays):
        arrays(blobs)
        return
    if len(blobs) < len(arrays):
        raise ValueError(f"{len(blobs)} blobs for {len(arrays)} arrays")
    for array, blob in zip(arrays, blobs):
        array[...] = blob.reshape(array.shape)
