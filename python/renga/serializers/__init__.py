"""Saves objects to files and loads them, completely or not at all."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.serializers import atomic, hdf5, npz, safetensors
from renga.serializers.errors import FileFormatError
from renga.serializers.hdf5 import (
    HDF5Deserializer,
    HDF5Serializer,
    load_hdf5,
    save_hdf5,
)
from renga.serializers.npz import (
    DictionarySerializer,
    NpzDeserializer,
    load_npz,
    save_npz,
)
from renga.serializers.safetensors import load_safetensors, save_safetensors
from renga.serializers.torch_state_dict import load_torch_state_dict

__all__ = [
    "DictionarySerializer",
    "FileFormatError",
    "HDF5Deserializer",
    "HDF5Serializer",
    "NpzDeserializer",
    "atomic",
    "hdf5",
    "load_hdf5",
    "load_npz",
    "load_safetensors",
    "load_torch_state_dict",
    "npz",
    "save_hdf5",
    "save_npz",
    "save_safetensors",
    "safetensors",
]

_suggest_names(__name__)
