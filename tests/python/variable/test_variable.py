"""The methods of Variable that are written in Python."""

import copy
import operator
import pickle

import numpy
import pytest

import renga
from renga import Variable


@pytest.fixture
def x():
    return Variable(numpy.arange(6, dtype="f").reshape(2, 3), name="x")


# Each text is what Chainer 7.8.1 prints.
@pytest.mark.parametrize(
    ("array", "name", "as_repr", "as_str"),
    [
        (
            numpy.arange(4.0).reshape(2, 2),
            None,
            "variable([[0., 1.],\n          [2., 3.]])",
            "variable([[0. 1.]\n          [2. 3.]])",
        ),
        (
            numpy.array([[1], [2]]),
            "n",
            "variable n([[1],\n            [2]])",
            "variable n([[1]\n            [2]])",
        ),
        (numpy.array(3.0), None, "variable(3.)", "variable(3.)"),
        (numpy.zeros((0, 3)), None, "variable([], shape=(0, 3))", "variable([])"),
        (numpy.zeros(0), None, "variable([])", "variable([])"),
        (None, None, "variable(None)", "variable(None)"),
    ],
)
def test_text(array, name, as_repr, as_str):
    var = Variable(array, name=name)
    assert repr(var) == as_repr
    assert str(var) == as_str
    assert renga.variable.variable_repr(var) == as_repr
    assert renga.variable.variable_str(var) == as_str


def test_labels(x):
    assert x.label == x.node.label == "(2, 3), float32"
    assert Variable(numpy.array(3)).label == "int64"
    assert x.summary() == "<variable x>"
    assert Variable(x.array).summary().startswith("<variable at 0x")


def test_debug_print(x):
    text = x.debug_print()
    assert "- shape: (2, 3)\n- dtype: float32" in text
    assert "- statistics: mean=2.50000000, std=1.7078" in text
    assert text.endswith("- grad: None")
    assert (
        Variable(None)
        .debug_print()
        .endswith("- dtype: None\n- statistics: None\n- grad: None")
    )
    assert "no elements" in Variable(numpy.zeros((0, 2))).debug_print()


@pytest.mark.parametrize("name", ["lt", "le", "eq", "ne", "gt", "ge"])
def test_comparison_raises(x, name):
    compare = getattr(operator, name)
    for other in (x, 1, None):
        with pytest.raises(TypeError):
            compare(x, other)


def test_no_truth_value_and_no_hash(x):
    for var in (x, Variable(numpy.array(1.0))):
        with pytest.raises(TypeError):
            bool(var)
        with pytest.raises(TypeError):
            hash(var)


def test_other_shapes(x):
    a = x.array
    for y in (x.reshape(3, 2), x.reshape((3, 2)), x.reshape([3, -1])):
        numpy.testing.assert_array_equal(y.array, a.reshape(3, 2))
    assert x.reshape(-1).shape == (6,)
    b = Variable(numpy.arange(24.0).reshape(2, 3, 4))
    for y in (b.transpose(2, 0, 1), b.transpose((2, 0, 1)), b.transpose([2, 0, 1])):
        numpy.testing.assert_array_equal(y.array, b.array.transpose(2, 0, 1))
    for y in (b.transpose(), b.transpose(None), b.T):
        numpy.testing.assert_array_equal(y.array, b.array.T)


def test_mean_and_item(x):
    assert x.mean().item() == 2.5
    assert x.mean(axis=1, keepdims=True).array.tolist() == [[1.0], [4.0]]
    weighted = x.mean(0, weights=numpy.array([1, 3], "f"))
    assert weighted.array.tolist() == [2.25, 3.25, 4.25]
    with pytest.raises(ValueError):
        x.item()


def test_sequence_protocol(x):
    assert len(x) == 2
    assert [row.array.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError):
        len(Variable(numpy.array(1.0)))
    assert (+x) is x


