"""Both file formats return the saved values exactly."""

import os

import numpy
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from renga import serializers
from renga.backends import cuda
from tests.scripts import run_program

FORMATS = {
    "npz": (serializers.save_npz, serializers.load_npz),
    "npz stored": (
        lambda file, obj: serializers.save_npz(file, obj, compression=False),
        serializers.load_npz,
    ),
    "hdf5": (serializers.save_hdf5, serializers.load_hdf5),
}
ARRAYS = {
    "float16": numpy.arange(3, dtype=numpy.float16),
    "float32": numpy.linspace(0, 1, 12, dtype=numpy.float32).reshape(3, 4),
    "float64 0-d": numpy.array(2.5),
    "int8 columns": numpy.asfortranarray(
        numpy.arange(6, dtype=numpy.int8).reshape(2, 3)
    ),
    "uint64": numpy.array([2**64 - 1], dtype=numpy.uint64),
    "bool": numpy.array([True, False]),
    "complex": numpy.array([1 + 2j]),
    "backwards": numpy.arange(5)[::-1],
    "every other": numpy.arange(10.0)[::2],
    "empty": numpy.empty((0, 3), dtype=numpy.float32),
}
SCALARS = [3, -(2**40), 0.1, True, '{"epoch": 1}', "連歌", "", b"xy"]


class Record:
    """Serializes its values in order, as links and optimizers do."""

    def __init__(self, **values):
        self.values = values

    def serialize(self, serializer):
        for key, value in self.values.items():
            if isinstance(value, Record):
                value.serialize(serializer[key])
            else:
                self.values[key] = serializer(key, value)


@pytest.fixture(params=FORMATS)
def save_load(request):
    return FORMATS[request.param]


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_filled_in_place(tmp_path, save_load, name):
    save, load = save_load
    want = ARRAYS[name]
    save(tmp_path / "f", Record(a=want))
    target = numpy.zeros_like(want)
    record = Record(a=target)
    load(tmp_path / "f", record)
    assert record.values["a"] is target
    numpy.testing.assert_array_equal(target, want)
    record = Record(a=None)
    load(tmp_path / "f", record)
    assert record.values["a"].dtype == want.dtype
    numpy.testing.assert_array_equal(record.values["a"], want)


@pytest.mark.parametrize("want", SCALARS)
def test_scalars_keep_their_type(tmp_path, save_load, want):
    save, load = save_load
    save(tmp_path / "f", Record(a=want))
    record = Record(a=type(want)())
    load(tmp_path / "f", record)
    assert type(record.values["a"]) is type(want)
    assert record.values["a"] == want


@pytest.mark.parametrize("placeholder", [None, 3, numpy.zeros(2)])
def test_none_is_loaded_over_anything(tmp_path, save_load, placeholder):
    save, load = save_load
    save(tmp_path / "f", Record(a=None))
    record = Record(a=placeholder)
    load(tmp_path / "f", record)
    assert record.values["a"] is None


def test_branches_and_slashes(tmp_path, save_load):
    save, load = save_load
    save(
        tmp_path / "f", Record(**{"/x": Record(**{"y/": Record(**{"/z": 5})}), "z": 6})
    )
    flat = Record(**{"x/y/z": 0, "/z": 0})
    load(tmp_path / "f", flat)
    assert flat.values == {"x/y/z": 5, "/z": 6}


def test_missing_name_wrong_shape_and_lossy_type(tmp_path, save_load):
    save, load = save_load
    save(tmp_path / "f", Record(a=numpy.arange(3.0), b=2.5))
    with pytest.raises(KeyError, match="missing"):
        load(tmp_path / "f", Record(missing=1))
    with pytest.raises(KeyError):
        load(tmp_path / "f", Record(missing=Record(a=1)))
    with pytest.raises(ValueError, match=r"expected .*\(4,\), got \(3,\)"):
        load(tmp_path / "f", Record(a=numpy.zeros(4)))
    with pytest.raises(TypeError):
        load(tmp_path / "f", Record(a=numpy.zeros(3, dtype=int)))
    with pytest.raises(TypeError, match="fits <class 'int'>, got an array of float64"):
        load(tmp_path / "f", Record(b=1))
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "no", Record())


def test_one_row_is_not_spread_over_many(tmp_path, save_load):
    save, load = save_load
    save(tmp_path / "f", Record(a=numpy.ones(1)))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        load(tmp_path / "f", Record(a=numpy.zeros(3)))


def test_numbers_convert_as_far_as_they_are_safe(tmp_path, save_load):
    save, load = save_load
    save(tmp_path / "f", Record(a=numpy.float64(1.5), b=numpy.int8(7), c=True))
    record = Record(a=numpy.zeros((), dtype=numpy.float32), b=0.0, c=0)
    load(tmp_path / "f", record)
    assert record.values == {"a": 1.5, "b": 7.0, "c": 1}
    assert type(record.values["b"]) is float and type(record.values["c"]) is int


@pytest.mark.parametrize("value", [object(), [1, None], {"a": 1}, numpy.array([None])])
def test_objects_are_refused_and_the_old_file_is_kept(tmp_path, save_load, value):
    save, load = save_load
    save(tmp_path / "f", Record(a=1))
    with pytest.raises(TypeError, match="'b': expected numbers, text or None"):
        save(tmp_path / "f", Record(a=2, b=value))
    record = Record(a=0)
    load(tmp_path / "f", record)
    assert record.values["a"] == 1
    assert os.listdir(tmp_path) == ["f"]


class DeviceArray(cuda.ndarray):
    """An array accessible by get and set only, as on a GPU."""

    shape = dtype = None  # of the instance, not of the base class

    def __init__(self, array):
        self.there = array
        self.shape, self.dtype = array.shape, array.dtype

    def get(self, stream=None):
        return self.there.copy()

    def set(self, arr, stream=None):
        assert arr.dtype == self.dtype
        self.there[...] = arr


def test_arrays_of_a_device_travel_through_main_memory(tmp_path, save_load):
    save, load = save_load
    save(tmp_path / "f", Record(a=DeviceArray(numpy.arange(3.0))))
    target = DeviceArray(numpy.zeros(3, dtype=numpy.float32))
    record = Record(a=target)
    load(tmp_path / "f", record)
    assert record.values["a"] is target
    assert target.there.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"\(4,\), got \(3,\)"):
        load(tmp_path / "f", Record(a=DeviceArray(numpy.zeros(4))))


@settings(max_examples=30, deadline=None)
@given(
    hnp.arrays(
        st.one_of(hnp.floating_dtypes(endianness="="), hnp.integer_dtypes()),
        hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
    ),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")),
)
def test_any_array_and_text(tmp_path_factory, array, text):
    path = tmp_path_factory.mktemp("any") / "f"
    for save, load in FORMATS.values():
        save(path, Record(a=array, t=text))
        record = Record(a=numpy.zeros_like(array), t="")
        load(path, record)
        numpy.testing.assert_array_equal(record.values["a"], array)
        assert record.values["t"] == text


@pytest.mark.parametrize("save", ["save_npz", "save_hdf5"])
def test_full_disk_leaves_the_old_file(tmp_path, save):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    program = f"""
        import resource, signal, types
        import numpy
        from renga import serializers
        {"import h5py" if save == "save_hdf5" else ""}
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        noise = numpy.random.rand(100_000)
        try:
            serializers.{save}(
                {str(path)!r}, types.SimpleNamespace(serialize=lambda s: s("a", noise))
            )
        except OSError:
            raise SystemExit(7)
    """
    done = run_program(program)
    assert done.returncode == 7
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]
