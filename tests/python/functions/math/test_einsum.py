"""einsum against numpy.einsum."""

import numpy
import pytest

import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)
EXTENTS = dict(i=2, j=3, k=4, l=5, b=2)


def arrays(subscripts, dots=(2, 3)):
    terms = subscripts.partition("->")[0].replace(" ", "").split(",")
    shapes = []
    for term in terms:
        before, found, after = term.partition("...")
        shape = [EXTENTS[a] for a in before] + list(dots if found else ())
        shapes.append(shape + [EXTENTS[a] for a in after])
    return [rng.normal(size=shape) for shape in shapes]


CASES = [
    "ij,jk->ik",
    "ij,kj",
    "ij,ij->",
    "ij,ij->ij",
    "ij,ij",
    "i,j->ij",
    "ij->ji",
    "ij->j",
    "ij",
    "ji",
    "ii",
    "ii->i",
    "iij->ji",
    "iii->i",
    "bij,bjk->bik",
    "ij,jk,kl->il",
    "ij,jk,kl,l",
    "ijk,jl,i->kl",
    "ij,ik,il->jkl",
    "i,i,i->i",
    "i,->i",
    ",",
    "i j , j k -> k i",
    "...ij,...jk->...ik",
    "...j,j->...",
    "i...,i...->...",
    "...,...",
    "i...j->j...i",
    "bij,kj->bik",
    "ib,jb->bij",
]


@pytest.mark.parametrize("subscripts", CASES)
def test_against_numpy(subscripts):
    operands = arrays(subscripts)
    expected = numpy.einsum(subscripts, *operands)
    y = F.einsum(subscripts, *operands)
    assert y.shape == expected.shape
    numpy.testing.assert_allclose(y.array, expected, atol=1e-12)
    gy = numpy.asarray(rng.normal(size=y.shape))
    gradient_check.check_backward(
        lambda *xs: F.einsum(subscripts, *xs), tuple(operands), gy
    )


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "iij->ji", "i...,i...->..."])
def test_second_gradients(subscripts):
    operands = tuple(arrays(subscripts))
    gy = rng.normal(size=numpy.einsum(subscripts, *operands).shape)
    ggs = tuple(rng.normal(size=a.shape) for a in operands)
    gradient_check.check_double_backward(
        lambda *xs: F.einsum(subscripts, *xs) ** 2, operands, gy, ggs
    )


def test_axes_behind_an_ellipsis_broadcast():
    a, b = rng.normal(size=(4, 1, 2)), rng.normal(size=(3, 2))
    y = F.einsum("...i,...i->...", a, b)
    numpy.testing.assert_allclose(y.array, numpy.einsum("...i,...i->...", a, b))
    y = F.einsum("...,...i->i...", a, rng.normal(size=(3, 2, 5)))
    assert y.shape == (5, 4, 3, 2)


def test_operands_with_lists_of_axes():
    a, b = arrays("ij,jk")
    y = F.einsum(a, [0, 1], b, [1, 7], [7, 0])
    numpy.testing.assert_allclose(y.array, (a @ b).T)
    y = F.einsum(a, [Ellipsis, 1], b, [1, 2])
    numpy.testing.assert_allclose(y.array, a @ b)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "error"),
    [
        ("ij->ijk", [(2, 3)], ValueError),
        ("ij->ii", [(2, 3)], ValueError),
        ("ij", [(2, 3), (2, 3)], ValueError),
        ("ij,jk", [(2, 3)], ValueError),
        ("i-j", [(2, 3)], ValueError),
        ("i..j->ij", [(2, 3)], ValueError),
        ("......", [(2, 3)], ValueError),
        ("ijk", [(2, 3)], ValueError),
        ("i", [(2, 3)], ValueError),
        ("...->", [(2, 3)], ValueError),
        ("ij->...ij", [(2, 3)], ValueError),
        ("ii", [(2, 3)], InvalidType),
        ("ij,jk", [(2, 3), (2, 3)], InvalidType),
        ("i,i", [(1,), (3,)], InvalidType),
    ],
)
def test_faults(subscripts, shapes, error):
    with pytest.raises(error):
        F.einsum(subscripts, *map(numpy.ones, shapes))


def test_more_faults():
    with pytest.raises(ValueError):
        F.einsum()
    with pytest.raises(ValueError):
        F.einsum(numpy.ones(2), [-1])
