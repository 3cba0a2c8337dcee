"""Memory shared with other libraries through DLPack."""

import ctypes

import numpy as np
import pytest

import renga


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "i", "l", "e", "f", "d"])
def test_out_and_in_share_memory(dtype):
    data = np.zeros((3, 4), dtype)[::-1, ::2]
    x = renga.Variable(data)
    outside = np.from_dlpack(x)
    data[0, 1] = 1
    np.testing.assert_array_equal(outside, data)
    assert np.shares_memory(outside, data)
    back = renga.from_dlpack(x)
    assert np.shares_memory(back.array, data) and back.array.strides == data.strides
    assert not back.requires_grad


def test_results_are_exported():
    y = renga.functions.exp(renga.Variable(np.ones((2, 3), "f")))
    outside = np.from_dlpack(y)
    del y
    np.testing.assert_allclose(outside, np.full((2, 3), np.e), rtol=1e-6)


def bfloat16_variable(values):
    # Products are the way in: times one here.
    x = np.asarray(values, "f")
    with renga.using_config("dtype", renga.mixed_bfloat16):
        y = renga.functions.linear(x.reshape(-1, 1), np.ones((1, 1), "f"))
    return renga.functions.reshape(y, x.shape)


class ManagedTensor(ctypes.Structure):
    """The structure that a capsule points to."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def head_of(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ManagedTensor.from_address(get(capsule, b"dltensor"))


def test_bfloat16_is_exported_without_a_copy():
    values = np.array([[1, -2.5, 3], [0.125, 1e30, -0.0]], "f")
    y = renga.functions.transpose(bfloat16_variable(values))
    assert y.__dlpack_device__() == (1, 0)
    capsule = y.__dlpack__(stream=None)
    head = head_of(capsule)
    assert (head.code, head.bits, head.lanes, head.device_type) == (4, 16, 1, 1)
    assert head.shape[: head.ndim] == [3, 2]
    strides = head.strides[: head.ndim]
    memory = (ctypes.c_uint16 * 6).from_address(head.data)
    found = np.array(
        [[memory[i * strides[0] + j * strides[1]] for j in (0, 1)] for i in (0, 1, 2)],
        "u4",
    )
    # The upper halves of float32 numbers, which these values fill.
    np.testing.assert_array_equal((found << 16).view("f")[:, 0], [1, -2.5, 3])
    assert (found << 16).view("f")[1, 1] == pytest.approx(1e30, rel=2**-8)
    address = head.data
    back = renga.from_dlpack(y)
    assert head_of(back.__dlpack__()).data == address
    np.testing.assert_array_equal(back.array, y.array)
    assert not back.requires_grad
    with pytest.raises(BufferError, match="shared, not copied"):
        y.__dlpack__(copy=True)


def test_bfloat16_memory_outlives_its_variable():
    y = bfloat16_variable(np.arange(1000))
    back = renga.from_dlpack(y)
    expected = y.array.copy()
    del y
    renga.functions.exp(bfloat16_variable(np.ones(1000)))  # would reuse freed memory
    np.testing.assert_array_equal(back.array, expected)
    z = renga.functions.sum(renga.functions.cast(back, "float32"))
    assert float(z.array) == pytest.approx(float(expected.sum()))


def test_an_exporter_may_keep_the_memory_itself():
    capsule = bfloat16_variable(np.arange(3)).__dlpack__()
    head_of(capsule).deleter = None
    x = renga._core.from_dlpack(capsule)
    np.testing.assert_array_equal(x.array, [0, 1, 2])
    del x, capsule
    unused = bfloat16_variable(np.ones(2)).__dlpack__()
    head_of(unused).deleter = None
    del unused


def test_a_capsule_is_taken_once():
    capsule = bfloat16_variable(np.ones(2)).__dlpack__()
    renga._core.from_dlpack(capsule)
    with pytest.raises(ValueError, match="not been consumed"):
        renga._core.from_dlpack(capsule)


def test_other_dtypes_are_refused_by_the_core():
    with pytest.raises(ValueError, match="expected numbers of a dtype"):
        renga._core.from_dlpack(np.ones(2, "c8").__dlpack__())


class ForeignArray:
    """An array of another library: it has the protocol's two methods alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_shared_both_ways():
    memory = np.zeros((3, 2), "f")
    x = renga.from_dlpack(ForeignArray(memory.T))
    memory[1, 0] = 5
    assert x.array[0, 1] == 5
    # Before NumPy 2.1, what it reads is read-only, which it does not hand on.
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert np.from_dlpack(x).ctypes.data == memory.ctypes.data
