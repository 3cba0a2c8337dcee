"""Batches as arrays: structure, padding, devices, converters."""

import numpy
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from renga import backend
from renga.dataset import (
    ConcatWithAsyncTransfer,
    Converter,
    concat_examples,
    convert,
    converter,
    to_device,
)

CPU = backend.get_device("@numpy")


def array(*shape, start=0.0, dtype=numpy.float32):
    return numpy.arange(start, start + numpy.prod(shape), dtype=dtype).reshape(shape)


def test_arrays_and_numbers():
    x = concat_examples([array(2, 3), array(2, 3, start=6)])
    numpy.testing.assert_array_equal(x, array(2, 2, 3))
    assert x.dtype == numpy.float32
    labels = concat_examples([numpy.int32(4), numpy.int32(5)])
    assert labels.dtype == numpy.int32 and labels.tolist() == [4, 5]
    assert concat_examples([1, 2]).dtype == numpy.int64
    assert concat_examples([0.5, 2]).tolist() == [0.5, 2.0]
    assert concat_examples([True, False]).dtype == bool


def test_tuples_and_dictionaries_keep_their_structure():
    x, t = concat_examples([(array(3), 1), (array(3), 2)])
    assert x.shape == (2, 3) and t.tolist() == [1, 2]
    batch = concat_examples([{"x": array(3), "t": 1}, {"x": array(3), "t": 2}])
    assert list(batch) == ["x", "t"]
    assert batch["x"].shape == (2, 3) and batch["t"].tolist() == [1, 2]


@given(
    st.lists(
        hnp.arrays(numpy.float64, st.tuples(*[st.integers(0, 4)] * 2)),
        min_size=1,
        max_size=5,
    )
)
def test_padding_fills_up_the_ends(arrays):
    joined = concat_examples(arrays, padding=-7.0)
    height = max(a.shape[0] for a in arrays)
    width = max(a.shape[1] for a in arrays)
    want = [
        numpy.pad(
            a,
            [(0, height - a.shape[0]), (0, width - a.shape[1])],
            constant_values=-7.0,
        )
        for a in arrays
    ]
    numpy.testing.assert_array_equal(joined, numpy.stack(want))


def test_padding_of_single_values():
    labels = [numpy.array(1, "i2"), numpy.array(2, "i2")]
    joined = concat_examples([(array(3), labels[0]), (array(2), labels[1])], padding=9)
    assert joined[1].tolist() == [1, 2] and joined[1].dtype == numpy.int16


def test_padding_by_element():
    batch = [(array(3), array(2)), (array(2), array(2))]
    x, y = concat_examples(batch, padding=(-1, None))
    assert x.tolist() == [[0, 1, 2], [0, 1, -1]] and y.shape == (2, 2)
    batch = [{"x": array(3)}, {"x": array(2)}]
    assert concat_examples(batch, padding={"x": 9})["x"][1].tolist() == [0, 1, 9]
    assert concat_examples(batch, padding=9)["x"][1].tolist() == [0, 1, 9]
    assert concat_examples([1, 2], padding=0).tolist() == [1, 2]


def test_the_result_shares_no_memory():
    x = array(3)
    concat_examples([x])[0, 0] = 5
    assert x[0] == 0


def test_faults():
    with pytest.raises(ValueError, match="empty batch"):
        concat_examples([])
    with pytest.raises(ValueError, match=r"one shape .* got \(2,\), \(3,\)"):
        concat_examples([array(3), array(2)])
    with pytest.raises(ValueError, match="same number of axes"):
        concat_examples([array(3), array(2, 2)], padding=0)
    with pytest.raises(TypeError, match="expected arrays or numbers, got NoneType"):
        concat_examples([None, None])
    with pytest.raises(TypeError):
        concat_examples()


@pytest.mark.parametrize("device", [None, -1, "@numpy", CPU])
def test_devices(device):
    x = array(3)
    assert to_device(device, x) is x
    assert concat_examples([x], device).shape == (1, 3)
    assert concat_examples([x], device=device).shape == (1, 3)


def test_a_converter_gets_a_device():
    @converter()
    def convert_batch(batch, device):
        return batch, device

    assert isinstance(convert_batch, Converter)
    assert isinstance(concat_examples, Converter)
    for device in (-1, "@numpy", CPU):
        assert convert_batch([1], device) == ([1], CPU)
    assert convert_batch([1], device=-1) == ([1], CPU)
    assert convert_batch([1], None) == ([1], None)
    with pytest.raises(TypeError):
        convert_batch([1])
    with pytest.raises(NotImplementedError):
        Converter()([1], None)


def test_the_updater_calls_old_converters_with_a_number():
    def old(batch, device):
        return batch, device

    assert convert._call_converter(old, [1], CPU) == ([1], -1)
    assert convert._call_converter(old, [1], None) == ([1], None)
    new = converter()(old)
    assert convert._call_converter(new, [1], CPU) == ([1], CPU)


def test_the_arguments_of_a_batch_are_by_position_or_by_name():
    def arguments(batch):
        return convert.arguments_from(lambda batch, device: batch, batch, None)

    assert arguments((1, 2)) == ((1, 2), {})
    assert arguments({"x": 1}) == ((), {"x": 1})
    assert arguments([1, 2]) == (([1, 2],), {})


def test_concat_with_async_transfer_concatenates():
    x, t = ConcatWithAsyncTransfer()([(array(3), 1), (array(2), 2)], -1, padding=0)
    assert x.shape == (2, 3) and t.tolist() == [1, 2]
