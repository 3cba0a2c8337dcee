"""Links in safetensors files, which other libraries read, too."""

from __future__ import annotations

import os
from typing import Any, Union

from renga.serializers.atomic import atomic_write
from renga.serializers.npz import DictionarySerializer, NpzDeserializer
from renga.serializers.stored import is_none

Path = Union[str, "os.PathLike[str]"]


def save_safetensors(
    file: Path, obj: Any, metadata: dict[str, str] | None = None
) -> None:
    """Save the arrays of a link to a file, which is replaced whole or not at all.

    Parts of names are joined by dots, as is usual there: ``predictor.l1.W``.

    Raises: ValueError for a parameter without an array, or text, as in a trainer's
    state; ImportError where the package safetensors is not installed.
    """
    from safetensors.numpy import save

    serializer = DictionarySerializer()
    serializer.save(obj)
    for key, array in serializer.target.items():
        if is_none(array):
            raise ValueError(f"save_safetensors: expected an array for {key}, got none")
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"save_safetensors: expected numbers for {key}, got {array.dtype}"
            )
    arrays = {_dotted(key): array for key, array in serializer.target.items()}
    with atomic_write(file) as opened:
        opened.write(save(arrays, metadata))


def load_safetensors(file: Path, obj: Any, path: str = "", strict: bool = True) -> None:
    """Load a link from the arrays whose names begin with ``path``.

    Raises: KeyError for a name that is missing, unless ``strict`` is False;
    ValueError where the file is no safetensors file, and where shapes differ.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(file)
    except SafetensorError as error:
        raise ValueError(f"load_safetensors: {os.fspath(file)}: {error}") from error
    slashed = {key.replace(".", "/"): array for key, array in arrays.items()}
    path = path.replace(".", "/")
    NpzDeserializer(slashed, path, strict).load(obj)


def _dotted(key: str) -> str:
    return key.replace("/", ".")
