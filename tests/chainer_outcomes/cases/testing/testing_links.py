"""LinkTestCase and LinkInitializersTestCase: their hooks, options and errors."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from cases.testing.testing_calls import calls_of
from cases.testing.testing_functions import Config, points, tests_of
from chainer import initializers, testing

LINK_METHODS = (
    "before_test generate_params create_link generate_inputs forward forward_expected "
    "generate_grad_outputs check_forward_outputs"
)

EXPRESSIONS = """
tests_of(testing.LinkTestCase)
tests_of(testing.LinkInitializersTestCase)
testing.LinkTestCase.param_names, testing.LinkTestCase.numerical_grad_dtype
testing.LinkInitializersTestCase.param_names, testing.LinkInitializersTestCase.contiguous
testing.LinkInitializersTestCase('test_initializers').check_initializers_options
testing.LinkTestError.check([], 'text')
testing.LinkTestError.fail('text', KeyError('other'))
testing.InitializerArgument(None, 0).expected_initializer
testing.InitializerArgument(None, 0).argument_value
testing.InitializerArgument(None, None)
testing.InitializerArgument(1, 'text')
testing.InitializerArgument(1, [1, 2])
testing.InitializerArgument('text', initializers.One()).argument_value
isinstance(testing.InitializerArgument(1, 2), tuple)
tests_of(Linear)
tests_of(Linear, generate_params=lambda: [points(2, 3), 0.5])
tests_of(Linear, generate_params=lambda: (initializers.Constant(.3), initializers.One()))
tests_of(Linear, generate_params=lambda: (testing.InitializerArgument(points(2, 3), .5), 0))
tests_of(Linear, generate_params=lambda: (None, 0))
tests_of(Linear, generate_params=lambda: (testing.InitializerArgument(None, 0), 0))
tests_of(Linear, generate_params=lambda: ('text', 0))
tests_of(Linear, generate_params=lambda: (np.random.normal, 0))
tests_of(Linear, generate_params=lambda: points(2, 3))
tests_of(Linear, generate_params=lambda: {1: 2})
tests_of(Linear, generate_params=lambda: (points(2, 2), 0))
tests_of(Linear, generate_params=lambda: ())
tests_of(Linear, param_names=['W', 'b'])
tests_of(Linear, param_names=('W',))
tests_of(Linear, param_names=())
tests_of(Linear, param_names=('W', 'b', 'c'))
tests_of(Linear, param_names=('none',))
tests_of(Linear, create_link=lambda inits: L.Linear(None, 2, initialW=inits[0], initial_bias=inits[1]))
tests_of(Linear, create_link=lambda inits: None)
tests_of(Linear, create_link=lambda inits: F.sin)
tests_of(Linear, forward=lambda link, inputs, device: link(*inputs))
tests_of(Linear, forward=lambda link, inputs, device: [link(*inputs)])
tests_of(Linear, forward=lambda link, inputs, device: (link(*inputs).array,))
tests_of(Linear, forward=lambda link, inputs, device: (F.linear(inputs[0], link.W, link.b.array),))
tests_of(Linear, forward=lambda link, inputs, device: (F.linear(inputs[0].array, link.W, link.b),))
tests_of(Linear, forward=lambda link, inputs, device: (F.linear(inputs[0], link.W.array, link.b),))
tests_of(Linear, forward=lambda link, inputs, device: (link(*inputs) * 2,))
tests_of(Linear, forward=lambda link, inputs, device: 1 / 0)
tests_of(Linear, forward_expected=lambda link, inputs: (inputs[0].dot(link.W.array.T),))
tests_of(Linear, forward_expected=lambda link, inputs: inputs[0].dot(link.W.array.T))
tests_of(Linear, forward_expected=lambda link, inputs: 1 / 0)
tests_of(Linear, generate_inputs=lambda: [points(4, 3, dtype='f')])
tests_of(Linear, generate_inputs=lambda: (points(4, 2, dtype='f'),))
tests_of(Linear, generate_inputs=lambda: (None,))
tests_of(Linear, generate_grad_outputs=lambda ys: (points(4, 2, dtype='f'),))
tests_of(Linear, generate_grad_outputs=lambda ys: (points(4, 3, dtype='f'),))
tests_of(Linear, generate_grad_outputs=lambda ys: points(4, 2, dtype='f'))
tests_of(Linear, skip_forward_test=True)
tests_of(Linear, skip_backward_test=True)
tests_of(Linear, contiguous='C')
tests_of(Linear, contiguous='F')
tests_of(LinearInitializers)
tests_of(LinearInitializers, get_initializers=lambda: [[1, 2], [3, 4]])
tests_of(LinearInitializers, get_initializers=lambda: ((points(2, 3, dtype='f'),), (points(2, dtype='f'),)))
tests_of(LinearInitializers, get_initializers=lambda: ((1,), (testing.InitializerArgument(None, 0),)))
tests_of(LinearInitializers, get_initializers=lambda: ((1,), (testing.InitializerArgument(None, 7),)))
tests_of(LinearInitializers, get_initializers=lambda: ((testing.InitializerArgument(1, 2), 1), (1,)))
tests_of(LinearInitializers, get_initializers=lambda: ((1, testing.InitializerArgument(1, 2)), (1,)))
tests_of(LinearInitializers, get_initializers=lambda: ((1,),))
tests_of(LinearInitializers, get_initializers=lambda: ((1,), (1,), (1,)))
tests_of(LinearInitializers, get_initializers=lambda: ())
tests_of(LinearInitializers, get_initializers=lambda: ((1,), (None,)))
tests_of(LinearInitializers, get_initializers=lambda: ((1,), ('text',)))
tests_of(LinearInitializers, get_initializers=lambda: (1, 2))
tests_of(LinearInitializers, get_initializers=lambda: {1: 2})
tests_of(LinearInitializers, get_initializers=lambda: ((initializers.Normal(),), (1,)))
tests_of(LinearInitializers, param_names=('W',))
tests_of(LinearInitializers, param_names=('W', 'c'))
tests_of(LinearInitializers, generate_params=lambda: (5, None))
tests_of(LinearInitializers, generate_params=lambda: (5,))
tests_of(LinearInitializers, create_link=lambda inits: None)
tests_of(LinearInitializers, create_link=lambda inits: L.Linear(3, 2, initialW=inits[1], initial_bias=inits[0]))
tests_of(LinearInitializers, create_link=lambda inits: L.Linear(None, 2, initialW=inits[0], initial_bias=inits[1]))
tests_of(LinearInitializers, forward=lambda link, inputs, device: link(*inputs))
"""


class Linear(testing.LinkTestCase):
    param_names = ("W", "b")

    def generate_params(self):
        return points(2, 3, dtype="f"), points(2, dtype="f")

    def create_link(self, initializers):
        W, b = initializers
        return L.Linear(3, 2, initialW=W, initial_bias=b)

    def generate_inputs(self):
        return (points(4, 3, dtype="f"),)

    def forward_expected(self, link, inputs):
        return (inputs[0].dot(link.W.array.T) + link.b.array,)


class LinearInitializers(testing.LinkInitializersTestCase):
    param_names = ("W", "b")
    generate_params = Linear.generate_params
    create_link = Linear.create_link
    generate_inputs = Linear.generate_inputs

    def get_initializers(self):
        return [initializers.Constant(2), points(2, 3, dtype="f")], [0, 1.5]


def case_calls_of_link_forward():
    return calls_of(Linear, "test_forward", LINK_METHODS)


def case_dodging_of_links():
    drawn = []

    class Case(Linear):
        dodge_nondifferentiable = True

        def generate_params(self):
            drawn.append(0)
            W = np.zeros((2, 3), "f") if len(drawn) < 13 else points(2, 3, dtype="f")
            return W, np.zeros(2, "f")

        def forward(self, link, inputs, device):
            return (F.relu(link(*inputs)),)

    Case("test_backward").test_backward(Config({}))
    return len(drawn)


def case_initializers_of_other_parameters():
    """The values of b while W's initializers are checked, and the other way round."""
    found = []

    class Case(LinearInitializers):
        def create_link(self, inits):
            found.append([np.ndim(init) for init in inits])
            return super().create_link(inits)

    Case("test_initializers").test_initializers(Config({}))
    return found


