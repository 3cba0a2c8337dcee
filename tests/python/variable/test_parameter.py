"""Parameter: initialization and gradients."""

import copy
import pickle

import numpy
import pytest

import renga
from renga import Parameter, initializers
from renga.optimizers import MomentumSGD


def test_from_a_number_and_a_shape():
    param = Parameter(3, (2, 1), name="w")
    numpy.testing.assert_array_equal(param.array, [[3], [3]])
    assert param.dtype == numpy.float32
    assert param.name == "w"
    assert param.requires_grad
    assert param.is_initialized
    # NaN: no gradient has been computed.
    numpy.testing.assert_array_equal(param.grad, [[numpy.nan], [numpy.nan]])


def test_from_an_array():
    array = numpy.arange(3.0)
    param = Parameter(array)
    assert param.array is array
    assert param.grad is None
    copied = Parameter(array, (3,))
    copied.array[...] = 9
    assert array[0] == 0


def test_without_an_initializer_it_is_nan():
    assert numpy.isnan(Parameter(shape=(2,)).array).all()


def test_uninitialized():
    param = Parameter(2.0)
    assert not param.is_initialized
    assert param.array is None
    assert param.grad is None
    assert param.dtype == numpy.float32
    assert str(param) == "variable(None)"
    param.initialize((2,))
    numpy.testing.assert_array_equal(param.array, [2, 2])
    assert numpy.isnan(param.grad).all()


def test_cleargrad_and_zerograd_before_the_array():
    cleared, zeroed = Parameter(2.0), Parameter(2.0)
    cleared.cleargrad()
    zeroed.zerograd()
    for param in (cleared, zeroed):
        param.initialize((3,))
    assert cleared.grad is None
    numpy.testing.assert_array_equal(zeroed.grad, [0, 0, 0])


def test_dtype_follows_initializer_and_config():
    assert Parameter(initializers.Normal(dtype="f8")).dtype == numpy.float64
    assert Parameter(initializers.Normal(dtype="f8"), (2,)).dtype == numpy.float64
    with renga.using_config("dtype", numpy.float16):
        assert Parameter(1.0).dtype == numpy.float16
        assert Parameter(1.0, (2,)).dtype == numpy.float16


def test_copydata_initializes_an_uninitialized_parameter():
    full = Parameter(numpy.arange(3.0))
    empty = Parameter(0.0)
    empty.copydata(full)
    numpy.testing.assert_array_equal(empty.array, [0, 1, 2])
    source = Parameter(5.0)
    full.copydata(source)
    numpy.testing.assert_array_equal(full.array, [5, 5, 5])
    assert source.shape == (3,)
    Parameter().copydata(Parameter())
    with pytest.raises(ValueError, match=r"\(3,\)"):
        full.copydata(Parameter(0.0, (1,)))


def test_addgrad():
    param = Parameter(0.0, (2,))
    other = Parameter(0.0, (2,))
    other.grad = numpy.array([1, 2], numpy.float32)
    param.cleargrad()
    param.addgrad(other)
    param.addgrad(other)
    numpy.testing.assert_array_equal(param.grad, [2, 4])
    numpy.testing.assert_array_equal(other.grad, [1, 2])
    lazy = Parameter(0.0)
    lazy.addgrad(other)
    numpy.testing.assert_array_equal(lazy.grad, [1, 2])


def test_update_calls_the_rule():
    param = Parameter(1.0, (2,))
    param.update()
    numpy.testing.assert_array_equal(param.array, [1, 1])
    param.update_rule = MomentumSGD(lr=0.5).create_update_rule()
    param.grad = numpy.ones(2, numpy.float32)
    param.update()
    numpy.testing.assert_array_equal(param.array, [0.5, 0.5])


def make_trained():
    param = Parameter(1.0, (2,), name="w")
    param.update_rule = MomentumSGD().create_update_rule()
    param.grad = numpy.ones(2, numpy.float32)
    param.update()
    return param


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_deep_copies_share_nothing(duplicate):
    param = make_trained()
    clone = duplicate(param)
    assert type(clone) is Parameter
    assert clone.name == "w"
    numpy.testing.assert_array_equal(clone.array, param.array)
    numpy.testing.assert_array_equal(clone.grad, param.grad)
    assert clone.update_rule is not param.update_rule
    numpy.testing.assert_array_equal(
        clone.update_rule.state["v"], param.update_rule.state["v"]
    )
    before = param.array.copy()
    clone.update()
    numpy.testing.assert_array_equal(param.array, before)


def test_shallow_copy_shares_the_array_and_the_rule():
    param = make_trained()
    clone = copy.copy(param)
    assert clone.array is param.array
    assert clone.update_rule is param.update_rule
    clone.cleargrad()
    assert param.grad is not None


def test_uninitialized_survives_pickling():
    clone = pickle.loads(pickle.dumps(Parameter(3.0, name="w")))
    clone.initialize((1,))
    numpy.testing.assert_array_equal(clone.array, [3])
    assert clone.name == "w"


def test_to_device_before_the_array():
    param = Parameter(1.0)
    param.to_device("@numpy")
    assert param.device == renga.backend.CpuDevice()
    param.initialize((2,))
    assert param.device == renga.backend.CpuDevice()


def test_copies_of_a_parameter_whose_array_was_replaced():
    """The gradient that it still has is of the array of before."""
    param = Parameter(1.0, (2, 3))
    param.array = param.array.astype("e")
    for clone in (copy.copy(param), copy.deepcopy(param)):
        assert clone.dtype == numpy.float16 and clone.grad is None
        numpy.testing.assert_array_equal(clone.array, 1)
