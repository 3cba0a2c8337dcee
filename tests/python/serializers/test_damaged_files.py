"""Damaged files: errors name the file, the entry and what was expected."""

import io
import json
import os
import resource
import struct
import types
import zipfile
import zlib

import numpy
import pytest

import renga.links as L
from renga import serializers
from renga.serializers import FileFormatError, load_hdf5, load_npz, load_safetensors


def saves(**values):
    """An object that loads these values."""

    def serialize(serializer):
        obj.loaded = {key: serializer(key, value) for key, value in values.items()}

    obj = types.SimpleNamespace(serialize=serialize)
    return obj


def npy(descr="'<f4'", shape="(3,)", data=b"\0" * 12, version=1, length=None):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"
    length = len(header) if length is None else length
    size = struct.pack("<H" if version == 1 else "<I", length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + header.encode() + data


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


MEMBERS = {
    "claims 4 TB": npy(shape="(1099511627776,)"),
    "overflows": npy(shape="(4294967296, 4294967296)"),
    "negative": npy(shape="(-3,)"),
    "both negative": npy(shape="(-3, -1)"),
    "a huge item": npy(descr="'S2000000000'", shape="()"),
    "too short": npy(data=b"\0" * 11),
    "too long": npy(data=b"\0" * 13),
    "version 3": npy(version=3),
    "version 9": npy(version=9),
    "a header of 4 GB": npy(version=2, length=2**32 - 1),
    "a header cut short": npy(length=2000)[:100],
    "no header": b"",
    "another file": b"\x89PNG\r\n\x1a\n" + bytes(50),
    "no dtype": npy(descr="'<q9'"),
    "objects": npy(descr="'|O'"),
    "brackets": npy(shape="(" * 3000 + ")" * 3000),
    "an expression": npy(shape="(__import__('os').abort(),)"),
    "a float": npy(shape="(3.0,)"),
}


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("target", [numpy.ones(3, "f4"), None], ids=["array", "none"])
def test_members_that_lie(tmp_path, name, target):
    path = archive(tmp_path / "f", a=MEMBERS[name])
    obj = saves(a=None if target is None else target.copy())
    with pytest.raises(FileFormatError, match="'a' in .*f', got") as caught:
        load_npz(path, obj)
    assert caught.value.__cause__ is not None


def test_arrays_that_do_not_fit_are_not_read(tmp_path):
    """A gigabyte of zeros, which is some megabytes in an archive."""
    path = tmp_path / "f"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        with file.open("a.npy", "w") as member:
            member.write(npy(shape="(1073741824,)", descr="'|u1'", data=b""))
            for _ in range(1024):
                member.write(bytes(1 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for value in (numpy.zeros(3, "u1"), 0, 0.0, ""):
        with pytest.raises(ValueError, match="'a' in"):
            load_npz(path, saves(a=value))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000  # KiB


def test_a_size_that_no_deflated_stream_can_have(tmp_path):
    data = npy(shape="(1000000000,)", descr="'|u1'", data=b"")
    path = archive(tmp_path / "f", a=data)
    content = bytearray(path.read_bytes())
    for at in (content.rindex(b"PK\1\2") + 24, content.index(b"PK\3\4") + 22):
        content[at : at + 4] = struct.pack("<I", 1_000_000_000 + len(data))
    path.write_bytes(content)
    for value in (None, numpy.zeros(1_000_000_000, "u1")[:0]):
        with pytest.raises(ValueError):
            load_npz(path, saves(a=value))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_of_compression_that_npz_has_not(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "f", "w", method) as file:
        file.writestr("a.npy", npy())
    with pytest.raises(FileFormatError, match="method"):
        load_npz(tmp_path / "f", saves(a=None))


def test_npz_files_opened_by_the_caller_are_checked_too(tmp_path):
    path = archive(tmp_path / "f", a=npy(shape="(1099511627776,)"), b=npy())
    with numpy.load(path) as opened:
        deserializer = serializers.NpzDeserializer(opened)
        numpy.testing.assert_array_equal(deserializer("b", None), numpy.zeros(3))
        with pytest.raises(FileFormatError):
            deserializer("a", None)


def test_arrays_that_numpy_writes_are_read(tmp_path):
    arrays = {
        "fortran": numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
        "big": numpy.arange(4, dtype=">i4"),
        "text": numpy.array(["a", "連歌"]),
        "empty": numpy.empty((0, 2)),
        "scalar": numpy.array(2.5, "f2"),
    }
    for save in (numpy.savez, numpy.savez_compressed):
        save(tmp_path / "f.npz", **arrays)
        obj = saves(**dict.fromkeys(arrays))
        load_npz(tmp_path / "f.npz", obj)
        for name, array in arrays.items():
            got = obj.loaded[name]
            numpy.testing.assert_array_equal(got, array)
            assert got.dtype.isnative and got.flags.writeable and got.flags.aligned


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def field(dtype="F32", shape=(3,), offsets=(0, 12)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


DATA = bytes(12)
TENSORS = {
    "empty": b"",
    "short": b"\2\0\0",
    "a header of 8 EB": safetensors(b"{}", length=2**63),
    "a header past the end": safetensors(b"{}", length=3),
    "no JSON": safetensors(b"{a}"),
    "a list": safetensors(b"[]"),
    "brackets": safetensors(b"[" * 100_000),
    "two of a name": safetensors(
        b'{"W":%b,"W":%b}' % (2 * (json.dumps(field()).encode(),)), DATA
    ),
    "no field": safetensors({"W": {"dtype": "F32"}}, DATA),
    "a number": safetensors({"W": 3}, DATA),
    "a short array": safetensors({"W": field(shape=[4])}, DATA),
    "a negative extent": safetensors({"W": field(shape=[-1, -3])}, DATA),
    "a huge extent": safetensors({"W": field(shape=[2**62, 2**62])}, DATA),
    "a float": safetensors({"W": field(shape=[3.0])}, DATA),
    "a bool": safetensors({"W": field(shape=[True, 3])}, DATA),
    "many digits": safetensors(b'{"W":' + b"9" * 5000 + b"}", DATA),
    "an end before the start": safetensors({"W": field(offsets=[12, 0])}, DATA),
    "an array past the end": safetensors({"W": field(offsets=[12, 24])}, DATA),
    "a hole": safetensors({"W": field(), "V": field(offsets=[16, 28])}, bytes(28)),
    "an overlap": safetensors({"W": field(), "V": field(offsets=[8, 20])}, bytes(20)),
    "bytes left over": safetensors({"W": field()}, bytes(13)),
    "an unknown dtype": safetensors({"W": field("F8_E4M3", [12])}, DATA),
}


@pytest.mark.parametrize("name", TENSORS)
def test_safetensors_with_wrong_headers(tmp_path, name):
    (tmp_path / "f").write_bytes(TENSORS[name])
    for obj in (saves(W=None), saves(W=numpy.ones(12, "f4"))):
        with pytest.raises(FileFormatError, match="load_safetensors.*f'"):
            load_safetensors(tmp_path / "f", obj)


def test_a_turned_bit_of_a_safetensors_file_is_noticed(tmp_path):
    pytest.importorskip("safetensors")
    serializers.save_safetensors(tmp_path / "f", L.Linear(3, 2))
    content = (tmp_path / "f").read_bytes()
    for at in range(8, len(content)):
        changed = bytearray(content)
        changed[at] ^= 1
        with pytest.raises((FileFormatError, KeyError)):
            load_safetensors(io.BytesIO(changed), L.Linear(3, 2))
            # Only the checksum's name may be damaged: then everything else is correct.
            assert b"renga.crc32" not in changed
            raise KeyError


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8"])
def test_bfloat16_is_read_exactly(tmp_path, dtype):
    values = numpy.array([1.5, -2.0, 3.140625, 0.0], "f4")
    bits = (values.view("u4") >> 16).astype("<u2").tobytes()
    (tmp_path / "f").write_bytes(safetensors({"W": field("BF16", [4], [0, 8])}, bits))
    obj = saves(W=numpy.zeros(4, dtype))
    load_safetensors(tmp_path / "f", obj)
    numpy.testing.assert_array_equal(obj.loaded["W"], values)
    obj = saves(W=None)
    load_safetensors(tmp_path / "f", obj)
    assert obj.loaded["W"].dtype == numpy.float32 and obj.loaded["W"].flags.writeable


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "u4", "i8", "f2", "f8"])
def test_dtypes_of_safetensors(tmp_path, dtype):
    package = pytest.importorskip("safetensors.numpy")
    array = numpy.arange(6).reshape(2, 3).astype(dtype)
    package.save_file({"W": array}, tmp_path / "f")
    obj = saves(W=None)
    load_safetensors(tmp_path / "f", obj)
    numpy.testing.assert_array_equal(obj.loaded["W"], array)
    assert obj.loaded["W"].dtype == dtype


def test_names_that_are_the_same_with_dots(tmp_path):
    pytest.importorskip("safetensors")
    target = {"a.b/c": numpy.zeros(1), "a/b.c": numpy.ones(1)}
    obj = types.SimpleNamespace(
        serialize=lambda s: [s(*item) for item in target.items()]
    )
    with pytest.raises(ValueError, match=r"one array for a\.b\.c"):
        serializers.save_safetensors(tmp_path / "f", obj)


h5py = pytest.importorskip("h5py")


def _external_link(file, folder):
    with h5py.File(folder / "other", "w") as other:
        other["W"] = numpy.full(3, 7.0)
    file["W"] = h5py.ExternalLink("other", "W")


def _link_of_a_group(file, folder):
    file["x/W"] = numpy.full(3, 7.0)
    file["W"] = h5py.SoftLink("/x/W")


def _virtual(file, folder):
    with h5py.File(folder / "other", "w") as other:
        other["W"] = numpy.full(3, 7.0)
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other"), "W", (3,))
    file.create_virtual_dataset("W", layout)


def _stored_elsewhere(file, folder):
    (folder / "secret").write_bytes(numpy.full(3, 7.0).tobytes())
    file.create_dataset("W", (3,), "f8", external=[(str(folder / "secret"), 0, 24)])


def _never_written(file, folder):
    file.create_dataset("W", (1 << 40,), "f8", chunks=(1024,))


def _a_group(file, folder):
    file.create_group("W")


def _references(file, folder):
    file.create_dataset("W", (1,), h5py.ref_dtype)


def _rows(file, folder):
    file.create_dataset("W", (3,), h5py.vlen_dtype("f8"))


def _packed_by_another_filter(file, folder):
    file.create_dataset("W", data=numpy.full(3, 7.0), scaleoffset=2, chunks=(3,))


@pytest.mark.parametrize(
    "write",
    [
        _external_link,
        _link_of_a_group,
        _virtual,
        _stored_elsewhere,
        _never_written,
        _a_group,
        _references,
        _rows,
        _packed_by_another_filter,
    ],
)
def test_hdf5_files_that_lead_out_of_themselves_or_lie(tmp_path, write, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File(tmp_path / "f", "w") as file:
        write(file, tmp_path)
    for value in (None, numpy.zeros(3)):
        obj = saves(W=value)
        with pytest.raises(ValueError, match="'W'.*f'"):
            load_hdf5(tmp_path / "f", obj)
        assert value is None or not value.any()
    if write is not _never_written:
        with pytest.raises(FileFormatError):
            load_hdf5(tmp_path / "f", saves(W=None))


def test_a_group_reached_through_an_external_link_is_not_read(tmp_path):
    with h5py.File(tmp_path / "other", "w") as other:
        other["l/W"] = numpy.full(3, 7.0)
    with h5py.File(tmp_path / "f", "w") as file:
        file["model"] = h5py.ExternalLink("other", "/")
    for key in ("model/l/W", "/model/l/W"):
        with pytest.raises(FileFormatError, match="ExternalLink"):
            load_hdf5(tmp_path / "f", saves(**{key: numpy.zeros(3)}))


def test_a_turned_bit_of_an_hdf5_file_is_noticed(tmp_path):
    serializers.save_hdf5(tmp_path / "f", saves(W=numpy.arange(100.0)))
    content = (tmp_path / "f").read_bytes()
    for at in range(0, len(content), 37):
        changed = bytearray(content)
        changed[at] ^= 16
        obj = saves(W=numpy.zeros(100))
        with pytest.raises(FileFormatError, match="CRC-32"):
            load_hdf5(io.BytesIO(changed), obj)
    for length in range(0, len(content), 97):
        with pytest.raises(FileFormatError):
            load_hdf5(io.BytesIO(content[:length]), saves(W=numpy.zeros(100)))


def test_files_that_are_no_hdf5_files(tmp_path):
    for content in (b"", b"junk", b"\x89HDF\r\n\x1a\n" + b"\xff" * 600):
        (tmp_path / "f").write_bytes(content)
        with pytest.raises(FileFormatError, match="expected an HDF5 file in .*f'"):
            load_hdf5(tmp_path / "f", saves())
    with pytest.raises(FileNotFoundError):
        load_hdf5(tmp_path / "none", saves())


def test_system_errors_are_not_converted(tmp_path):
    for load in (load_npz, load_hdf5, load_safetensors):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "none", saves())
        with pytest.raises(IsADirectoryError):
            load(tmp_path, saves())


def test_crc_is_that_of_zlib(tmp_path):
    """The checksum can be verified by other programs."""
    serializers.save_hdf5(tmp_path / "f", saves(W=numpy.arange(3.0)))
    content = (tmp_path / "f").read_bytes()
    assert b"%08x\n" % zlib.crc32(content[512:]) in content[:512]
    assert os.path.getsize(tmp_path / "f") == len(content)


@pytest.mark.parametrize("compression", [None, 0, 9, "gzip", "lzf"])
def test_compressions_that_are_read(tmp_path, compression):
    values = numpy.zeros(100_000)
    serializers.save_hdf5(tmp_path / "f", saves(W=values), compression)
    obj = saves(W=None)
    load_hdf5(tmp_path / "f", obj)
    numpy.testing.assert_array_equal(obj.loaded["W"], values)
