"""Every function with empty batches, single numbers, float16 and unusual strides.

The expected outcomes are Chainer 7.8.1's (see ``edge_cases.py``): values, dtypes and
shapes of results and gradients, or the error. The catalogue's rows say where renga's
differ on purpose.
"""

import warnings

import numpy
import pytest

import renga
import renga.functions as F
from tests.catalogue import CATALOGUE
from tests.catalogue.row import Function, function_name
from tests.python.functions.cases import edge_cases
from tests.python.functions.cases.edge_cases import same
from tests.python.functions.cases.function_check import strided

CHAINER = edge_cases.recorded("edge_functions")

OPERATOR = Function("")
TOLERANCE = {"nothing": 1e-5, "two": 1e-4, "half": 3e-2}


def run(call, mode, layout=edge_cases.plain):
    inputs = edge_cases.Inputs(renga, *edge_cases.MODES[mode], layout)
    return edge_cases.outcome(call, inputs)


def row_of(call):
    """The row of the call's function; of an operator, one that says nothing."""
    return CATALOGUE.get(function_name(call), OPERATOR)


def test_every_function_is_called_with_batches():
    called = {function_name(call) for call in CHAINER if "N" in call}
    assert {row.name for row in CATALOGUE.values() if row.signature} <= called
    assert set(CHAINER) == set(edge_cases.calls())


@pytest.mark.parametrize("call", CHAINER)
def test_empty_batch(call):
    expected, found = CHAINER[call]["nothing"], run(call, "nothing")
    row = row_of(call)
    if call in row.others:
        return check_other(row.others[call], found)
    if found == expected:  # errors, too
        return
    if isinstance(expected, str):
        assert not isinstance(CHAINER[call]["two"], str)
        check_shapes(row.nothing[call], found)
        return check_nothing(call, found)
    same(expected["outputs"], found["outputs"], TOLERANCE["nothing"])
    if isinstance(expected["gradients"], str):
        return check_nothing(call, found)
    same(expected["gradients"], found["gradients"], TOLERANCE["nothing"])


@pytest.mark.parametrize("call", CHAINER)
def test_second_derivatives_of_an_empty_batch(call):
    if isinstance(run(call, "nothing"), str):
        return  # an error, which the test above knows
    inputs = edge_cases.Inputs(renga, 0, "f")
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ys = edge_cases.flat(eval(call, inputs.names))
        squares = [y * y for y in ys if getattr(y, "requires_grad", False)]
        xs = [x for x in inputs.variables if squares]
        gxs = renga.grad(squares, xs, enable_double_backprop=True) if xs else []
        again = sum(F.sum(F.square(gx)) for gx in gxs if gx is not None)
    if not isinstance(again, int):
        again.backward()
        for x in xs:
            if x.grad is not None:
                assert x.grad.shape == x.shape and numpy.isfinite(x.grad).all()


def check_shapes(shapes, found):
    assert [tuple(y[1]) for y in found["outputs"]] == shapes


def check_nothing(call, found):
    """Nothing comes back from nothing, in the shapes of what was given."""
    wanted = edge_cases.Inputs(renga, 0, "f")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eval(call, wanted.names)
    for x, gx in zip(wanted.variables, found["gradients"]):
        if gx is not None:
            assert gx == ["float32", list(x.shape), 0, 0]


def check_other(expected, found):
    if isinstance(expected, str):
        assert found == expected
    else:
        check_shapes(expected, found)


@pytest.mark.parametrize("call", CHAINER)
def test_batch_of_two(call):
    """Values and gradients, whatever the strides; float16 as exact as it can be."""
    for mode in ("two", "half"):
        for layout in (edge_cases.plain, strided):
            check_two(call, mode, layout)


def check_two(call, mode, layout):
    expected, found = CHAINER[call][mode], run(call, mode, layout)
    row = row_of(call)
    if call in row.others:
        return check_other(row.others[call], found)
    if mode == "half" and isinstance(expected, str) and not row.half:
        assert {y[0] for y in found["outputs"] + found["gradients"] if y} == {"float16"}
        expected = CHAINER[call]["two"]
        expected = {key: in_half(rows) for key, rows in expected.items()}
    if isinstance(expected, str):
        assert found == expected
        return
    tolerance = None if row.draws else TOLERANCE[mode]
    same(expected["outputs"], found["outputs"], tolerance)
    if row.gradients:
        same(expected["gradients"], found["gradients"], tolerance)


def in_half(rows):
    return [row and ["float16", *row[1:]] for row in rows]
