"""A residual added in the pass of batch normalization: the same as separately."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import gradient_check
from tests.python.functions.normalization.test_activation_fusion import (
    ACTIVATIONS,
    AXES,
    EPS,
    LAYOUTS,
    computed,
    operands,
    wide,
)

activations = pytest.mark.parametrize("name", ACTIVATIONS)
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def residual_for(x):
    """In the memory order of ``x``."""
    r = np.empty_like(x)
    r[...] = np.random.RandomState(3).uniform(-1, 1, x.shape)
    return r


def definition(x, gamma, beta, gy, residual, slope, limit=np.inf):
    """Of activation(normalized + residual): y, gradients of x, beta and residual."""
    x, gy = x.astype("d"), gy.astype("d")
    inverse = 1 / np.sqrt(x.var(AXES, keepdims=True) + EPS)
    hat = (x - x.mean(AXES, keepdims=True)) * inverse
    z = wide(gamma) * hat + wide(beta) + residual
    gz = np.where(z > 0, gy, slope * gy) * (z < limit)
    projection = (gz * hat).mean(AXES, keepdims=True)
    gx = wide(gamma) * inverse * (gz - gz.mean(AXES, keepdims=True) - hat * projection)
    y = np.minimum(np.where(z > 0, z, slope * z), limit)
    return y, gx, gz.sum(AXES), gz


def run(name, arrays, residual, look=lambda h, z: None, swap=False):
    """Values, and gradients of x, beta and the residual."""
    x, gamma, beta = (renga.Variable(a) for a in arrays[:3])
    r = renga.Variable(residual)
    h = F.batch_normalization(computed(x), gamma, beta)
    z = computed(r) + h if swap else h + computed(r)
    look(h, z)
    y = ACTIVATIONS[name][0](z) * 1.0
    y.grad = arrays[3]
    y.backward()
    return y.array, x.grad, beta.grad, r.grad


@activations
@layouts
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [("d", 1e-11), ("f", 2e-5), ("e", 1e-2)])
def test_values_and_gradients(name, layout, swap, dtype, tolerance):
    arrays = operands(dtype, layout)
    residual = residual_for(arrays[0])
    _, slope, limit = ACTIVATIONS[name]
    found = run(name, arrays, residual, swap=swap)
    assert all(a.dtype == dtype for a in found)
    expected = definition(*arrays, residual.astype("d"), slope, limit)
    z = definition(*arrays, residual.astype("d"), 1)[0]
    distance = np.minimum(np.abs(z), np.abs(limit - z))
    away = distance > (1e-2 if dtype == "e" else 1e-6)
    for i in (0, 1, 3):
        np.testing.assert_allclose(
            found[i][away], expected[i][away], tolerance, tolerance
        )
    np.testing.assert_allclose(found[2], expected[2], tolerance, 300 * tolerance)


@activations
@layouts
@pytest.mark.parametrize("dtype", ["d", "f", "e"])
def test_looking_changes_no_bit(name, layout, dtype):
    """A hook, too, prevents fusion: every operation is computed separately."""
    arrays = operands(dtype, layout)
    residual = residual_for(arrays[0])
    looks = [
        lambda h, z: None,
        lambda h, z: h.array,
        lambda h, z: z.array,
    ]
    results = [run(name, arrays, residual, look) for look in looks]
    with renga.function_hooks.TimerHook():
        separate = run(name, arrays, residual)
    for result in results:
        for a, b in zip(result, separate):
            np.testing.assert_array_equal(a, b)


def test_a_residual_of_another_layout_or_shape():
    arrays = operands("d")
    other = residual_for(operands("d", LAYOUTS[0])[0])
    expected = definition(*arrays, other, 0)
    for a, b in zip(run("relu", arrays, other), expected):
        np.testing.assert_allclose(a, b, 1e-9, 1e-9)
    row = other[:1]
    y, gx, gbeta, gz = definition(*arrays, row, 0)
    expected = y, gx, gbeta, gz.sum(0, keepdims=True)
    for a, b in zip(run("relu", arrays, row), expected):
        np.testing.assert_allclose(a, b, 1e-9, 1e-9)


def test_later_changes_of_the_residual_have_no_effect():
    arrays = operands("d")
    residual = residual_for(arrays[0])
    y = definition(*arrays, residual, 0)[0]
    r = computed(residual)
    z = F.batch_normalization(computed(arrays[0]), *arrays[1:3]) + r
    r.array[...] = 0
    np.testing.assert_allclose(F.relu(z).array, y, 1e-11, 1e-11)


def test_two_normalizations():
    arrays = operands("d")
    ones, zeros = np.ones(24), np.zeros(24)
    h = F.batch_normalization(computed(arrays[0]), *arrays[1:3])
    shortcut = F.batch_normalization(computed(arrays[3]), ones, zeros)
    expected = definition(*arrays, shortcut.array.copy(), 0)[0]
    shortcut = F.batch_normalization(computed(arrays[3]), ones, zeros)
    np.testing.assert_allclose(F.relu(h + shortcut).array, expected, 1e-11, 1e-11)


def test_dropout_after_a_residual():
    arrays = operands("d")
    residual = residual_for(arrays[0])
    y = definition(*arrays, residual, 1)[0]

    def dropped(h):
        np.random.seed(5)
        return F.dropout(h, 0.3)

    factors = dropped(np.ones_like(y)).array
    z = F.batch_normalization(computed(arrays[0]), *arrays[1:3]) + computed(residual)
    np.testing.assert_allclose(dropped(z).array, y * factors, 1e-11, 1e-11)


@activations
def test_double_backward(name):
    x, gamma, beta, gy = operands("d")
    residual = residual_for(x)
    rng = np.random.RandomState(2)
    ggs = tuple(rng.uniform(-1, 1, a.shape) for a in (x, gamma, beta, residual))

    def function(x, gamma, beta, residual):
        h = F.batch_normalization(x * 1.0, gamma, beta)
        return ACTIVATIONS[name][0](h + residual * 1.0)

    arguments = (x, gamma, beta, residual)
    gradient_check.check_double_backward(
        function, arguments, gy, ggs, dtype="d", eps=1e-6, atol=1e-3, rtol=1e-3
    )


def test_the_graph_is_the_same():
    arrays = operands("f")
    gamma, r = renga.Variable(arrays[1]), renga.Variable(residual_for(arrays[0]))
    h = F.batch_normalization(computed(arrays[0]), gamma, arrays[2])
    z = h + computed(r)
    y = F.relu(z)
    assert [v.creator_node.label for v in (y, z)] == ["ReLU", "_ + _"]
    assert y.creator_node.inputs[0] == z.node
    assert z.creator_node.inputs[0] == h.node and (z.rank, y.rank) == (2, 3)
