"""Links through safetensors files, against the package itself."""

import json
import struct

import numpy
import pytest

import renga
import renga.links as L
from renga import serializers

safetensors = pytest.importorskip("safetensors.numpy")


def make(value=None):
    chain = renga.Chain(conv=L.Convolution2D(2, 3, 1), bn=L.BatchNormalization(3))
    if value is not None:
        for param in chain.params():
            param.array[...] = value
        chain.bn.avg_mean[...] = value
        chain.bn.N = 7
    return chain


def test_round_trip(tmp_path):
    path = tmp_path / "model.safetensors"
    serializers.save_safetensors(path, make(2.5), {"made": "today"})
    stored = safetensors.load_file(path)
    assert set(stored) == {
        "conv.W",
        "conv.b",
        "bn.gamma",
        "bn.beta",
        "bn.avg_mean",
        "bn.avg_var",
        "bn.N",
    }
    assert stored["conv.W"].shape == (3, 2, 1, 1) and (stored["conv.W"] == 2.5).all()
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    header = json.loads(path.read_bytes()[8 : 8 + size])
    assert header["__metadata__"].pop("renga.crc32") != "00000000"
    assert header["__metadata__"] == {"made": "today"}
    chain = make()
    serializers.load_safetensors(path, chain)
    for param in chain.params():
        numpy.testing.assert_array_equal(param.array, 2.5)
    numpy.testing.assert_array_equal(chain.bn.avg_mean, 2.5)
    assert chain.bn.N == 7


def test_files_written_by_the_safetensors_package(tmp_path):
    path = tmp_path / "theirs.safetensors"
    weights = {
        "model.conv.W": numpy.ones((3, 2, 1, 1), "f8"),
        "model.conv.b": numpy.arange(3, dtype="f2"),
    }
    safetensors.save_file(weights, path)
    chain = make()
    with pytest.raises(KeyError, match="model/bn/"):
        serializers.load_safetensors(path, chain, "model.")
    serializers.load_safetensors(path, chain, "model.", strict=False)
    numpy.testing.assert_array_equal(chain.conv.W.array, 1)
    numpy.testing.assert_array_equal(chain.conv.b.array, [0, 1, 2])
    assert chain.conv.W.dtype == numpy.float32


def test_refused_links_and_files(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(ValueError, match="expected an array for W, got none"):
        serializers.save_safetensors(path, L.Linear(None, 3))
    assert not path.exists()
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="load_safetensors"):
        serializers.load_safetensors(path, make())
    safetensors.save_file({"W": numpy.ones((2, 2))}, path)
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        serializers.load_safetensors(path, L.Linear(3, 2), strict=False)
