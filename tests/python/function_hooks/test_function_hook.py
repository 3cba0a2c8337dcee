"""Function hooks: around the core's operations and Python's, forward and back."""

import threading

import numpy
import pytest

import renga
import renga.functions as F
from renga import FunctionHook, Variable


class Log(FunctionHook):
    name = "Log"

    def __init__(self):
        self.calls = []

    def added(self, function):
        self.calls.append("added")

    def deleted(self, function):
        self.calls.append("deleted")

    def forward_preprocess(self, function, in_data):
        shapes = [x.shape for x in in_data]
        self.calls.append(("before", function.label, shapes))

    def forward_postprocess(self, function, in_data):
        self.calls.append(("after", function.label))

    def backward_preprocess(self, function, in_data, out_grad):
        self.calls.append(("before backward", function.label, out_grad[0].shape))

    def backward_postprocess(self, function, in_data, out_grad):
        self.calls.append(("after backward", function.label, len(in_data)))


class Twice(renga.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] * 2,)

    def backward(self, indexes, grad_outputs):
        return (grad_outputs[0] * 2,)


def test_every_kind_of_function_is_hooked():
    x = Variable(numpy.ones((2, 3), "f"))
    with Log() as log:
        y = F.concat([F.exp(x), x])
        z = Twice().apply((y,))[0] + x[:, :1]
    seen = [call for call in log.calls if call[0] == "before"]
    assert seen == [
        ("before", "exp", [(2, 3)]),
        ("before", "concat", [(2, 3), (2, 3)]),
        ("before", "Twice", [(2, 6)]),
        ("before", "slice", [(2, 3)]),
        ("before", "_ + _", [(2, 6), (2, 1)]),
    ]
    assert [c[1] for c in log.calls if c[0] == "after"] == [c[1] for c in seen]
    assert log.calls[0] == "added" and log.calls[-1] == "deleted"
    assert z.shape == (2, 6)


def test_backward():
    x = Variable(numpy.ones((2, 3), "f"))
    y = Twice().apply((F.exp(x),))[0]
    y.grad = numpy.ones((2, 3), "f")
    with Log() as log:
        y.backward()
    kinds = ("before backward", "after backward")
    assert [call for call in log.calls if call[0] in kinds] == [
        ("before backward", "Twice", (2, 3)),
        ("after backward", "Twice", 1),
        ("before backward", "exp", (2, 3)),
        ("after backward", "exp", 1),
    ]
    numpy.testing.assert_allclose(x.grad, 2 * numpy.exp(numpy.ones((2, 3))), 1e-6)


def test_only_within_the_block_and_its_thread():
    x = Variable(numpy.ones(2))
    log = Log()
    with log:
        thread = threading.Thread(target=lambda: F.exp(x))
        thread.start()
        thread.join()
    F.exp(x)
    assert log.calls == ["added", "deleted"]
    assert renga.get_function_hooks() == {}


def test_names():
    class Other(Log):
        name = "Other"

    with Log() as log, Other() as other:
        assert renga.get_function_hooks() == {"Log": log, "Other": other}
        with pytest.raises(KeyError):
            Log().__enter__()
        F.exp(numpy.ones(2))
    assert log.calls == other.calls
    assert FunctionHook().name == "FunctionHook"


def test_a_hook_that_raises():
    class Refusing(FunctionHook):
        def forward_preprocess(self, function, in_data):
            raise ZeroDivisionError

        def backward_preprocess(self, function, in_data, out_grad):
            raise ZeroDivisionError

    x = Variable(numpy.ones(2))
    y = F.sum(F.exp(x))
    with Refusing():
        for use in (lambda: F.exp(x), lambda: x + 1, y.backward):
            with pytest.raises(ZeroDivisionError):
                use()
    y.backward()
    numpy.testing.assert_allclose(x.grad, numpy.exp([1, 1]))


def test_local_hooks():
    x = Variable(numpy.ones((2, 3), "f"))
    node = Twice()
    log = Log()
    node.add_hook(log)
    with pytest.raises(KeyError):
        node.add_hook(Log())
    (y,) = node.apply((x,))
    y.grad = numpy.ones((2, 3), "f")
    y.backward()
    assert node.local_function_hooks == {"Log": log}
    node.delete_hook("Log")
    with pytest.raises(KeyError):
        node.delete_hook("Log")
    assert log.calls == [
        "added",
        ("before", "Twice", [(2, 3)]),
        ("after", "Twice"),
        ("before backward", "Twice", (2, 3)),
        ("after backward", "Twice", 1),
        "deleted",
    ]