def test_creator(x):
    assert x.creator is None and x.creator_node is None
    y = x * 2
    assert y.creator is y.creator_node
    assert y.creator.label == y.node.creator.label == "_ * _"
    y.creator = None
    assert y.creator_node is None


def test_a_python_function_can_be_made_the_creator(x):
    class Twice(renga.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2,)

    (y,) = Twice().apply((x,))
    z = Variable(y.array)
    for connect in (z.set_creator_node, z.set_creator, z.node.set_creator):
        connect(y.creator_node)
        assert z.creator is y.creator
        z.unchain()
        assert z.creator is None


@pytest.mark.parametrize("via", ["pickle", "deepcopy"])
def test_copies(x, via):
    x.grad = x.array + 1
    x.remark = ["an attribute"]
    y = pickle.loads(pickle.dumps(x)) if via == "pickle" else copy.deepcopy(x)
    assert type(y) is Variable
    assert (y.name, y.requires_grad, y.remark) == ("x", True, ["an attribute"])
    numpy.testing.assert_array_equal(y.array, x.array)
    numpy.testing.assert_array_equal(y.grad, x.grad)
    assert not numpy.shares_memory(y.array, x.array)
    constant = Variable(x.array, requires_grad=False)
    assert not copy.deepcopy(constant).requires_grad
    assert copy.deepcopy(x * 2).creator is None
    assert copy.deepcopy(Variable(None)).array is None


def test_a_shallow_copy_shares_the_array(x):
    y = copy.copy(x)
    assert y is not x
    assert numpy.shares_memory(y.array, x.array)


def test_copydata(x):
    y = Variable(numpy.zeros((2, 3), "f"))
    array = y.array
    y.copydata(x)
    assert y.array is array
    numpy.testing.assert_array_equal(array, x.array)
    y.copydata(Variable(None))
    numpy.testing.assert_array_equal(array, x.array)
    parameter = renga.Parameter(0)
    parameter.copydata(x)
    numpy.testing.assert_array_equal(parameter.array, x.array)


def test_zerograd(x):
    with pytest.warns(DeprecationWarning):
        x.zerograd()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_devices(x):
    assert x.xp is numpy
    assert x.device == renga.get_device("@numpy")
    array = x.array
    x.to_cpu()
    x.to_device("@numpy")
    x.from_chx()
    assert x.array is array
    for move in (x.to_gpu, x.to_intel64, x.to_chx, lambda: x.to_device("@cupy:1")):
        with pytest.raises(RuntimeError):
            move()
    with pytest.raises(ValueError):
        x.chx_array  # noqa: B018


def test_as_variable_and_as_array(x):
    assert renga.as_variable(x) is x
    y = renga.as_variable(x.array)
    assert not y.requires_grad
    assert y.array is x.array
    assert renga.as_array(x) is x.array
    assert renga.as_array(x.array) is x.array
    with pytest.raises(TypeError):
        renga.as_variable([1.0])


@pytest.mark.parametrize(
    "use",
    [
        lambda v: v + 1,
        lambda v: 1 - v,
        lambda v: -v,
        lambda v: v * numpy.ones(2),
        lambda v: numpy.ones(2) * v,
        lambda v: Variable(numpy.ones(2)) + v,
        lambda v: renga.functions.exp(v),
        lambda v: v.shape,
        lambda v: v.backward(),
    ],
)
def test_a_variable_without_an_array_refuses_work(use):
    with pytest.raises(RuntimeError, match="array"):
        use(Variable(None))


def test_the_module_has_chainers_names(x):
    assert renga.variable.Parameter is renga.Parameter
    assert isinstance(x.node, renga.variable.VariableNode)
    with pytest.raises(AttributeError):
        renga.variable.Nothing  # noqa: B018


def test_gradient_of_another_shape_or_dtype(x):
    with pytest.raises(ValueError):
        x.grad = numpy.zeros(3, "f")
    with pytest.raises(TypeError):
        x.grad = numpy.zeros((2, 3), "d")
    with pytest.raises(TypeError):
        x.grad = [1.0]
