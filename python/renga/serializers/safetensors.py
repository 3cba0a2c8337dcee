"""Links in safetensors files, which other libraries read."""

from __future__ import annotations

import numpy

from renga.core.serializer import Serializable
from renga.serializers.files import File, FileFormatError, open_to_read, open_to_write
from renga.serializers.npz import DictionarySerializer, NpzDeserializer
from renga.serializers.stored import is_none
from renga.serializers.tensor_file import CHECKSUM, read_entries, with_checksum


def save_safetensors(
    file: File, obj: Serializable, metadata: dict[str, str] | None = None
) -> None:
    """Save the arrays of a link to a file, which is replaced atomically.

    Names are joined by dots, as is usual there: ``predictor.l1.W``. The metadata holds
    a checksum, which ``load_safetensors`` verifies.

    Raises:
        ValueError: a parameter has no array, a value is text (as in a trainer's state),
            or two names are equal with dots.
        ImportError: the package safetensors is not installed.
    """
    from safetensors.numpy import save

    serializer = DictionarySerializer()
    serializer.save(obj)
    arrays: dict[str, numpy.ndarray] = {}
    for key, array in serializer.target.items():
        if is_none(array):
            raise ValueError(f"save_safetensors: expected an array for {key}, got none")
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"save_safetensors: expected numbers for {key}, got {array.dtype}"
            )
        name = key.replace("/", ".")
        if name in arrays:
            raise ValueError(f"save_safetensors: expected one array for {name}")
        native = array.dtype.newbyteorder("=")
        arrays[name] = numpy.ascontiguousarray(array, native).reshape(array.shape)
    content = save(arrays, {**(metadata or {}), CHECKSUM: "00000000"})
    with open_to_write(file) as opened:
        opened.write(with_checksum(content))


def load_safetensors(
    file: File, obj: Serializable, path: str = "", strict: bool = True
) -> None:
    """Load a link from the arrays whose names begin with ``path``.

    Arrays of bfloat16 are read as float32, exactly. If loading fails, ``obj`` is
    unchanged.

    Raises:
        KeyError: a name is missing, unless ``strict`` is False.
        FileFormatError: the file is no safetensors file or is damaged.
        ValueError: shapes differ.
        TypeError: dtypes are of different kinds.
        OSError: the file cannot be read.
    """
    with open_to_read(file) as opened:
        slashed = {}
        for key, entry in read_entries(opened, file).items():
            name = key.replace(".", "/")
            if name in slashed:
                raise FileFormatError(
                    f"load_safetensors: expected one array for {name}, got two"
                )
            slashed[name] = entry
        path = path.replace(".", "/")
        NpzDeserializer(slashed, path, strict, file=file).load(obj)
