"""Function: the old style, with arrays in backward."""

import gc
import weakref

import numpy
import pytest

import renga
import renga.functions as F
from renga import Function, Variable
from renga.utils.type_check import InvalidType, expect


class Product(Function):
    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)

    def forward_cpu(self, inputs):
        return (inputs[0] * inputs[1],)

    def backward_cpu(self, inputs, grad_outputs):
        (g,) = grad_outputs
        return g * inputs[1], g * inputs[0]


@pytest.fixture
def xy():
    rng = numpy.random.default_rng(0)
    return [Variable(rng.normal(size=(2, 3))) for _ in range(2)]


def test_gradients(xy):
    x, y = xy
    z = Product()(x, y)
    numpy.testing.assert_array_equal(z.array, x.array * y.array)
    F.sum(z).backward()
    numpy.testing.assert_array_equal(x.grad, y.array)
    numpy.testing.assert_array_equal(y.grad, x.array)


def test_several_outputs_of_which_one_is_used(xy):
    class Pair(Function):
        def forward(self, inputs):
            return inputs[0] + 1, inputs[0] * 2

        def backward(self, inputs, grad_outputs):
            seen.append([g is None for g in grad_outputs])
            return (grad_outputs[1] * 2,)

    seen = []
    x = xy[0]
    _, twice = Pair()(x)
    F.sum(twice).backward()
    assert seen == [[True, False]]
    numpy.testing.assert_array_equal(x.grad, numpy.full((2, 3), 2.0))


def test_none_for_an_input_without_gradient(xy):
    class First(Product):
        def backward(self, inputs, grad_outputs):
            return grad_outputs[0] * inputs[1], None

    x, y = xy
    F.sum(First()(x, y)).backward()
    numpy.testing.assert_array_equal(x.grad, y.array)
    assert y.grad is None


def test_no_gradient_unless_overridden(xy):
    class Constant(Function):
        def forward(self, inputs):
            return (numpy.ones(2),)

    y = Constant()(xy[0])
    F.sum(y).backward()
    assert xy[0].grad is None


def test_what_is_retained(xy):
    class Second(Function):
        def forward(self, inputs):
            self.retain_inputs((1,))
            self.retain_outputs((0,))
            return (inputs[0] * inputs[1],)

        def backward(self, inputs, grad_outputs):
            seen.append((inputs[0], self.output_data[0]))
            return grad_outputs[0] * inputs[1], None

    seen = []
    x, y = xy
    F.sum(Second()(x, y)).backward()
    assert seen[0][0] is None
    numpy.testing.assert_array_equal(seen[0][1], x.array * y.array)


def test_attributes_of_functions_and_nodes(xy):
    x, y = xy
    function = Product()
    assert function.inputs is None and function.rank == 0
    z = function(x * 2, y)
    assert z.creator is function
    assert z.creator_node is function.node
    assert z.creator_node.function is function
    assert z.creator_node.label == function.label == "Product"
    assert (function.rank, len(function.inputs), len(function.outputs)) == (1, 2, 1)
    again = function(x, y)
    assert again.creator is z.creator is function
    assert again.creator_node is not z.creator_node
    numpy.testing.assert_array_equal(again.array, x.array * y.array)
    function.unchain()
    assert again.creator is None and z.creator is function


def test_checks(xy):
    with pytest.raises(InvalidType, match="Product"):
        Product()(xy[0])
    with pytest.raises(NotImplementedError):
        Function()(xy[0])

    class Short(Product):
        def backward(self, inputs, grad_outputs):
            return (grad_outputs[0],)

    with pytest.raises(ValueError, match="Short: expected 2 gradients"):
        F.sum(Short()(*xy)).backward()


def test_a_hook_added_before_the_call(xy):
    class Labels(renga.FunctionHook):
        def forward_preprocess(self, function, in_data):
            seen.append(function.label)

        def backward_postprocess(self, function, in_data, out_grad):
            seen.append(out_grad[0].shape)

    seen = []
    function = Product()
    function.add_hook(Labels(), "labels")
    assert list(function.local_function_hooks) == ["labels"]
    F.sum(function(*xy)).backward()
    assert seen == ["Product", (2, 3)]


def test_the_graph_is_freed_without_the_garbage_collector(xy):
    gc.disable()
    try:
        array = numpy.ones(3)
        freed = weakref.ref(array)
        function = Product()
        y = function(Variable(array), xy[0].array[0])
        del array, y
        assert freed() is None
    finally:
        gc.enable()


class SquareOf(Function):
    """The square, of inputs that it retains by itself or not at all."""

    def __init__(self, retained):
        self.retained = retained

    def forward(self, inputs):
        self.retain_inputs(self.retained)
        self.x = inputs[0]
        return inputs[0] ** 2, inputs[0] + 1

    def backward(self, inputs, grad_outputs):
        gy, gz = (0 if g is None else g for g in grad_outputs)
        return (2 * self.x * gy + gz,)


@pytest.mark.parametrize("retained", [(0,), ()])
@pytest.mark.parametrize("inner", [lambda x: x, lambda x: x * x])
def test_a_second_differentiation_is_refused(inner, retained):
    x = Variable(numpy.array([2.0, -1.0]))
    y, _ = SquareOf(retained)(inner(x))
    (gx,) = renga.grad([y], [x], enable_double_backprop=True)
    power = 1 if inner(x) is x else 3
    numpy.testing.assert_allclose(gx.array, (power + 1) * x.array**power)
    with pytest.raises(RuntimeError, match='old style Function "SquareOf"'):
        F.sum(gx * gx).backward()


def test_second_derivatives_beside_an_old_function_are_computed():
    x, w = Variable(numpy.array([2.0])), Variable(numpy.array([3.0]))
    loss = SquareOf((0,))(x)[0] + w**3
    (gw,) = renga.grad([loss], [w], enable_double_backprop=True)
    (gw**2).backward()
    numpy.testing.assert_allclose(w.grad, 2 * 27 * 18)
