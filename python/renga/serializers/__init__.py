"""Saves objects to files and loads them, completely or not at all."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.serializers import (
    atomic as atomic,
    hdf5 as hdf5,
    npz as npz,
    safetensors as safetensors,
)
from renga.serializers.files import FileFormatError as FileFormatError
from renga.serializers.hdf5 import (
    HDF5Deserializer as HDF5Deserializer,
    HDF5Serializer as HDF5Serializer,
    load_hdf5 as load_hdf5,
    save_hdf5 as save_hdf5,
)
from renga.serializers.npz import (
    DictionarySerializer as DictionarySerializer,
    NpzDeserializer as NpzDeserializer,
    load_npz as load_npz,
    save_npz as save_npz,
)
from renga.serializers.safetensors import (
    load_safetensors as load_safetensors,
    save_safetensors as save_safetensors,
)
from renga.serializers.torch_state_dict import (
    load_torch_state_dict as load_torch_state_dict,
)

_suggest_names(__name__)