def case_initializers_options():
    class Case(LinearInitializers):
        def setUp(self):
            self.check_initializers_options["atol"] = 10

        def get_initializers(self):
            return [testing.InitializerArgument(1, 2)], [0]

    return tests_of(Case)


def case_states_of_links():
    """Running averages do not disturb the check of gradients."""

    class Case(testing.LinkTestCase):
        param_names = ("gamma", "beta")

        def setUp(self):
            self.check_backward_options = {"atol": 1e-3, "rtol": 1e-3}

        def generate_params(self):
            return points(3, dtype="f"), points(3, dtype="f")

        def create_link(self, inits):
            return L.BatchNormalization(
                3, initial_gamma=inits[0], initial_beta=inits[1]
            )

        def generate_inputs(self):
            return (points(8, 3, dtype="f") ** 3,)

        def forward_expected(self, link, inputs):
            (x,) = inputs
            gamma, beta = link.gamma.array, link.beta.array
            std = np.sqrt(x.var(0) + link.eps)
            return (gamma * (x - x.mean(0)) / std + beta,)

    return tests_of(Case)


def case_nested_parameters():
    class Case(Linear):
        param_names = ("inner.W", "inner.b")

        def create_link(self, inits):
            chain = chainer.Chain(inner=Linear.create_link(self, inits))
            chain.forward = chain.inner.forward
            return chain

        def forward(self, link, inputs, device):
            return (link.inner(*inputs),)

    return tests_of(Case)["test_backward"]
