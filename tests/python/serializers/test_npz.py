"""npz archives: NumPy's own format, names ignored or missing, and no pickles."""

import gc
import io
import os
import pickle
import sys
import time
import types
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

from renga import serializers
from renga.serializers import DictionarySerializer, NpzDeserializer, load_npz, save_npz


def saves(**values):
    """An object that saves or loads these values."""

    def serialize(serializer):
        obj.loaded = {key: serializer(key, value) for key, value in values.items()}

    obj = types.SimpleNamespace(serialize=serialize)
    return obj


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_dictionary_holds_arrays():
    serializer = DictionarySerializer()
    assert serializer("i", 1) == 1
    serializer["a"]["b"]("t", "hi")
    serializer["c/"]("/none", None)
    assert set(serializer.target) == {"i", "a/b/t", "c/none"}
    assert all(isinstance(v, numpy.ndarray) for v in serializer.target.values())
    assert serializer.target["c/none"].item() is None
    assert str(serializer.target["a/b/t"]) == "hi"


def test_numpy_reads_what_save_npz_wrote(tmp_path):
    weights = numpy.arange(6.0, dtype=numpy.float32).reshape(2, 3)
    save_npz(tmp_path / "f", saves(W=weights, file=3, none=None))
    with numpy.load(tmp_path / "f") as archive:
        numpy.testing.assert_array_equal(archive["W"], weights)
        assert archive["file"] == 3  # NumPy's own savez does not accept this name
    with numpy.load(tmp_path / "f", allow_pickle=True) as archive:
        assert archive["none"].item() is None


def test_load_npz_reads_what_numpy_wrote(tmp_path):
    numpy.savez(tmp_path / "f.npz", W=numpy.ones(3), none=numpy.array(None))
    obj = saves(W=numpy.zeros(3), none=1)
    load_npz(tmp_path / "f.npz", obj)
    assert obj.loaded["none"] is None
    numpy.testing.assert_array_equal(obj.loaded["W"], numpy.ones(3))


# The member that NumPy 1.22 wrote for None: header padded to 128 bytes, protocol 3.
NONE_OF_NUMPY_1 = (
    b"\x93NUMPY\x01\x00v\x00"
    + b"{'descr': '|O', 'fortran_order': False, 'shape': (), }".ljust(117)
    + b"\n\x80\x03cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nq\x01K"
    b"\x00\x85q\x02C\x01bq\x03\x87q\x04Rq\x05(K\x01)cnumpy\ndtype\nq\x06X\x02\x00\x00\x00"
    b"O8q\x07\x89\x88\x87q\x08Rq\t(K\x03X\x01\x00\x00\x00|q\nNNNJ\xff\xff\xff\xffJ\xff\xff"
    b"\xff\xffK?tq\x0bb\x89]q\x0cNatq\rb."
)


def test_none_is_written_and_read_as_chainer_wrote_it(tmp_path):
    save_npz(tmp_path / "f", saves(none=None))
    with zipfile.ZipFile(tmp_path / "f") as archive:
        assert archive.read("none.npy") == NONE_OF_NUMPY_1
    with zipfile.ZipFile(tmp_path / "g", "w") as archive:
        archive.writestr("none.npy", NONE_OF_NUMPY_1)
    obj = saves(none=1)
    load_npz(tmp_path / "g", obj)
    assert obj.loaded["none"] is None


def test_a_pickle_in_an_archive_is_not_executed(tmp_path):
    trap, path = tmp_path / "sprung", tmp_path / "f.npz"
    malicious = numpy.array(None, dtype=object)
    malicious[()] = Trap(trap)
    numpy.savez(path, W=numpy.ones(2), bad=malicious)
    obj = saves(W=numpy.zeros(2))
    load_npz(path, obj)
    numpy.testing.assert_array_equal(obj.loaded["W"], numpy.ones(2))
    with pytest.raises(ValueError, match="'bad'"):
        load_npz(path, saves(bad=None))
    assert not trap.exists()
    with numpy.load(path, allow_pickle=True) as archive:
        archive["bad"]
    assert trap.exists()  # unpickling it does create the file


def test_a_pickle_with_the_header_of_none_is_not_executed(tmp_path):
    trap, path = tmp_path / "sprung", tmp_path / "f.npz"
    header = NONE_OF_NUMPY_1[:128]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad.npy", header + pickle.dumps(Trap(trap)))
    with pytest.raises(ValueError, match="'bad'"):
        load_npz(path, saves(bad=None))
    assert not trap.exists()


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04 broken"])
def test_files_that_are_no_archives(tmp_path, content):
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="load_npz: expected an npz archive"):
        load_npz(path, saves())


