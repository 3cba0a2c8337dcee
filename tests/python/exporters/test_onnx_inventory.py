"""Every function and link as ONNX, computed of other values than it was exported with.

The calls are those of the edge cases, for two samples.
"""

import sys
from pathlib import Path

import edge_cases
import numpy
import pytest

import renga
from renga.exporters.onnx import export

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
sys.path.append(str(Path(__file__).parents[2] / "links" / "cases"))
import edge_links  # noqa: E402

# Operations that ONNX does not have.
NO_COUNTERPART = set(
    """arctan2 batch_inv cholesky connectionist_temporal_classification
    decorrelated_batch_normalization digamma erfcinv erfcx erfinv fft ifft inv
    lgamma log_ndtr ndtri polygamma roi_average_align_2d roi_average_pooling_2d
    roi_max_align_2d roi_max_pooling_2d roi_pooling_2d sparse_matmul
    zeta""".split()
)
# What they compute depends on numbers that Python reads: scores, the best path, sampled
# words.
READS_VALUES = set(
    """accuracy argmax_crf1d batch_renormalization binary_accuracy
    classification_summary f1_score precision r2_score recall
    BlackOut""".split()
)


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


CALLS = [*edge_cases.calls(), *edge_links.CALLS]


@pytest.mark.parametrize("call", list(filter(is_exportable, CALLS)))
def test_every_function_and_link(call):
    arrays, function = arrays_of(call), function_of(call)
    if name_of(call) in NO_COUNTERPART:
        with pytest.raises(NotImplementedError, match="no counterpart in ONNX"):
            export(function, arrays)
        return
    if name_of(call) in READS_VALUES:
        with pytest.raises(NotImplementedError, match="values of the inputs"):
            export(function, arrays)
        return
    session = onnxruntime.InferenceSession(
        export(function, arrays).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    # Between 0 and 1 as before, if they were.
    others = [numpy.asarray(0.9 * numpy.flip(x) + 0.02, "f") for x in arrays]
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, dict(zip(names, others)))
    with renga.using_config("train", False):
        expected = function(*map(renga.Variable, others))
    assert len(found) == len(expected)
    for y, want in zip(found, expected):
        assert y.dtype == want.dtype and y.shape == want.shape
        numpy.testing.assert_allclose(y, want.array, rtol=1e-4, atol=1e-4)
