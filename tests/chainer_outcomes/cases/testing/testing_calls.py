"""FunctionTestCase: which methods are called, and with what."""

import unittest

from cases.testing.testing_functions import (
    TESTS,
    Config,
    Embedded,
    Product,
    Square,
    tests_of,
)


def without_repetitions(names):
    return [name for i, name in enumerate(names) if names[i - 1 : i] != [name]]


def recording(cls, names):
    """A class whose methods note that they were called."""
    calls = []

    def noting(name):
        method = getattr(cls, name)

        def noted(self, *args):
            calls.append(name)
            return method(self, *args)

        return noted

    return type("Recording", (cls,), {name: noting(name) for name in names}), calls


def calls_of(cls, test, names):
    case, calls = recording(cls, names.split())
    getattr(case(test), test)(Config({}))
    return without_repetitions(calls)


FUNCTION_METHODS = (
    "before_test generate_inputs forward forward_expected generate_grad_outputs "
    "generate_grad_grad_inputs check_forward_outputs"
)


def case_calls_of_function_tests():
    return [calls_of(Product, test, FUNCTION_METHODS) for test in TESTS[:3]]


def case_templates():
    """What the generators get: NumPy arrays with these shapes and dtypes."""
    found = []

    class Case(Embedded):
        def generate_grad_outputs(self, ys):
            found.append([(type(y).__name__, y.shape, str(y.dtype)) for y in ys])
            return super().generate_grad_outputs(ys)

        def generate_grad_grad_inputs(self, xs):
            found.append([(type(x).__name__, x.shape, str(x.dtype)) for x in xs])
            return super().generate_grad_grad_inputs(xs)

    for name in TESTS[1:3]:
        getattr(Case(name), name)(Config({}))
    return found


def case_inputs_of_forward():
    found = []

    def forward(self, inputs, device):
        for x in inputs:
            flags = x.array.flags.c_contiguous
            found.append((str(x.dtype), x.requires_grad, x.array.strides, flags))
        found.append((str(device), type(inputs).__name__))
        return Embedded.forward(self, inputs, device)

    case = type("Case", (Embedded,), {"forward": forward})
    case("test_forward").test_forward(Config({}))
    strides = list(found)
    found.clear()
    case.contiguous = "C"
    case("test_forward").test_forward(Config({}))
    return strides, found


def case_inputs_of_forward_expected():
    found = []

    class Case(Product):
        def forward_expected(self, inputs):
            found.extend((type(x).__name__, x.flags.c_contiguous) for x in inputs)
            return super().forward_expected(inputs)

    for name in TESTS[:3]:
        getattr(Case(name), name)(Config({}))
    return found


def case_attributes_in_before_test():
    found = []

    class Case(Square):
        def before_test(self, name):
            found.append((name, self.test_name, type(self.backend_config).__name__))

    for name in TESTS[:3]:
        getattr(Case(name), name)(Config({}))
    return found


def case_skipping_in_before_test():
    class Case(Square):
        def before_test(self, name):
            if name == "test_backward":
                raise unittest.SkipTest("not now")

    return tests_of(Case)


def case_skipped_before_before_test():
    def before_test(self, name):
        raise KeyError(name)

    return tests_of(
        type("Case", (Square,), {"before_test": before_test}),
        skip_forward_test=True,
        skip_backward_test=True,
    )
