"""FunctionTestCase: its hooks, options and errors."""

import functools
import unittest

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import initializers, testing

Config = testing.BackendConfig
OWN = (testing.FunctionTestError, testing.LinkTestError)


def points(*shape, dtype="d"):
    n = int(np.prod(shape))
    return (0.5 + np.arange(n) * 0.37 % 1).reshape(shape).astype(dtype)


WORDS = (
    "double backward is not implemented correctly",
    "backward is not implemented correctly",
    "Outputs do not match the expected values",
    "Shapes and/or dtypes do not match",
    "Number of outputs",
    "Input arrays have been modified during forward",
    "Link does not have a parameter named",
    "must return a tuple",
    "of Variables",
)


def ended(run):
    """How a test ends: that it passes, is skipped, or its error's class and words."""
    try:
        run()
    except unittest.SkipTest as error:
        return ["skipped", str(error)]
    except OWN as error:
        return [type(error).__name__, [word for word in WORDS if word in str(error)]]
    except Exception as error:
        return type(error).__name__
    return "passes"


TESTS = ("test_forward", "test_backward", "test_double_backward", "test_initializers")


def tests_of(cls, **attributes):
    """How the tests of a case with these attributes end."""
    found = {}
    attributes = {
        name: as_method(value) if callable(value) else value
        for name, value in attributes.items()
    }
    case = type("Case", (cls,), attributes)
    for name in TESTS:
        if hasattr(case, name):
            test = case(name)
            test.setUp()
            found[name] = ended(functools.partial(getattr(test, name), Config({})))
    return found


def as_method(function):
    return lambda self, *args: function(*args)


class Square(testing.FunctionTestCase):
    def generate_inputs(self):
        return (points(2, 3),)

    def forward(self, inputs, device):
        return (inputs[0] ** 2,)

    def forward_expected(self, inputs):
        return (inputs[0] ** 2,)


class Product(testing.FunctionTestCase):
    def generate_inputs(self):
        return points(2, 3), points(3) + 1

    def forward(self, inputs, device):
        x, y = inputs
        y = F.broadcast_to(y, x.shape)
        return x * y, x * x * y

    def forward_expected(self, inputs):
        x, y = inputs
        return x * y, x * x * y


class Embedded(testing.FunctionTestCase):
    def generate_inputs(self):
        return np.array([0, 1, 1], "i"), points(2, 3)

    def forward(self, inputs, device):
        return (F.embed_id(*inputs) ** 2,)

    def forward_expected(self, inputs):
        return (inputs[1][inputs[0]] ** 2,)


class Half(chainer.FunctionNode):
    """A square, half of whose first or second derivative is missing."""

    def __init__(self, first=1.0, second=1.0):
        self.first, self.second = first, second

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, indexes, gys):
        (x,) = self.get_retained_inputs()
        fixed = x.array * (1 - self.second)
        return ((2 * x * self.second + 2 * fixed) * self.first * gys[0],)


def half(**options):
    return lambda inputs, device: Half(**options).apply(inputs)


def changing(inputs, device):
    y = inputs[0] ** 2
    inputs[0].array[...] = 0
    return (y,)


class Single(Square):
    def generate_inputs(self):
        return (points(2, 3, dtype="f"),)


