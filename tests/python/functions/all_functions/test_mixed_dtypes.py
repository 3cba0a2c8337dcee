"""Products of different float dtypes: the dtypes of results and gradients."""

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)

PRODUCTS = {
    "matmul": (F.matmul, numpy.matmul, (2, 3), (3, 4)),
    "operator": (lambda a, b: a @ b, numpy.matmul, (3,), (3,)),
    "tensordot": (lambda a, b: F.tensordot(a, b, 1), numpy.matmul, (2, 3), (3, 4)),
    "einsum": (
        lambda a, b: F.einsum("ij,jk->ik", a, b),
        numpy.matmul,
        (2, 3),
        (3, 4),
    ),
    "arctan2": (F.arctan2, numpy.arctan2, (2, 3), (2, 3)),
}
TOLERANCE = {"e": 1e-2, "f": 1e-5, "d": 1e-12}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtypes", ["ef", "fd", "de"])
def test_the_wider_dtype(name, dtypes):
    function, reference, *shapes = PRODUCTS[name]
    a, b = (
        rng.normal(size=shape).astype(dtype) for shape, dtype in zip(shapes, dtypes)
    )
    x, y = renga.Variable(a), renga.Variable(b)
    z = function(x, y)
    assert z.dtype == numpy.promote_types(*dtypes)
    expected = reference(a.astype("d"), b.astype("d"))
    narrowest = max(TOLERANCE[dtype] for dtype in dtypes)
    numpy.testing.assert_allclose(z.array, expected, narrowest, narrowest)
    F.sum(z).backward()
    assert [x.grad.dtype.char, y.grad.dtype.char] == list(dtypes)


@pytest.mark.parametrize(("of_x", "of_w"), ["fd", "ef", "df"])
def test_linear_has_the_dtype_of_its_input(of_x, of_w):
    x = renga.Variable(rng.normal(size=(2, 3)).astype(of_x))
    w = renga.Variable(rng.normal(size=(4, 3)).astype(of_w))
    y = F.linear(x, w)
    assert y.dtype == of_x
    expected = x.array.astype("d") @ w.array.T.astype("d")
    numpy.testing.assert_allclose(y.array, expected, 1e-2, 1e-2)
    F.sum(y).backward()
    assert x.grad.dtype == of_x and w.grad.dtype == of_w
    numpy.testing.assert_allclose(w.grad[0], x.array.sum(0), 1e-2, 1e-2)


@pytest.mark.parametrize(
    ("function", "shapes", "named"),
    [
        (F.bilinear, "23 24 345", "e1, e2 and W"),
        (F.bilinear, "23 24 345 35 45 5", "e1, e2, W, V1, V2 and b"),
        (F.local_convolution_2d, "1133 122122", "x and W"),
        (F.local_convolution_2d, "1133 122122 122", "x, W and b"),
        (F.deformable_convolution_2d_sampler, "1133 1822 1122", "x, offset and W"),
        (F.deformable_convolution_2d_sampler, "1133 1822 1122 1", "x, offset, W and b"),
    ],
)
def test_refused_dtypes_are_those_of_the_named_operands(function, shapes, named):
    first, *others = (numpy.ones(tuple(map(int, each))) for each in shapes.split())
    got = " and ".join(["int32", *["float64"] * len(others)])
    text = f"^{function.__name__}: expected {named} of one float dtype, got {got}$"
    with pytest.raises(InvalidType, match=text):
        function(first.astype("i"), *others)