def test_a_bare_pickle_or_array_is_no_archive(tmp_path):
    trap = tmp_path / "sprung"
    (tmp_path / "p").write_bytes(pickle.dumps(Trap(trap)))
    numpy.save(tmp_path / "a.npy", numpy.zeros(3))
    for name in ("p", "a.npy"):
        with pytest.raises(ValueError, match="load_npz: expected an npz archive"):
            load_npz(tmp_path / name, saves())
    assert not trap.exists()


def test_a_flipped_bit_is_noticed(tmp_path):
    save_npz(tmp_path / "f", saves(a=numpy.arange(1000.0)), compression=False)
    data = bytearray((tmp_path / "f").read_bytes())
    data[4000] ^= 1
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(serializers.FileFormatError, match="'a'.* BadZipFile"):
        load_npz(tmp_path / "f", saves(a=numpy.zeros(1000)))


def test_file_objects_and_exact_names(tmp_path):
    stream = io.BytesIO()
    save_npz(stream, saves(a=1))
    stream.seek(0)
    obj = saves(a=0)
    load_npz(stream, obj)
    assert obj.loaded == {"a": 1}
    save_npz(str(tmp_path / "snapshot_iter_10"), saves(a=1))
    assert os.listdir(tmp_path) == ["snapshot_iter_10"]


def test_compression_is_deflate_or_none():
    for compression, method in [
        (True, zipfile.ZIP_DEFLATED),
        (False, zipfile.ZIP_STORED),
    ]:
        stream = io.BytesIO()
        save_npz(stream, saves(a=numpy.zeros(9)), compression)
        (info,) = zipfile.ZipFile(stream).infolist()
        assert info.compress_type == method


@pytest.mark.parametrize(
    "array", [numpy.zeros(10**5), numpy.random.RandomState(0).randn(10**5)]
)
def test_compression_is_as_good_as_numpys(array):
    ours, numpys = io.BytesIO(), io.BytesIO()
    save_npz(ours, saves(a=array))
    numpy.savez_compressed(numpys, a=array)
    assert len(ours.getvalue()) < 1.01 * len(numpys.getvalue()) + 1000
    assert len(ours.getvalue()) < 0.97 * array.nbytes


def test_path_is_what_the_names_begin_with(tmp_path):
    def serialize(serializer):
        serializer["updater"]["model:main"]("W", 5)

    save_npz(tmp_path / "f", types.SimpleNamespace(serialize=serialize))
    obj = saves(W=0)
    load_npz(tmp_path / "f", obj, path="updater/model:main/")
    assert obj.loaded == {"W": 5}


def test_not_strict_keeps_what_is_missing():
    source = {"a": numpy.array(1)}
    assert NpzDeserializer(source, strict=False)("b", 7) == 7
    assert NpzDeserializer(source, strict=False)["x"]("a", 7) == 7
    assert NpzDeserializer(source, strict=False)("a", 7) == 1
    with pytest.raises(KeyError, match="x/a is not in the archive"):
        NpzDeserializer(source)["x"]("a", 7)


@pytest.mark.parametrize(
    "names",
    ["x/a", ["x/a"], ("b", "x/a"), lambda n: n.endswith("a"), [lambda n: n == "x/a"]],
)
def test_ignored_names_keep_their_values(names):
    source = {"x/a": numpy.array(1), "x/c": numpy.array(2)}
    deserializer = NpzDeserializer(source, ignore_names=names)["x"]
    assert deserializer("a", 7) == 7
    assert deserializer("c", 7) == 2


@pytest.mark.parametrize("names", [3, ["x/a", 3], [b"x/a"]])
def test_names_to_ignore_that_are_none(names):
    with pytest.raises(ValueError, match="ignore_names of strings and functions"):
        NpzDeserializer({}, ignore_names=names)


def test_names_are_exported():
    assert serializers.npz.DictionarySerializer is DictionarySerializer


def test_threads_load_at_once() -> None:
    # What is garbage here lets other threads run wherever Python collects it, also
    # inside the parser of an array's header.
    class Garbage:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            time.sleep(0)

    file = io.BytesIO()
    numpy.savez(file, **{f"a{i}": numpy.full(1, i) for i in range(100)})

    def load() -> list[int]:
        archive, values = NpzDeserializer(numpy.load(io.BytesIO(file.getvalue()))), []
        for i in range(100):
            Garbage()
            values.append(int(archive(f"a{i}", None)[0]))
        return values

    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(10)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            loaded = [pool.submit(load) for _ in range(40)]
        assert all(each.result() == list(range(100)) for each in loaded)
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)


def test_a_closed_archive_is_refused() -> None:
    file = io.BytesIO()
    numpy.savez(file, a=numpy.zeros(1))
    archive = numpy.load(io.BytesIO(file.getvalue()))
    archive.close()
    with pytest.raises(ValueError, match="open archive, got a closed one"):
        NpzDeserializer(archive)
