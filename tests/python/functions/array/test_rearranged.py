"""Functions that move, repeat and join elements, against NumPy's."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 3, 4))
v, m = x[0, 0], x[0]
image = rng.normal(size=(2, 4, 2, 6))


def both(ours, numpys, *arguments, **options):
    return (
        lambda x: ours(x, *arguments, **options),
        lambda x: numpys(x, *arguments, **options),
    )


def all_of(ours, numpys):
    return lambda *xs: ours(xs), lambda *xs: numpys(xs)


CASES = {
    "diagonal": (*both(F.diagonal, numpy.diagonal), m),
    "diagonal above": (*both(F.diagonal, numpy.diagonal, 1, 1, 2), x),
    "diagonal below": (*both(F.diagonal, numpy.diagonal, -1, 2, 0), x),
    "diagonal outside": (*both(F.diagonal, numpy.diagonal, 5), m),
    "diagonal further out": (*both(F.diagonal, numpy.diagonal, -7), m),
    "moveaxis": (*both(F.moveaxis, numpy.moveaxis, 0, -1), x),
    "moveaxis of two": (*both(F.moveaxis, numpy.moveaxis, (0, -1), (1, 0)), x),
    "moveaxis of all": (*both(F.moveaxis, numpy.moveaxis, (2, 0, 1), (0, 1, 2)), x),
    "rollaxis": (*both(F.rollaxis, numpy.rollaxis, 2), x),
    "rollaxis to": (*both(F.rollaxis, numpy.rollaxis, 0, 3), x),
    "rollaxis back": (*both(F.rollaxis, numpy.rollaxis, -1, -2), x),
    "flip": (*both(F.flip, numpy.flip, 1), x),
    "flip last": (*both(F.flip, numpy.flip, -1), x),
    "flipud": (*both(F.flipud, numpy.flipud), v),
    "fliplr": (*both(F.fliplr, numpy.fliplr), x),
    "hstack": (*all_of(F.hstack, numpy.hstack), m, m[:, :1]),
    "hstack of vectors": (*all_of(F.hstack, numpy.hstack), v, v[:2]),
    "hstack of numbers": (*all_of(F.hstack, numpy.hstack), v[0] * 1, v[1] * 1),
    "vstack": (*all_of(F.vstack, numpy.vstack), x, x[:1]),
    "vstack of vectors": (*all_of(F.vstack, numpy.vstack), v, v * 2),
    "vstack of numbers": (*all_of(F.vstack, numpy.vstack), v[0] * 1, v[1] * 1),
    "dstack": (*all_of(F.dstack, numpy.dstack), x, x[:, :, :1]),
    "dstack of matrices": (*all_of(F.dstack, numpy.dstack), m, m * 2),
    "dstack of vectors": (*all_of(F.dstack, numpy.dstack), v, v * 2),
    "dstack of numbers": (*all_of(F.dstack, numpy.dstack), v[0] * 1, v[1] * 1),
    "repeat": (*both(F.repeat, numpy.repeat, 2, axis=1), x),
    "repeat flat": (*both(F.repeat, numpy.repeat, 3), m),
    "repeat number": (*both(F.repeat, numpy.repeat, 3), v[0] * 1),
    "repeat never": (*both(F.repeat, numpy.repeat, 0, axis=1), x),
    "repeat each": (*both(F.repeat, numpy.repeat, (1, 0, 2), axis=-2), x),
    "repeat tuple": (*both(F.repeat, numpy.repeat, (2,), axis=0), x),
    "tile": (*both(F.tile, numpy.tile, 2), x),
    "tile axes": (*both(F.tile, numpy.tile, (3, 1, 2)), m),
    "tile number": (*both(F.tile, numpy.tile, (2, 3)), v[0] * 1),
    "tile never": (*both(F.tile, numpy.tile, (0, 1)), m),
    "separate": (F.separate, tuple, x),
    "separate axis": (
        lambda x: F.separate(x, -1),
        lambda x: tuple(numpy.moveaxis(x, -1, 0)),
        x,
    ),
    "separate one": (F.separate, tuple, x[:1]),
    "space2depth": (
        lambda x: F.space2depth(x, 2),
        lambda x: numpy.concatenate(
            [x[:, :, i::2, j::2] for i in range(2) for j in range(2)], 1
        ),
        image,
    ),
    "depth2space": (
        lambda x: F.space2depth(F.depth2space(x, 2), 2) * x,
        lambda x: x * x,
        image,
    ),
    "permutate": (
        lambda x: F.permutate(x, numpy.array([2, 0, 1]), 1),
        lambda x: x[:, [2, 0, 1]],
        x,
    ),
    "permutate back": (
        lambda x: F.permutate(x, numpy.array([2, 0, 1]), axis=1, inv=True),
        lambda x: x[:, [1, 2, 0]],
        x,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    function, reference, *arrays = CASES[name]
    check(function, reference, *map(numpy.asarray, arrays))


@pytest.mark.parametrize("dtype", ["f", "?", "i"])
@pytest.mark.parametrize(
    "name, arguments",
    [
        ("tile", [(3, 1)]),
        ("tile", [1]),
        ("tile", [(2, 1, 1)]),
        ("repeat", [3, 0]),
        ("repeat", [1, 1]),
    ],
)
def test_repetitions_are_written_to_one_by_one(name, arguments, dtype):
    x = numpy.array([[1, 0, 1]], dtype)
    expected = getattr(numpy, name)(x, *arguments)
    y = getattr(F, name)(x, *arguments)
    assert y.array.tolist() == expected.tolist()
    y.array[(0,) * y.ndim] = expected[(0,) * y.ndim] = 0
    assert y.array.tolist() == expected.tolist()
    assert x.tolist() == [[1, 0, 1]]


FAULTS = [
    (lambda: F.diagonal(v), InvalidType),
    (lambda: F.diagonal(m, 0, 0, 2), InvalidType),
    (lambda: F.diagonal(m, 0, 1, 1), ValueError),
    (lambda: F.moveaxis(x, 3, 0), InvalidType),
    (lambda: F.moveaxis(x, (0, 1), 0), ValueError),
    (lambda: F.moveaxis(x, (0, 0), (1, 2)), ValueError),
    (lambda: F.moveaxis(x, 1.5, 0), TypeError),
    (lambda: F.rollaxis(x, 4), InvalidType),
    (lambda: F.rollaxis(x, 1, 5), InvalidType),
    (lambda: F.rollaxis(x, 1.5), TypeError),
    (lambda: F.rollaxis(x, 1, 1.5), TypeError),
    (lambda: F.flip(x, 3), InvalidType),
    (lambda: F.flip(x, 1.5), TypeError),
    (lambda: F.flipud(numpy.array(1.0)), InvalidType),
    (lambda: F.fliplr(v), InvalidType),
    (lambda: F.hstack([]), InvalidType),
    (lambda: F.hstack([m, m[:2]]), InvalidType),
    (lambda: F.vstack([v, m]), InvalidType),
    (lambda: F.vstack([v, v[:2]]), InvalidType),
    (lambda: F.dstack([m, m[:2]]), InvalidType),
    (lambda: F.repeat(v, -1), ValueError),
    (lambda: F.repeat(v, (1, 2)), ValueError),
    (lambda: F.repeat(v, 1.5), TypeError),
    (lambda: F.repeat(v, [1, 2, 3, 4]), TypeError),
    (lambda: F.repeat(v, 1, 1.5), TypeError),
    (lambda: F.tile(v, -1), ValueError),
    (lambda: F.tile(v, 1.5), TypeError),
    (lambda: F.tile(v, [2]), TypeError),
    (lambda: F.separate(v, 1), InvalidType),
    (lambda: F.separate(numpy.array(1.0)), InvalidType),
    (lambda: F.space2depth(image, 4), ValueError),
    (lambda: F.depth2space(image, 3), ValueError),
    (lambda: F.space2depth(x, 2), InvalidType),
    (lambda: F.depth2space(image.astype("i"), 2), InvalidType),
    (lambda: F.permutate(v, numpy.array([1, 2, 7])), IndexError),
    (lambda: F.permutate(v, numpy.array([1.0, 2])), ValueError),
    (lambda: F.permutate(v, numpy.array([[1, 2]])), ValueError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
