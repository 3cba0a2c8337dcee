"""Every listed operation: values, first and second derivatives, dtypes, strides.

All of it on every device that is present: CUDA devices, and in builds with RENGA_TESTS
a second device in the host's memory (``tests/mirror_device``).
"""

import contextlib
import importlib
import importlib.util

import numpy as np
import pytest

from renga import _core
from renga.backends import cuda
from tests.catalogue import CASES, CATALOGUE

if importlib.util.find_spec("renga._core_mirror") is not None:
    importlib.import_module("renga._core_mirror")
with contextlib.suppress(RuntimeError):
    cuda.load_plugin()

ops = _core.ops
ALL = [(name, i) for name in CASES for i in range(len(CASES[name]))]
EPS = 1e-5
HOST, *OTHERS = _core.device_names()


@pytest.fixture(params=[HOST, *(f"{name}:0" for name in OTHERS)])
def device(request):
    """The name of a device."""
    return request.param


def on_device(x, device, requires_grad=True):
    x = _core.Variable(x, requires_grad=requires_grad)
    if device != HOST:
        x.move_to(device)
    return x


def random_arrays(case, dtype, seed=0):
    rng = np.random.RandomState(seed)
    arrays = []
    for shape in case.shapes:
        x = rng.uniform(case.low, case.high, shape)
        if np.dtype(dtype).kind == "u":
            x = np.abs(x)
        arrays.append(
            np.asarray(x * (1 if np.dtype(dtype).kind == "f" else 3)).astype(dtype)
        )
    return arrays


def outputs(case, variables):
    y = case.call(ops, *variables)
    return y if isinstance(y, list) else [y]


def references(case, arrays):
    y = case.reference(*[x.astype("d") for x in arrays])
    return y if isinstance(y, list) else [y]


def weighted_sum(ys, weights, device=HOST):
    """Of all elements, so that each matters differently."""
    total = None
    for y, w in zip(ys, weights):
        w = on_device(w.astype(y.dtype), device, requires_grad=False)
        part = ops.sum(ops.multiply(y, w))
        total = part if total is None else ops.add(total, part)
    return total


def weights_for(case, arrays):
    rng = np.random.RandomState(1)
    return [rng.uniform(0.5, 1.5, np.shape(y)) for y in references(case, arrays)]


def directions_for(arrays, seed):
    rng = np.random.RandomState(seed)
    return [np.asarray(rng.uniform(-1, 1, x.shape)) for x in arrays]


def gradients(case, arrays, weights, device=HOST, create_graph=False):
    xs = [on_device(x, device) for x in arrays]
    ys = outputs(case, xs)
    y = weighted_sum(ys, weights, device)
    gs = _core.grad([y], xs, [], [], enable_double_backprop=create_graph)
    assert all(g.device_name == device for g in gs if g is not None)
    return xs, gs


def shifted(arrays, directions, step):
    return [np.asarray(x + step * d) for x, d in zip(arrays, directions)]


def directional_derivative(gs, directions):
    return sum(
        float((cuda.to_cpu(g.array) * d).sum())
        for g, d in zip(gs, directions)
        if g is not None
    )


def non_contiguous_views(arrays):
    """The same values with negative strides and another memory order."""
    views = []
    for x in arrays:
        transposed = x.T.copy()
        reverse = tuple(slice(None, None, -1) for _ in x.shape)
        view = np.asarray(np.array(transposed[reverse])[reverse]).T
        np.testing.assert_array_equal(view, x)
        views.append(view)
    return views


@pytest.mark.parametrize("name, i", ALL)
def test_forward(name, i, device):
    case = CASES[name][i]
    for dtype in case.dtypes:
        arrays = random_arrays(case, dtype)
        before = [x.copy() for x in arrays]
        # float16 is compared at its own precision: its inputs are rounded already.
        tolerance = {"e": 4e-3, "d": 1e-12}.get(dtype, case.tolerance)
        layouts = [arrays, [] if name == "dropout" else non_contiguous_views(arrays)]
        if device != HOST:
            layouts = [[on_device(x, device, requires_grad=False) for x in arrays]]
        for inputs in layouts:
            if not inputs and arrays:
                continue
            ys = outputs(case, inputs)
            on_host = CATALOGUE[name].returns_arrays and not device.startswith("cuda")
            assert ys[0].device_name == (HOST if on_host else device)
            for y, expected in zip(ys, references(case, arrays)):
                assert y.shape == np.shape(expected)
                if np.dtype(dtype).kind in "iu":  # integers wrap around
                    expected = np.asarray(expected).astype("l").astype(dtype)
                np.testing.assert_allclose(
                    cuda.to_cpu(y.array), expected, tolerance, tolerance
                )
        for x, original in zip(arrays, before):
            np.testing.assert_array_equal(x, original)


