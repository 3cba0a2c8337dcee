"""type_check: expressions, their text, and the two modes."""

import operator
import pickle

import numpy
import pytest

import renga
from renga.utils import type_check
from renga.utils.type_check import InvalidType, expect, make_variable

a = make_variable(3, "a")
x = make_variable(type_check.TypeInfo((2, 5), numpy.dtype("float32")), "x")


@pytest.mark.parametrize(
    ("expression", "text", "value"),
    [
        (a + 2 * x.shape[0] ** 2 - (a - 1), "a + 2 * x.shape[0] ** 2 - (a - 1)", 9),
        ((a + 1) * 2, "(a + 1) * 2", 8),
        (-(a + 2), "-(a + 2)", -5),
        (+a, "+a", 3),
        (7 // a % 4, "7 // a % 4", 2),
        ((a**2) ** 2, "(a ** 2) ** 2", 81),
        (a ** (a - 1), "a ** (a - 1)", 9),
        (a - (1 - a), "a - (1 - a)", 5),
        (6 / a, "6 / a", 2),
        (x.shape[a - 2], "x.shape[a - 2]", 5),
        (x.shape[0:1], "x.shape[0:1]", (2,)),
        (type_check.prod(x.shape), "prod(x.shape)", 10),
        (x.ndim, "x.ndim", 2),
        (x.size + 1, "x.size + 1", 11),
    ],
)
def test_expressions(expression, text, value):
    assert str(expression) == text
    assert type_check.eval(expression) == value


@pytest.mark.parametrize(
    ("compare", "holds"),
    [("eq", 3), ("ne", 4), ("lt", 4), ("le", 3), ("gt", 2), ("ge", 3)],
)
def test_comparisons(compare, holds):
    compare = getattr(operator, compare)
    expect(compare(a, holds))
    fails = next(n for n in (2, 3, 4) if not compare(3, n))
    with pytest.raises(InvalidType) as raised:
        expect(compare(a, holds), compare(a, fails))
    assert raised.value.expect == str(compare(a, fails))
    assert raised.value.actual.startswith("3 ")


def test_errors_contain_the_actual_type():
    with pytest.raises(InvalidType, match=r"^Expect: x\.shape\[1\] == 4\nActual: 5"):
        expect(x.shape[1] == 4)
    with pytest.raises(InvalidType, match="x.dtype.kind == i\nActual: f != i"):
        expect(x.dtype.kind == "i")


def test_an_expression_has_no_truth_value():
    with pytest.raises(RuntimeError, match="a == 3"):
        bool(a == 3)
    with pytest.raises(TypeError):
        iter(x.shape)


def test_invalid_type_is_built_as_chainers_and_from_one_string():
    assert str(InvalidType("1 axis", "2 axes")) == "Expect: 1 axis\nActual: 2 axes"
    assert str(InvalidType("1 axis", "2 axes", "the text")) == "the text"
    only = InvalidType("op: expected 1 axis, got 2")
    assert str(only) == "op: expected 1 axis, got 2"
    again = pickle.loads(pickle.dumps(InvalidType("1 axis", "2 axes")))
    assert str(again) == "Expect: 1 axis\nActual: 2 axes"
    assert again.actual == "2 axes"


def test_the_core_raises_it():
    with pytest.raises(InvalidType, match=r"add: .*\(2,\).*\(3,\)"):
        renga.Variable(numpy.ones(2)) + numpy.ones(3)


def test_types_of_arrays():
    arrays = (numpy.zeros((2, 3), "f"), numpy.zeros(4, "i"))
    types = type_check.get_types(arrays, "in_types", False)
    assert str(types[1].shape) == "in_types[1].shape"
    assert types[0].shape.eval() == (2, 3)
    with pytest.raises(InvalidType, match="in_types.size == 3\nActual: 2 != 3"):
        expect(types.size() == 3)
    light = type_check.get_light_types(arrays)
    assert light.size() == 2
    assert light[0] is arrays[0]
    shaped = type_check.get_light_types(arrays, shapes=[(6,), (2, 2)])
    assert [t.ndim for t in shaped] == [1, 2]
    with_none = type_check.get_types((None,), "in_types", True)
    assert with_none[0].ndim.eval() == 0


def test_argument_names():
    types = type_check.get_types((numpy.zeros(2), numpy.zeros(3)), "in_types", False)
    type_check.argname(types, ("x", "W"))
    assert str(types[1].ndim) == "W.ndim"
    with pytest.raises(InvalidType, match="1 arguments\nActual: 2 arguments"):
        type_check.argname(types, ("x",))


def test_light_mode():
    assert not type_check.in_light_mode()
    with type_check.light_mode:
        assert type_check.in_light_mode()
        assert make_variable(3, "a") == 3
        assert type_check.prod((2, 3)) == 6
        expect(True, 1 == 1)
        with pytest.raises(InvalidType):
            expect(True, False)
    assert not type_check.in_light_mode()


def test_broadcast_shapes():
    type_check.expect_broadcast_shapes((2, 1), make_variable((3,), "b"))
    with pytest.raises(InvalidType, match=r"\(2, 3\), b = \(4,\)"):
        type_check.expect_broadcast_shapes((2, 3), make_variable((4,), "b"))


def test_same_types():
    assert type_check.same_types(numpy.zeros(2), numpy.zeros(3))
    assert not type_check.same_types(numpy.zeros(2), [1])
