"""PrintHook: what it prints, and where."""

import io

import numpy

import renga
import renga.functions as F
from renga.function_hooks import PrintHook


class Twice(renga.FunctionNode):
    def forward(self, inputs):
        self.retain_inputs((0,))
        return tuple(2 * x for x in inputs)

    def backward(self, indexes, grad_outputs):
        return tuple(None if g is None else g * 2 for g in grad_outputs)


def lines_of(file):
    return [line for line in file.getvalue().splitlines() if "at 0x" not in line]


def facts(mean, grad="None"):
    return [
        "- device: CPU",
        "- backend: <class 'numpy.ndarray'>",
        "- shape: (2, 3)",
        "- dtype: float32",
        f"- statistics: mean={mean}.00000000, std=0.00000000",
        f"- grad: {grad}",
    ]


def test_forward_and_backward():
    x = renga.Variable(numpy.full((2, 3), 3, "f"))
    w = renga.Variable(numpy.full((2, 3), 4, "f"))
    file = io.StringIO()
    with PrintHook(file=file):
        y, _ = Twice().apply((x, w))
    assert lines_of(file) == ["function\tTwice", "input data", *facts(3), *facts(4)]
    y.grad = numpy.full((2, 3), 5, "f")
    file = io.StringIO()
    with PrintHook(file=file):
        y.backward()
    # Only what was retained is still there; no gradient reached the other output.
    assert lines_of(file)[: 4 + 12] == [
        "function\tTwice",
        "input data",
        *facts(3),
        "(removed)",
        "output gradient",
        *facts(0, "mean=5.00000000, std=0.00000000"),
    ]
    assert "- statistics: None" in lines_of(file)


def test_how_it_prints():
    file = io.StringIO()
    with PrintHook(sep="|", end="$\n", file=file, flush=False):
        F.relu(numpy.ones((2, 3), "f"))
    first, second, *_, last = file.getvalue().splitlines()
    assert (first, second) == ("function\trelu$", "input data$")
    assert last == "- grad: None$"
    assert F.relu(numpy.ones(2)).shape == (2,) and file.getvalue().count("relu") == 1


def test_standard_output(capsys):
    import sys

    hook = PrintHook(file=sys.stdout)
    assert (hook.sep, hook.end, hook.flush, hook.name) == (
        None,
        "\n",
        True,
        "PrintHook",
    )
    with hook:
        F.exp(numpy.ones(2))
    assert capsys.readouterr().out.startswith("function\texp\ninput data\n<variable at")
