"""Every function computes on a CUDA device what it computes on the CPU.

Calls are drawn as for the fuzzer, from the rows of ``tests/catalogue``.
"""

from __future__ import annotations

import warnings

import numpy
import pytest

import renga
from renga.backends import cuda
from tests.fuzz.check import CASES as DRAWN
from tests.fuzz.draw import Draw, Operand, tree_map
from tests.fuzz.run import flat

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
CASES = {
    f"{case.name} {i}": case
    for i, case in enumerate(DRAWN)
    if case.name.startswith("F.") and case.name != "F.copy"  # which names a device
}


def run(case, arguments, send):
    """The error or None, results and gradients with arrays that ``send`` gives."""
    xs = []

    def leaf(x):
        if not isinstance(x, Operand):
            return x
        if not isinstance(x.value, numpy.ndarray) or x.value.dtype.kind in "OV":
            return x.value
        array = send(x.value.copy())
        if x.role != "x":
            return array
        xs.append(renga.Variable(array))
        return xs[-1]

    numpy.random.seed(0)
    args, kwargs = tree_map(leaf, arguments)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            ys = flat(case.function(*args, **kwargs))
        except Exception as error:
            return error, [], []
        roots = [
            y
            for y in ys
            if isinstance(y, renga.Variable) and y.requires_grad and y.dtype.kind == "f"
        ]
        leaves = [x for x in xs if x.dtype.kind == "f"]
        gxs = []
        if roots and leaves:
            gys = [renga.Variable(send(weights(y.shape, y.dtype))) for y in roots]
            gxs = renga.grad(roots, leaves, gys)
        return None, ys, gxs


def weights(shape, dtype):
    n = int(numpy.prod(shape))
    return (numpy.arange(n) % 7 / 4 - 0.5).reshape(shape).astype(dtype)


def assert_same(ys, expected, on_device):
    assert len(ys) == len(expected)
    for y, x in zip(ys, expected):
        if not isinstance(x, (renga.Variable, numpy.ndarray)):
            assert type(y) is type(x) or isinstance(y, (renga.Variable, cuda.ndarray))
            continue
        array = getattr(y, "array", y)
        x = getattr(x, "array", x)
        if on_device:
            assert isinstance(array, cuda.ndarray)
        array = cuda.to_cpu(array)
        assert (array.shape, array.dtype) == (x.shape, x.dtype)
        tolerance = {"e": 1e-2, "f": 2e-4}.get(x.dtype.char, 1e-9)
        scale = abs(x[numpy.isfinite(x)]).max(initial=1) if x.dtype.kind == "f" else 1
        numpy.testing.assert_allclose(array, x, tolerance, tolerance * scale)


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    case = CASES[name]
    for seed in range(2):
        g = Draw(numpy.random.default_rng(seed), "fd")
        arguments = case.draw(g)
        error, expected, gradients = run(case, arguments, lambda x: x)
        error_there, ys, gxs = run(case, arguments, cuda.to_gpu)
        assert type(error_there) is type(error), (error_there, error)
        assert_same(ys, expected, on_device=True)
        assert_same(gxs, gradients, on_device=True)
