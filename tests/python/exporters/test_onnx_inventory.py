"""Every function and link as ONNX, computed of other values than it was exported with.

The calls are those of the edge cases, for two samples.
"""

import numpy
import pytest

import renga
from renga.exporters.onnx import export
from tests.catalogue import CATALOGUE, LINKS
from tests.links.cases import edge_links
from tests.onnx_runs import computed
from tests.python.functions.cases import edge_cases

pytest.importorskip("onnx")

# Why an export is refused: ONNX has no such operation, or what the function or link
# computes depends on numbers that Python reads: scores, the best path, sampled words.
REFUSED = {
    "no counterpart": "no counterpart in ONNX",
    "reads values": "values of the inputs",
}
KINDS = {row.name: row.onnx for row in [*CATALOGUE.values(), *LINKS.values()]}


class Replay(edge_links.Inputs):
    """The names in a call whose float arrays are ``given``."""

    def __init__(self, given=()):
        super().__init__(renga, 2, "f")
        self.given = list(given)

    def variable(self, x):
        return self.given.pop(0) if self.given else super().variable(x)

    def kept(self, link):
        return []


def arrays_of(call):
    first = Replay()
    eval(call, first.names)
    return [v.array for v in first.variables]


def function_of(call):
    def function(*xs):
        numpy.random.seed(0)
        ys = edge_cases.flat(eval(call, Replay(xs).names))
        return [y for y in ys if isinstance(y, renga.Variable)]

    return function


def name_of(call):
    return call.removeprefix("run(").removeprefix("steps(").split("(")[0].split(".")[-1]


def is_exportable(call):
    try:  # some edge cases are errors
        ys = edge_cases.flat(eval(call, Replay().names))
    except Exception:
        return False
    return any(isinstance(y, renga.Variable) for y in ys)


CALLS = [*edge_cases.calls(), *edge_links.calls()]


@pytest.mark.parametrize("call", list(filter(is_exportable, CALLS)))
def test_every_function_and_link(call):
    arrays, function = arrays_of(call), function_of(call)
    kind = KINDS.get(name_of(call))
    if kind in REFUSED:
        with pytest.raises(NotImplementedError, match=REFUSED[kind]):
            export(function, arrays)
        return
    proto = export(function, arrays)
    # Between 0 and 1 as before, if they were.
    others = [numpy.asarray(0.9 * numpy.flip(x) + 0.02, "f") for x in arrays]
    found = computed(proto, *others)
    with renga.using_config("train", False):
        expected = function(*map(renga.Variable, others))
    assert len(found) == len(expected)
    for y, want in zip(found, expected):
        assert y.dtype == want.dtype and y.shape == want.shape
        numpy.testing.assert_allclose(y, want.array, rtol=1e-4, atol=1e-4)