EXPRESSIONS = """
tests_of(Square)
tests_of(Product)
tests_of(Embedded)
tests_of(Single)
tests_of(Square, forward=lambda inputs, device: (inputs[0] ** 3,))
tests_of(Square, forward=lambda inputs, device: inputs[0] ** 2)
tests_of(Square, forward=lambda inputs, device: [inputs[0] ** 2])
tests_of(Square, forward=lambda inputs, device: (inputs[0].array ** 2,))
tests_of(Square, forward=lambda inputs, device: (inputs[0] ** 2, inputs[0]))
tests_of(Square, forward=lambda inputs, device: (None,))
tests_of(Square, forward=lambda inputs, device: ())
tests_of(Square, forward=lambda inputs, device: 1 / 0)
tests_of(Square, forward=half())
tests_of(Square, forward=half(first=.5))
tests_of(Square, forward=half(second=.5))
tests_of(Square, forward=changing)
tests_of(Square, forward=lambda inputs, device: (inputs[0][0] ** 2,))
tests_of(Square, forward=lambda inputs, device: (F.cast(inputs[0] ** 2, 'f'),))
tests_of(Square, forward_expected=lambda inputs: inputs[0] ** 2)
tests_of(Square, forward_expected=lambda inputs: [inputs[0] ** 2])
tests_of(Square, forward_expected=lambda inputs: (chainer.Variable(inputs[0] ** 2),))
tests_of(Square, forward_expected=lambda inputs: ((inputs[0] ** 2).astype('f'),))
tests_of(Square, forward_expected=lambda inputs: (inputs[0][0] ** 2,))
tests_of(Square, forward_expected=lambda inputs: (inputs[0] ** 3,))
tests_of(Square, forward_expected=lambda inputs: (inputs[0] ** 2, inputs[0]))
tests_of(Square, forward_expected=lambda inputs: 1 / 0)
tests_of(Square, generate_inputs=lambda: [points(2)])
tests_of(Square, generate_inputs=lambda: points(2))
tests_of(Square, generate_inputs=lambda: ([1., 2.],))
tests_of(Square, generate_inputs=lambda: (chainer.Variable(points(2)),))
tests_of(Square, generate_inputs=lambda: (points(),))
tests_of(Square, generate_inputs=lambda: (points(0),))
tests_of(Square, generate_inputs=lambda: (points(2, dtype='e'),))
tests_of(Square, generate_inputs=lambda: (points(2, dtype='e'),), numerical_grad_dtype=None)
tests_of(Square, generate_inputs=lambda: (points(2),), numerical_grad_dtype='i')
tests_of(Square, generate_inputs=lambda: (np.zeros(2),), forward=lambda inputs, device: (abs(inputs[0]),), forward_expected=lambda inputs: (abs(inputs[0]),))
tests_of(Square, generate_grad_outputs=lambda ys: points(2, 3))
tests_of(Square, generate_grad_outputs=lambda ys: [points(2, 3)])
tests_of(Square, generate_grad_outputs=lambda ys: (points(2, 3),))
tests_of(Square, generate_grad_outputs=lambda ys: (points(2, 3, dtype='f'),))
tests_of(Square, generate_grad_outputs=lambda ys: (points(3),))
tests_of(Square, generate_grad_outputs=lambda ys: (points(2, 3), points(2, 3)))
tests_of(Square, generate_grad_outputs=lambda ys: (None,))
tests_of(Product, generate_grad_outputs=lambda ys: (points(2, 3), None))
tests_of(Square, generate_grad_grad_inputs=lambda xs: points(2, 3))
tests_of(Square, generate_grad_grad_inputs=lambda xs: (points(3),))
tests_of(Square, generate_grad_grad_inputs=lambda xs: (None,))
tests_of(Product, generate_grad_grad_inputs=lambda xs: (points(2, 3), None))
tests_of(Embedded, generate_grad_grad_inputs=lambda xs: (None, points(2, 3)))
tests_of(Square, skip_forward_test=True)
tests_of(Square, skip_backward_test=True)
tests_of(Square, skip_double_backward_test=True)
tests_of(Square, contiguous='C')
tests_of(Square, contiguous='F')
tests_of(Square, check_forward_outputs=lambda ys, expected: None, forward_expected=lambda inputs: (inputs[0] ** 3,))
tests_of(testing.FunctionTestCase)
testing.FunctionTestCase('test_forward').check_forward_options
testing.FunctionTestCase('test_forward').check_backward_options
testing.FunctionTestCase('test_forward').check_double_backward_options
testing.FunctionTestCase.check_forward_options, testing.FunctionTestCase.contiguous
testing.FunctionTestCase.numerical_grad_dtype, testing.FunctionTestCase.dodge_nondifferentiable
testing.FunctionTestError.check(True, 'text')
testing.FunctionTestError.check(False, 'text')
testing.FunctionTestError.fail('text')
issubclass(testing.FunctionTestError, AssertionError), issubclass(testing.LinkTestError, testing.FunctionTestError)
"""


class Strict(Square):
    """Three quarters of the gradient of a square."""

    options = {}

    def setUp(self):
        self.check_forward_options.update(self.options)
        self.check_forward_options.pop("eps", None)
        self.check_backward_options.update(self.options)
        self.check_double_backward_options.update(self.options)

    def forward(self, inputs, device):
        return Half(first=0.75).apply(inputs)


def case_options_of_checks():
    """Tolerances that let wrong gradients pass, and strict ones."""
    every = ({"atol": 10}, {"rtol": 1, "atol": 0}, {"eps": 0.5}, {"atol": 1e-9})
    return [tests_of(Strict, options=options) for options in every]


def case_options_replaced():
    class Case(Square):
        def setUp(self):
            self.check_backward_options = {"dtype": "f"}

    return tests_of(Case)


def case_unknown_option():
    class Case(Square):
        def setUp(self):
            self.check_forward_options = {"other": 1}
            self.check_backward_options = {"other": 1}
            self.check_double_backward_options = {"other": 1}

    return tests_of(Case)


def case_dodging():
    """Inputs are drawn again until they are not at a kink."""
    drawn = []

    class Case(Square):
        dodge_nondifferentiable = True

        def generate_inputs(self):
            drawn.append(0)
            return (np.zeros(2) if len(drawn) % 13 else np.ones(2),)

        def forward(self, inputs, device):
            return (F.absolute(inputs[0]) ** 3 + F.absolute(inputs[0]),)

        def forward_expected(self, inputs):
            x = abs(inputs[0])
            return (x**3 + x,)

    test = Case("test_backward")
    test.test_backward(Config({}))
    return len(drawn)


def case_dodging_wrong_gradients():
    return tests_of(Square, dodge_nondifferentiable=True, forward=half(first=0.5))


def case_raise_if_fail():
    found = []
    for raised in (AssertionError("inner"), KeyError("inner")):
        try:
            with testing.FunctionTestError.raise_if_fail("outer"):
                raise raised
        except Exception as error:
            found.append((type(error).__name__, "outer" in str(error)))
    return found


def case_raise_if_fail_of_other_errors():
    with testing.LinkTestError.raise_if_fail("outer", (KeyError, ValueError)):
        raise KeyError("inner")
