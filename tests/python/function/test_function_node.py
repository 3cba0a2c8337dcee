"""FunctionNode: functions written in Python, in the same graph as the core's."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import FunctionNode, Variable, gradient_check
from renga.core.around_call import surrounding
from renga.utils import type_check


class Product(FunctionNode):
    """x y, written as a user would."""

    def check_type_forward(self, in_types):
        type_check.argname(in_types, ("x", "y"))
        x_type, y_type = in_types
        type_check.expect(x_type.dtype.kind == "f", x_type.shape == y_type.shape)

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        return (inputs[0] * inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        x, y = self.get_retained_inputs()
        (g,) = grad_outputs
        return tuple((g * y, g * x)[i] for i in target_input_indexes)


class ExpAndTwice(FunctionNode):
    """exp(x) and 2 x; the gradient uses the first output."""

    def forward_cpu(self, inputs):
        self.retain_outputs((0,))
        return numpy.exp(inputs[0]), inputs[0] * 2

    def backward(self, target_input_indexes, grad_outputs):
        g_exp, g_twice = grad_outputs
        (y,) = self.get_retained_outputs()
        terms = [] if g_exp is None else [g_exp * y]
        terms += [] if g_twice is None else [g_twice * 2]
        return (sum(terms[1:], terms[0]),)


def arrays(n=2, shape=(2, 3)):
    rng = numpy.random.default_rng(0)
    return [rng.uniform(0.5, 2, shape) for _ in range(n)]


def test_first_and_second_gradients():
    def product(x, y):
        return Product().apply((x, y))[0]

    x, y, gy, ggx, ggy = arrays(5)
    gradient_check.check_backward(product, (x, y), gy)
    gradient_check.check_double_backward(product, (x, y), gy, (ggx, ggy))

    def both(x):
        return ExpAndTwice().apply((x,))

    gradient_check.check_backward(both, x, (gy, ggx))
    gradient_check.check_backward(both, x, (None, ggx))
    gradient_check.check_double_backward(both, x, (gy, ggx), ggy)


def test_a_retained_output_without_other_references_is_available():
    (a,) = arrays(1)
    x = Variable(a)
    twice = ExpAndTwice().apply((x,))[0]
    loss = F.sum(twice * twice)
    del twice
    loss.backward(enable_double_backprop=True)
    numpy.testing.assert_allclose(x.grad, 2 * numpy.exp(2 * a))
    gx = x.grad_var
    x.cleargrad()
    F.sum(gx).backward()
    numpy.testing.assert_allclose(x.grad, 4 * numpy.exp(2 * a))


def test_properties_in_the_graph():
    x, y = (Variable(a) for a in arrays())
    node = Product()
    assert (node.label, node.rank, node.inputs, node.outputs) == (
        "Product",
        0,
        None,
        None,
    )
    (z,) = node.apply((x * 2, y))
    assert z.creator is z.creator_node is node
    assert (node.rank, z.rank) == (1, 2)
    assert [v.get_variable_or_none() for v in node.inputs][1] is y
    assert node.outputs[0]() == z.node
    node.unchain()
    assert z.creator is None


def test_output_data():
    (a,) = arrays(1)
    node = ExpAndTwice()
    outputs = node.apply((Variable(a),))
    numpy.testing.assert_array_equal(node.output_data[0], numpy.exp(a))
    assert node.output_data[1] is None
    assert len(outputs) == 2
    with pytest.raises(RuntimeError):
        Product().output_data  # noqa: B018


def test_outside_the_graph():
    x, y = arrays()
    node = Product()
    (z,) = node.apply((x, y))
    assert node.inputs is None and z.creator is None and not z.requires_grad
    with renga.no_backprop_mode():
        assert Product().apply((Variable(x), y))[0].creator is None
    assert node.get_retained_inputs() == ()
    assert ExpAndTwice().get_retained_outputs() == ()


def test_only_the_target_gradients_are_computed():
    class Spy(Product):
        def backward(self, target_input_indexes, grad_outputs):
            asked.append(target_input_indexes)
            return super().backward(target_input_indexes, grad_outputs)

    asked = []
    x, y = arrays()
    x = Variable(x)
    F.sum(Spy().apply((x, y))[0]).backward()
    assert asked == [(0,)]
    numpy.testing.assert_array_equal(x.grad, y)


def test_no_gradient_by_default():
    class Step(FunctionNode):
        def forward(self, inputs):
            return (numpy.sign(inputs[0]),)

    x = Variable(arrays(1)[0])
    (y,) = Step().apply((x,))
    y.grad = numpy.ones((2, 3))
    y.backward()
    assert x.grad is None


def test_backward_accumulate_may_be_overridden():
    class Accumulating(FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 3,)

        def backward_accumulate(self, indexes, grad_outputs, grad_inputs):
            seen.append(grad_inputs[0] is None)
            g = grad_outputs[0] * 3
            return (g if grad_inputs[0] is None else grad_inputs[0] + g,)

    seen = []
    x = Variable(numpy.ones(2))
    y = Accumulating().apply((x,))[0] + Accumulating().apply((x,))[0]
    F.sum(y).backward()
    assert x.grad.tolist() == [6, 6]
    assert seen == [True, True] or seen == [True, False]


def test_a_method_overridden_on_one_instance_runs():
    node = Product()
    node.forward = lambda inputs: (inputs[0] + inputs[1],)
    (y,) = node.apply((numpy.ones(2), numpy.ones(2)))
    assert y.array.tolist() == [2, 2]


def test_type_checks():
    with pytest.raises(
        type_check.InvalidType,
        match=r"Product \(Forward\)\n\nExpect: x.shape == y.shape\nActual: \(2,\) != ",
    ):
        Product().apply((numpy.ones(2), numpy.ones(3)))
    with pytest.raises(type_check.InvalidType, match="2 arguments"):
        Product().apply((numpy.ones(2),))
    with renga.using_config("type_check", False):
        (y,) = Product().apply((numpy.ones(3, "i"), numpy.ones(3)))
        assert y.shape == (3,)


@pytest.mark.parametrize("output", [numpy.ones(2), [numpy.ones(2)], ([1.0],), (None,)])
def test_forward_must_return_a_tuple_of_arrays(output):
    node = Product()
    node.forward = lambda inputs: output
    with pytest.raises(TypeError, match=r"forward output must be a tuple.*\(Product\)"):
        node.apply((numpy.ones(2), numpy.ones(2)))


@pytest.mark.parametrize(
    ("backward", "error"),
    [
        (lambda i, g: (g[0],), ValueError),
        (lambda i, g: g[0], ValueError),
        (lambda i, g: (g[0][:1], g[0]), ValueError),
        (lambda i, g: (F.cast(g[0], "f"), g[0]), (TypeError, ValueError)),
    ],
)
def test_backward_must_return_fitting_gradients(backward, error):
    node = Product()
    (z,) = node.apply([Variable(a) for a in arrays()])
    node.backward = backward
    z.grad = numpy.ones((2, 3))
    with pytest.raises(error, match="Product"):
        z.backward()


def test_apply_is_not_a_call():
    with pytest.raises(RuntimeError, match="apply"):
        Product()(numpy.ones(2), numpy.ones(2))
    with pytest.raises(NotImplementedError):
        FunctionNode().apply((numpy.ones(2),))


def test_debug_mode_names_the_function_that_made_nan():
    class Bad(FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * numpy.nan,)

    assert numpy.isnan(Bad().apply((numpy.ones(2),))[0].array).all()
    with renga.DebugMode(True), pytest.raises(RuntimeError, match="Bad.*NaN"):
        Bad().apply((numpy.ones(2),))


def test_debug_mode_keeps_the_stack_of_the_caller():
    """A handler around the calls, as that of gathered parameters, is none of it."""
    for handler in (None, lambda call: call.run()):
        with renga.DebugMode(True), surrounding(handler):
            node = Product()
            node.apply((numpy.ones(2), numpy.ones(2)))
        assert node.stack[-1].name == "test_debug_mode_keeps_the_stack_of_the_caller"


def test_grad():
    x, y = (Variable(a) for a in arrays())
    z = Product().apply((x, y))[0]
    gx, gy = renga.grad([z], (x, y))
    numpy.testing.assert_array_equal(gx.array, y.array)
    numpy.testing.assert_array_equal(gy.array, x.array)
    assert x.grad is None
    start = Variable(numpy.full((2, 3), 2.0))
    (gx,) = renga.grad([z], [x], [start], [start], set_grad=True)
    numpy.testing.assert_array_equal(gx.array, 2 * y.array + 2)
    assert x.grad_var is gx
    with pytest.raises(TypeError):
        renga.grad(z, [x])
    with pytest.raises(TypeError):
        renga.grad([z], x)


def test_backward_from_several_outputs():
    x = Variable(numpy.ones(2))
    y, z = x * 2, x * 3
    starts = [Variable(numpy.array(g)) for g in ([1.0, 2], [10.0, 20])]
    renga.backward([y, z], starts)
    assert x.grad.tolist() == [32, 64]
