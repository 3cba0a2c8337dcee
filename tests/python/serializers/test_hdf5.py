"""HDF5 files read by h5py itself."""

import builtins
import types

import numpy
import pytest

from renga.serializers import (
    FileFormatError,
    HDF5Deserializer,
    HDF5Serializer,
    load_hdf5,
    save_hdf5,
)

h5py = pytest.importorskip("h5py")


def saves(**values):
    """An object that saves or loads these values."""

    def serialize(serializer):
        obj.loaded = {key: serializer(key, value) for key, value in values.items()}

    obj = types.SimpleNamespace(serialize=serialize)
    return obj


def test_h5py_reads_what_save_hdf5_wrote(tmp_path):
    weights = numpy.arange(6.0, dtype=numpy.float32).reshape(2, 3)

    def serialize(serializer):
        serializer["l1"]("W", weights)
        serializer["l1"]("/text", "連歌")
        serializer("count", 3)
        serializer("none", None)

    save_hdf5(tmp_path / "f", types.SimpleNamespace(serialize=serialize), 9)
    with h5py.File(tmp_path / "f", "r") as file:
        numpy.testing.assert_array_equal(file["l1/W"][()], weights)
        assert file["l1/W"].dtype == numpy.float32
        assert file["l1/W"].compression == "gzip"
        assert file["l1/W"].compression_opts == 9
        assert file["l1/text"].asstr()[()] == "連歌"
        assert file["count"][()] == 3
        assert file["none"].shape is None


def test_load_hdf5_reads_what_h5py_wrote(tmp_path):
    with h5py.File(tmp_path / "f", "w") as file:
        file["W"] = numpy.ones(3)
        file["none"] = h5py.Empty("f")
        file["flag"] = True
    obj = saves(W=numpy.zeros(3), none=1, flag=False)
    load_hdf5(tmp_path / "f", obj)
    assert obj.loaded["none"] is None and obj.loaded["flag"] is True
    numpy.testing.assert_array_equal(obj.loaded["W"], numpy.ones(3))


def test_text_arrays(tmp_path):
    names = numpy.array([["a", "bcd"], ["連歌", ""]])
    save_hdf5(tmp_path / "f", saves(names=names))
    obj = saves(names=None)
    load_hdf5(tmp_path / "f", obj)
    numpy.testing.assert_array_equal(obj.loaded["names"], names)


def test_not_strict_keeps_what_is_missing(tmp_path):
    with h5py.File(tmp_path / "f", "w") as file:
        HDF5Serializer(file)("a", 1)
        deserializer = HDF5Deserializer(file, strict=False)
        assert deserializer("a", 7) == 1
        assert deserializer("b", 7) == 7
        assert deserializer["x"]["y"]("a", 7) == 7
        with pytest.raises(KeyError):
            HDF5Deserializer(file)("b", 7)


def test_without_h5py_the_error_names_the_package(tmp_path, monkeypatch):
    real_import = builtins.__import__

    def no_h5py(name, *args, **kwargs):
        if name == "h5py":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_h5py)
    for call in (
        lambda: save_hdf5(tmp_path / "f", saves()),
        lambda: load_hdf5(tmp_path / "f", saves()),
        lambda: HDF5Serializer(None),
        lambda: HDF5Deserializer(None),
    ):
        with pytest.raises(RuntimeError, match="pip install h5py"):
            call()
    assert not list(tmp_path.iterdir())


def test_elements_that_were_never_stored(tmp_path):
    """A file of a few kilobytes says that it has four terabytes."""
    with h5py.File(tmp_path / "model", "w") as file:
        file.create_dataset("x", (2**40,), "f4", chunks=(1024,))
    with pytest.raises(FileFormatError, match="expand to 4398046511104"):
        load_hdf5(tmp_path / "model", saves(x=numpy.zeros(2)))
