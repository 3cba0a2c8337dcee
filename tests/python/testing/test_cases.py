"""FunctionTestCase and LinkTestCase pass correct code and detect wrong code."""

import unittest

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import testing


class Square(testing.FunctionTestCase):
    __test__ = False  # run by the tests below
    wrong = None

    def setUp(self):
        self.check_backward_options.update(atol=1e-6)

    def before_test(self, test_name):
        self.started = test_name

    def generate_inputs(self):
        return (numpy.random.uniform(0.5, 1, (3, 4)),)

    def forward(self, inputs, device):
        (x,) = inputs
        assert device.xp is numpy
        if self.started == "test_forward":
            assert not x.array.flags.c_contiguous
        if self.wrong == "type":
            return x * x
        if self.wrong == "changes":
            x.array[...] = 0
        return (Half().apply((x,))[0] if self.wrong == "backward" else x * x,)

    def forward_expected(self, inputs):
        (x,) = inputs
        if self.wrong == "shape":
            return (x[0] ** 2,)
        return (x**3 if self.wrong == "forward" else x**2,)


class Half(renga.FunctionNode):
    """A square with half of the correct gradient."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (x * grad_outputs[0],)


def run(cls, **attributes):
    """The errors of the tests of a case, by name."""
    case = type("Case", (cls,), attributes)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case)(result)
    problems = result.failures + result.errors
    return result, {test._testMethodName: text for test, text in problems}


def test_a_correct_function_passes():
    result, errors = run(Square)
    assert errors == {} and result.testsRun == 3 and result.skipped == []


@pytest.mark.parametrize(
    ("wrong", "tests", "message"),
    [
        ("forward", {"test_forward"}, "Outputs do not match the expected"),
        ("shape", None, "Actual shapes and dtypes:   (3, 4):float64"),
        ("changes", None, "modified during forward: input 0"),
        ("backward", {"test_backward", "test_double_backward"}, "numeric gradient"),
        ("type", None, "must return a tuple, not"),
    ],
)
def test_a_wrong_function_is_detected(wrong, tests, message):
    _, errors = run(Square, wrong=wrong)
    assert errors if tests is None else errors.keys() <= tests
    assert any(
        message in text and "FunctionTestError" in text for text in errors.values()
    )


def test_checks_may_be_skipped():
    result, errors = run(
        Square,
        wrong="backward",
        skip_backward_test=True,
        skip_double_backward_test=True,
        skip_forward_test=True,
    )
    assert errors == {} and len(result.skipped) == 3


class Kink(testing.FunctionTestCase):
    """relu, in three of four draws at its kink."""

    __test__ = False  # run by the tests below

    dodge_nondifferentiable = True
    skip_double_backward_test = True
    drawn = 0

    def generate_inputs(self):
        Kink.drawn += 1
        return (numpy.full((2,), 0.0 if Kink.drawn % 4 else 1.0),)

    def forward(self, inputs, device):
        return (F.relu(inputs[0]),)

    def forward_expected(self, inputs):
        return (numpy.maximum(inputs[0], 0),)


def test_kinks_are_dodged():
    _, errors = run(Kink)
    assert errors == {}


class LinearCase(testing.LinkTestCase):
    __test__ = False  # run by the tests below
    param_names = ("W", "b")
    wrong = False

    def generate_params(self):
        return numpy.random.uniform(-1, 1, (2, 3)), numpy.random.uniform(-1, 1, 2)

    def create_link(self, initializers):
        W, b = initializers
        with renga.using_config("dtype", numpy.float64):
            return L.Linear(3, 2, initialW=W, initial_bias=b)

    def generate_inputs(self):
        return (numpy.random.uniform(-1, 1, (4, 3)),)

    def forward_expected(self, link, inputs):
        return (inputs[0] @ link.W.array.T + link.b.array + self.wrong,)


def test_links():
    result, errors = run(LinearCase)
    assert errors == {} and result.testsRun == 2
    _, errors = run(LinearCase, wrong=True)
    assert "Output 0:" in errors["test_forward"]


class LinearInitializers(testing.LinkInitializersTestCase):
    __test__ = False  # run by the tests below
    param_names = ("W", "b")
    bias = testing.InitializerArgument(None, 0)

    generate_params = LinearCase.generate_params
    create_link = LinearCase.create_link
    generate_inputs = LinearCase.generate_inputs

    def get_initializers(self):
        constant = renga.initializers.Constant(2)
        return [[constant, numpy.ones((2, 3))], [self.bias, 1.5]]


def test_initializers():
    result, errors = run(LinearInitializers)
    assert errors == {} and result.testsRun == 1
    _, errors = run(LinearInitializers, bias=testing.InitializerArgument(None, 7))
    assert "y: [7. 7.]" in errors["test_initializers"]


def test_devices_are_injected():
    @testing.inject_backend_tests(None, [{}, {"use_cuda": True}])
    class Case(Square):
        pass

    tests = unittest.defaultTestLoader.getTestCaseNames(Case)
    assert sorted(tests) == sorted(
        f"test_{kind}_{i}__{device}"
        for kind in ("forward", "backward", "double_backward")
        for i, device in enumerate(("numpy", "cupy_0__use_cuda_True"))
    )
    on_gpu = next(name for name in tests if "cupy" in name)
    assert {mark.name for mark in getattr(Case, on_gpu).pytestmark} == {"gpu"}
    suite = unittest.TestSuite([Case(name) for name in tests if "numpy" in name])
    result = unittest.TestResult()
    suite(result)
    assert result.testsRun == 3 and result.wasSuccessful()


def test_named_methods_are_injected_under_parameterize():
    seen = []

    @testing.parameterize({"a": 1}, {"a": 2})
    @testing.inject_backend_tests(
        ["test_it", "test_of_others"], [{}, {"use_ideep": "never"}]
    )
    class InjectedCase(unittest.TestCase):
        def test_it(self, backend_config):
            seen.append((self.a, backend_config.device.name))

    module = globals()
    for name in ("InjectedCase_param_0_{a=1}", "InjectedCase_param_1_{a=2}"):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(module.pop(name))(result)
        assert result.wasSuccessful()
    assert seen == [(1, "@numpy")] * 2 + [(2, "@numpy")] * 2


def test_all_tests_with_an_argument_are_injected():
    @testing.inject_backend_tests(None, [{}])
    class Case(unittest.TestCase):
        def test_with(self, config):
            assert config.xp is numpy

        def test_without(self):
            pass

    tests = unittest.defaultTestLoader.getTestCaseNames(Case)
    assert sorted(tests) == ["test_with_0__numpy", "test_without"]
    result = unittest.TestResult()
    unittest.TestSuite(map(Case, tests))(result)
    assert result.wasSuccessful()


def test_unknown_settings():
    with pytest.raises(ValueError, match="use_gpu"):
        testing.BackendConfig({"use_gpu": True})


def test_a_configuration_is_a_context():
    config = testing.BackendConfig({"cudnn_deterministic": True, "use_cudnn": "auto"})
    with config:
        assert renga.config.cudnn_deterministic and renga.config.use_cudnn == "auto"
    assert not renga.config.cudnn_deterministic
    x = numpy.ones(3)
    assert config.xp is numpy and config.get_array(x) is x
    assert config.get_array(None) is None


@testing.unary_math_function_unittest(F.sin)
class SineCase(unittest.TestCase):
    __test__ = False  # run by the tests below


@testing.unary_math_function_unittest(F.sin, lambda x, dtype: numpy.cos(x))
class WrongSine(unittest.TestCase):
    __test__ = False  # run by the tests below


def test_functions_of_one_array():
    names = [name for name in globals() if name.startswith(("SineCase_", "WrongSine_"))]
    assert len(names) == 12 and "SineCase_param_5_{dtype=float64, shape=()}" in names
    for name in names:
        result, case = unittest.TestResult(), globals().pop(name)
        for kind in ("forward", "backward", "double_backward"):
            gpu = getattr(case, f"test_{kind}_gpu").pytestmark
            assert [mark.name for mark in gpu] == ["gpu"]
            case(f"test_{kind}_cpu")(result)
        assert len(result.failures) == name.startswith("Wrong") and not result.errors


def test_marks_say_what_a_configuration_needs():
    def marks(**settings):
        found = testing.BackendConfig(settings).get_pytest_marks()
        return [mark.__qualname__.split(".")[0] for mark in found]

    assert marks() == []
    assert marks(use_cuda=True, use_cudnn="always") == ["gpu", "cudnn"]
    assert marks(use_cuda=True, cuda_device=1) == ["gpu", "multi_gpu"]
    second = {"use_chainerx": True, "chainerx_device": "cuda:1"}
    assert marks(**second) == ["chainerx", "gpu", "multi_gpu"]


@pytest.mark.parametrize(
    ("names", "settings"), [("test_it", [{}]), (None, {}), (None, [1])]
)
def test_lists_are_asked_for(names, settings):
    with pytest.raises(TypeError, match="inject_backend_tests: expected a list"):
        testing.inject_backend_tests(names, settings)
