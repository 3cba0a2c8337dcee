"""Names that exist for compatibility only: they do nothing or raise."""

import io

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core, function_hooks, iterators
from renga.dataset.convert import Conveyor


def test_static_graphs_are_ordinary_ones():
    class Square(renga.Link):
        @renga.static_graph
        def forward(self, x):
            return F.square(x)

        @renga.static_graph(verbosity_level=1)
        def other(self, x):
            return F.exp(x)

        @renga.static_code(unordered_inputs=[])
        def code(self, x):
            return 2 * x

    x = renga.Variable(numpy.array([3.0]))
    y = Square()(x)
    y.backward()
    assert y.array == 9 and x.grad == 6
    assert Square().other(x).array == numpy.exp(3) and Square().code(x).array == 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (function_hooks.CUDAProfileHook, "RENGA_CUDA|CuPy"),
        (function_hooks.CupyMemoryProfileHook, "renga.profiler"),
        (lambda: iterators.DaliIterator(None), "MultiprocessIterator"),
    ],
)
def test_unavailable_features_raise(make, message):
    with pytest.raises(RuntimeError, match=message):
        make()


def test_conveyor():
    conveyor = Conveyor(-1)
    arrays = [numpy.ones(2), numpy.zeros(3)]
    for array in arrays:
        conveyor.put(array)
    assert [conveyor.get() is array for array in arrays] == [True, True]
    with pytest.raises(IndexError):
        conveyor.get()


def test_runtime_info():
    out = io.StringIO()
    renga.print_runtime_info(out)
    lines = dict(line.split(": ", 1) for line in out.getvalue().splitlines())
    assert lines["renga"] == renga.__version__
    assert lines["NumPy"] == numpy.__version__
    assert lines["Tiles"].startswith("AMX" if _core.tile_unit() == "amx" else "none")
    assert lines["Threads"] == str(renga.get_num_threads())
    assert issubclass(renga.warnings.PerformanceWarning, RuntimeWarning)