@pytest.mark.parametrize(
    "name, i", [p for p in ALL if len(CASES[p[0]][p[1]].shapes) > 1]
)
@pytest.mark.parametrize("device", [f"{name}:0" for name in OTHERS])
def test_an_operand_on_the_host(name, i, device):
    """It is copied to the device or refused: kernels cannot read its address."""
    case = CASES[name][i]
    arrays = random_arrays(case, "f")
    for there in range(len(arrays)):
        xs = [on_device(x, device, requires_grad=False) for x in arrays]
        xs[there] = on_device(arrays[there], HOST, requires_grad=False)
        try:
            ys = outputs(case, xs)
        except ValueError as error:
            assert "one device" in str(error)
            continue
        for y, expected in zip(ys, references(case, arrays)):
            np.testing.assert_allclose(
                cuda.to_cpu(y.array), expected, case.tolerance, case.tolerance
            )


@pytest.mark.parametrize("name, i", [p for p in ALL if CASES[p[0]][p[1]].orders >= 1])
def test_gradient(name, i, device):
    case = CASES[name][i]
    arrays = random_arrays(case, "d")
    weights, directions = weights_for(case, arrays), directions_for(arrays, 2)

    def value(step):
        ys = references(case, shifted(arrays, directions, step))
        return sum(float((y * w).sum()) for y, w in zip(ys, weights))

    _, gs = gradients(case, arrays, weights, device)
    numeric = (value(EPS) - value(-EPS)) / (2 * EPS)
    np.testing.assert_allclose(
        directional_derivative(gs, directions), numeric, 1e-6, 1e-7
    )
    if name != "dropout" and device == HOST:
        _, same = gradients(case, non_contiguous_views(arrays), weights)
        for g, h in zip(gs, same):
            x, y = cuda.to_cpu([h.array, g.array])
            np.testing.assert_allclose(x, y, 1e-9, 1e-12)


@pytest.mark.parametrize("name, i", [p for p in ALL if CASES[p[0]][p[1]].orders >= 1])
def test_gradient_in_lower_precision(name, i, device):
    case = CASES[name][i]
    for dtype, tolerance in (("f", 1e-4), ("e", 2e-2)):
        arrays = random_arrays(case, dtype)
        weights = [w.astype(dtype).astype("d") for w in weights_for(case, arrays)]
        _, exact = gradients(case, [x.astype("d") for x in arrays], weights)
        _, gs = gradients(case, arrays, weights, device)
        for g, expected in zip(gs, exact):
            assert g.dtype == dtype
            scale = max(1.0, float(np.abs(expected.array).max(initial=0)))
            np.testing.assert_allclose(
                cuda.to_cpu(g.array), expected.array, tolerance, tolerance * scale
            )


@pytest.mark.parametrize("name, i", [p for p in ALL if CASES[p[0]][p[1]].orders >= 2])
def test_second_gradient(name, i, device):
    case = CASES[name][i]
    arrays = random_arrays(case, "d")
    weights = weights_for(case, arrays)
    u, v = directions_for(arrays, 2), directions_for(arrays, 3)

    def slope(step):
        return directional_derivative(
            gradients(case, shifted(arrays, v, step), weights)[1], u
        )

    xs, gs = gradients(case, arrays, weights, device, create_graph=True)
    total = weighted_sum(gs, u, device)
    second_gradients = _core.grad([total], xs, [], [])
    numeric = (slope(EPS) - slope(-EPS)) / (2 * EPS)
    np.testing.assert_allclose(
        directional_derivative(second_gradients, v), numeric, 1e-5, 1e-6
    )
