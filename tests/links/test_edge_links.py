"""Every link with empty batches and batches of two, dtypes and unusual strides.

The expected outcomes are Chainer 7.8.1's, of the calls that ``edge_links.py`` explains:
outputs, statistics, and gradients of inputs and parameters. The catalogue's rows say
where renga's differ on purpose.
"""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import Variable
from tests.catalogue import LINKS
from tests.catalogue.links.row import link_name
from tests.links.cases import edge_links
from tests.python.functions.cases import edge_cases
from tests.python.functions.cases.edge_cases import same
from tests.python.functions.cases.function_check import strided

CHAINER = edge_cases.recorded("edge_links")

TOLERANCE = {"nothing": 1e-5, "two": 1e-4, "half": 1e-1}


def run(call, mode, layout=edge_cases.plain):
    inputs = edge_links.Inputs(renga, *edge_cases.MODES[mode], layout)
    return edge_cases.outcome(call, inputs)


def test_every_call_is_recorded():
    assert set(CHAINER) == set(edge_links.calls())
    called = {link_name(call) for call in CHAINER if "N" in call.partition("(L.")[2]}
    assert {row.name for row in LINKS.values() if row.edges} - called == {"Parameter"}


@pytest.mark.parametrize("call", CHAINER)
def test_empty_batch(call):
    expected, found = CHAINER[call]["nothing"], run(call, "nothing")
    row = LINKS[link_name(call)]
    if isinstance(found, str):
        # Where no sequence has a step, Chainer ends with an error of its own code.
        assert found == {"IndexError": "InvalidType"}.get(expected, expected)
        return
    if isinstance(expected, str):
        shapes = [tuple(y[1]) for y in found["outputs"]]
        if row.name.startswith("NStep") and call.count("s(N, 3)") == 2:  # nor a result
            assert shapes[-1][0] == 0
            shapes[-1] = row.nothing[-1]
        assert row.nothing and shapes[: len(row.nothing)] == row.nothing
    elif not row.averages:
        same(expected["outputs"], found["outputs"], TOLERANCE["nothing"])
    if not isinstance(expected, str) and not isinstance(expected["gradients"], str):
        same(expected["gradients"], found["gradients"], TOLERANCE["nothing"])
    elif "s(2, 3)" not in call:
        assert all(gx is None or gx[2:] == [0, 0] for gx in found["gradients"])


@pytest.mark.parametrize(
    "link",
    [
        L.BatchNormalization(3),
        L.BatchRenormalization(3),
        L.DecorrelatedBatchNormalization(3, groups=1),
    ],
)
def test_an_empty_batch_does_not_change_running_averages(link):
    rng = numpy.random.default_rng(0)
    link(rng.normal(size=(8, 3)).astype("f"))
    before = [numpy.array(getattr(link, name)) for name in sorted(link._persistent)]
    link(numpy.zeros((0, 3), "f"))
    for name, value in zip(sorted(link._persistent), before):
        if name != "N":
            numpy.testing.assert_array_equal(getattr(link, name), value)


@pytest.mark.parametrize("call", CHAINER)
def test_batch_of_two(call):
    for mode in ("two", "half"):
        for layout in (edge_cases.plain, strided):
            check_two(call, mode, layout)


def check_two(call, mode, layout):
    expected, found = CHAINER[call][mode], run(call, mode, layout)
    row = LINKS[link_name(call)]
    if mode == "half" and isinstance(expected, str):
        assert not row.half
        assert found["outputs"][0][0] == "float16"
        return
    tolerance = None if row.draws else TOLERANCE[mode]
    same(expected["outputs"], found["outputs"], tolerance)
    same(expected["gradients"], found["gradients"], tolerance)


def test_sequence_of_no_steps():
    """A copy's state is independent of the original."""
    rng = numpy.random.default_rng(0)
    x, nothing = rng.normal(size=(4, 3)).astype("f"), numpy.zeros((0, 3), "f")
    h = rng.normal(size=(1, 2, 2)).astype("f")
    link = L.NStepGRU(1, 3, 2, 0.0)
    hy, (first, second) = link(Variable(h), [nothing, x])
    alone, (expected,) = link(Variable(h[:, 1:]), [x])
    assert first.shape == (0, 2)
    numpy.testing.assert_allclose(second.array, expected.array, rtol=1e-6)
    numpy.testing.assert_array_equal(hy.array[:, 0], h[:, 0])
    numpy.testing.assert_allclose(hy.array[:, 1], alone.array[:, 0], rtol=1e-6)
    F.sum(second).backward()
