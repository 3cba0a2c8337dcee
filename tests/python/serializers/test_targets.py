"""Arrays that loading fills: they have the stored values, or an error is raised."""

import numpy
import pytest

import renga.links as L
from renga import serializers
from renga.serializers import NpzDeserializer

STORED = numpy.arange(1.0, 7.0).reshape(2, 3).astype("f4")


def save_and_load(kind, folder, stored, value):
    """``value`` saved in a format and loaded."""

    class One:
        def serialize(self, serializer):
            self.value = serializer("a", self.value)

    one = One()
    one.value = stored
    if kind == "dictionary":
        one.value = value
        NpzDeserializer({"a": stored}).load(one)
        return one.value
    pytest.importorskip(
        {"hdf5": "h5py", "safetensors": "safetensors"}.get(kind, "numpy")
    )
    save = getattr(serializers, f"save_{kind}")
    save(folder / "f", one)
    one.value = value
    getattr(serializers, f"load_{kind}")(folder / "f", one)
    return one.value


@pytest.fixture(params=["npz", "hdf5", "safetensors", "dictionary"])
def load(request, tmp_path):
    return lambda stored, value: save_and_load(request.param, tmp_path, stored, value)


def unaligned(shape, dtype):
    count = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
    return numpy.zeros(count + 1, "u1")[1:].view(dtype).reshape(shape)


TARGETS = {
    "contiguous": lambda: numpy.zeros((2, 3), "f4"),
    "columns": lambda: numpy.zeros((3, 2), "f4").T,
    "strided": lambda: numpy.zeros((4, 9), "f4")[::2, ::3],
    "negative": lambda: numpy.zeros((2, 3), "f4")[::-1, ::-1],
    "byte-swapped": lambda: numpy.zeros((2, 3), ">f4"),
    "unaligned": lambda: unaligned((2, 3), "f4"),
    "wider": lambda: numpy.zeros((2, 3), "f8"),
    "narrower": lambda: numpy.zeros((2, 3), "f2"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_have_the_stored_values(load, name):
    target = TARGETS[name]()
    assert load(STORED, target) is target
    numpy.testing.assert_array_equal(target, STORED)


@pytest.mark.parametrize(
    "stored", [STORED.astype(">f4"), STORED[::-1, ::-1], STORED.T.copy().T]
)
def test_stored_from_any_layout(load, stored):
    target = numpy.zeros((2, 3), "f4")
    load(stored, target)
    numpy.testing.assert_array_equal(target, stored)
    new = load(stored, None)
    numpy.testing.assert_array_equal(new, stored)
    assert new.dtype.isnative and new.flags.writeable and new.flags.c_contiguous


def read_only():
    array = numpy.zeros((2, 3), "f4")
    array.flags.writeable = False
    return array


REFUSED = {
    "read-only": (read_only, ValueError, "can be written"),
    "broadcast": (
        lambda: numpy.broadcast_to(numpy.float32(0), (2, 3)),
        ValueError,
        "can be written",
    ),
    "broadcast and writeable": (
        lambda: numpy.lib.stride_tricks.as_strided(
            numpy.zeros(3, "f4"), (2, 3), (0, 4)
        ),
        ValueError,
        "do not overlap",
    ),
    "sliding windows": (
        lambda: numpy.lib.stride_tricks.as_strided(
            numpy.zeros(4, "f4"), (2, 3), (4, 4)
        ),
        ValueError,
        "do not overlap",
    ),
    "integers": (lambda: numpy.zeros((2, 3), "i4"), TypeError, "fits int32"),
    "bools": (lambda: numpy.zeros((2, 3), "?"), TypeError, "fits bool"),
    "text": (lambda: numpy.zeros((2, 3), "S3"), TypeError, "fits"),
    "another shape": (lambda: numpy.zeros((3, 2), "f4"), ValueError, r"\(2, 3\)"),
    "one more axis": (lambda: numpy.zeros((2, 3, 1), "f4"), ValueError, r"\(2, 3\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_and_not_touched(load, name):
    make, error, message = REFUSED[name]
    target = make()
    before = target.copy()
    with pytest.raises(error, match=f"'a'.*{message}"):
        load(STORED, target)
    numpy.testing.assert_array_equal(target, before)


def test_maps_of_files(load, tmp_path):
    (tmp_path / "map").write_bytes(bytes(24))
    for mode, fits in (("r", False), ("r+", True), ("c", True)):
        target = numpy.memmap(tmp_path / "map", "f4", mode, shape=(2, 3))
        if fits:
            load(STORED, target)
            numpy.testing.assert_array_equal(target, STORED)
        else:
            with pytest.raises(ValueError, match="can be written"):
                load(STORED, target)
            assert not target.any()


@pytest.mark.parametrize(
    "stored, dtype",
    [
        (numpy.array([300]), "i1"),
        (numpy.array([-129]), "i1"),
        (numpy.array([2**40]), "i4"),
        (numpy.array([2**63], "u8"), "i8"),
    ],
)
def test_integers_that_do_not_fit(load, stored, dtype):
    target = numpy.zeros(1, dtype)
    with pytest.raises(ValueError, match=f"fit {numpy.dtype(dtype)}"):
        load(stored, target)
    assert not target.any()
    load(numpy.array([7], stored.dtype), target)
    assert target[0] == 7


@pytest.mark.parametrize(
    "stored, value, error",
    [
        (numpy.zeros(3), 0.0, ValueError),
        (numpy.zeros((1, 0)), 0, ValueError),
        (numpy.array(2.5), "", TypeError),
        (numpy.array(2), b"", TypeError),
        (numpy.array(2), True, TypeError),
        (numpy.array(2.0), 1, TypeError),
    ],
)
def test_scalars_of_another_kind(load, stored, value, error):
    with pytest.raises(error, match="'a'"):
        load(stored, value)


def test_a_loaded_array_owns_its_memory():
    """State loaded from a dictionary shares no memory with it."""
    source = {"a": numpy.ones(3)}
    loaded = NpzDeserializer(source)("a", None)
    loaded[...] = 7
    numpy.testing.assert_array_equal(source["a"], 1)


@pytest.mark.parametrize("kind", ["npz", "hdf5", "safetensors"])
def test_parameters_made_of_odd_arrays(tmp_path, kind):
    pytest.importorskip(
        {"hdf5": "h5py", "safetensors": "safetensors"}.get(kind, "numpy")
    )
    source = L.Linear(3, 2)
    getattr(serializers, f"save_{kind}")(tmp_path / "f", source)
    x = numpy.random.RandomState(0).normal(size=(4, 3)).astype("f4")
    for make in (
        lambda: numpy.zeros((2, 3), ">f4"),
        lambda: unaligned((2, 3), "f4"),
        lambda: numpy.zeros((3, 2), "f4").T,
        read_only,
    ):
        link = L.Linear(3, 2)
        link.W.array = make()
        before = link.W.array.copy()
        try:
            getattr(serializers, f"load_{kind}")(tmp_path / "f", link)
        except ValueError:
            numpy.testing.assert_array_equal(link.W.array, before)
            continue
        expected = x @ source.W.array.T + source.b.array
        numpy.testing.assert_array_equal(link.W.array, source.W.array)
        held = link.W.array
        if held.dtype.isnative and held.flags.aligned:
            numpy.testing.assert_allclose(link(x).array, expected, rtol=1e-5, atol=1e-6)
