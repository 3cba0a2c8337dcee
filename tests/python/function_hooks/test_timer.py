"""TimerHook: what it counts, adds up and prints."""

import copy
import io
import pickle
import time

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.function_hooks import TimerHook


class Sleep(renga.FunctionNode):
    def __init__(self, seconds, inner=None):
        self.seconds, self.inner = seconds, inner

    def forward(self, inputs):
        time.sleep(self.seconds)
        if self.inner:
            self.inner.apply(inputs)
        return (inputs[0],)

    def backward(self, indexes, grad_outputs):
        time.sleep(self.seconds)
        return grad_outputs


def test_forward_backward_and_nested_functions():
    x = renga.Variable(numpy.ones(2, "f"))
    hook = TimerHook()
    before = time.perf_counter()
    with hook:
        (y,) = Sleep(0.02, inner=Sleep(0.03)).apply((x,))
        F.sum(F.exp(y)).backward()
    wall = time.perf_counter() - before
    names = ["Sleep", "Sleep", "exp", "sum", "sum", "exp", "Sleep"]
    assert [name for name, _ in hook.call_history] == names
    inner, outer, *_, back = (seconds for _, seconds in hook.call_history)
    assert inner >= 0.03 and outer >= inner + 0.02 and back >= 0.02
    # The inner function's time is part of the outer's.
    total = sum(seconds for _, seconds in hook.call_history) - inner
    assert hook.total_time() == pytest.approx(total)
    assert total <= wall
    summary = hook.summary()
    assert list(summary) == ["Sleep", "exp", "sum"]
    assert summary["Sleep"] == {
        "elapsed_time": pytest.approx(inner + outer + back),
        "occurrence": 3,
    }


def test_added_to_one_function():
    x = renga.Variable(numpy.ones(2, "f"))
    hook, function = TimerHook(), Sleep(0)
    function.add_hook(hook)
    (y,) = function.apply((F.exp(x),))
    y.grad = numpy.ones(2, "f")
    y.backward()
    assert [name for name, _ in hook.call_history] == ["Sleep", "Sleep"]


def test_a_function_that_raises():
    hook = TimerHook()
    with hook:
        with pytest.raises(renga.utils.type_check.InvalidType):
            F.matmul(numpy.ones((2, 3)), numpy.ones((2, 3)))
        F.exp(numpy.ones(2))
    ((name, seconds),) = hook.call_history
    assert name == "exp"
    assert hook.total_time() == seconds


@pytest.mark.parametrize(
    "unit, a, b",
    [
        ("sec", "1.50sec", "0.00sec"),
        ("ms", "1500.00ms", "0.25ms"),
        ("us", "1500000.00us", "250.00us"),
        ("ns", "1500000000.00ns", "250000.00ns"),
        ("auto", "1.50sec", "0.00sec"),
        ("auto_foreach", "1.50sec", "250.00us"),
    ],
)
def test_report(unit, a, b):
    hook = TimerHook()
    hook.call_history = [("a", 0.5), ("b", 250e-6), ("a", 1.0)]
    file = io.StringIO()
    hook.print_report(unit, file)
    lines = file.getvalue().splitlines()
    assert [line.split() for line in lines] == [
        ["FunctionName", "ElapsedTime", "Occurrence"],
        ["a", a, "2"],
        ["b", b, "1"],
    ]
    assert len({len(line) for line in lines}) == 1  # columns end together
    with pytest.raises(KeyError):
        hook.print_report("hours", file)


def test_report_chainer_prints():
    hook = TimerHook()
    hook.call_history = [("LinearFunction", 2e-3)]
    file = io.StringIO()
    hook.print_report(file=file)
    assert file.getvalue() == (
        "  FunctionName  ElapsedTime  Occurrence\n"
        "LinearFunction       2.00ms           1\n"
    )


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_links_with_hooks(duplicate):
    link = L.Linear(3, 2).add_hook(renga.link_hooks.TimerHook())
    link(numpy.zeros((1, 3), "f"))
    copied = duplicate(link)
    copied(numpy.zeros((1, 3), "f"))
    of_link, of_copy = (x.local_link_hooks["TimerHook"] for x in (link, copied))
    assert len(of_link.call_history) == 1 and len(of_copy.call_history) == 2
