"""Batch normalization fused with an activation: the same results as separately.

Inputs are results of operations, as a convolution's output is, and large enough for
normalization to be deferred until its result is accessed.
"""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import gradient_check

SHAPE, AXES, EPS = (8, 24, 10, 10), (0, 2, 3), 2e-5
# Functions with their slopes below 0 and their limits.
ACTIVATIONS = {
    "relu": (F.relu, 0.0, np.inf),
    "leaky_relu": (lambda h: F.leaky_relu(h, 0.2), 0.2, np.inf),
    "clipped_relu": (lambda h: F.clipped_relu(h, 1.5), 0.0, 1.5),
}
LAYOUTS = ["channels first", "channels last"]
activations = pytest.mark.parametrize("name", ACTIVATIONS)
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def operands(dtype="f", layout=LAYOUTS[1]):
    rng = np.random.RandomState(0)
    x = rng.normal(1, 2, SHAPE).astype(dtype)
    if layout == LAYOUTS[1]:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    gamma, beta = rng.uniform(0.5, 2, (2, 24)).astype(dtype)
    gy = rng.uniform(-1, 1, SHAPE).astype(dtype)
    return x, gamma, beta, gy


def computed(x):
    """An operation's output with the values of ``x``."""
    return renga.as_variable(x) * 1.0


def wide(p):
    return p.astype("d").reshape(1, -1, 1, 1)


def definition(x, gamma, beta, gy, slope, limit=np.inf):
    """Of activation(h): the values, h, and the gradients of x, gamma, beta and h."""
    x, gy = x.astype("d"), gy.astype("d")
    inverse = 1 / np.sqrt(x.var(AXES, keepdims=True) + EPS)
    hat = (x - x.mean(AXES, keepdims=True)) * inverse
    h = wide(gamma) * hat + wide(beta)
    gh = np.where(h > 0, gy, slope * gy) * (h < limit)
    mean = gh.mean(AXES, keepdims=True)
    share = (gh * hat).mean(AXES, keepdims=True)
    gx = wide(gamma) * inverse * (gh - mean - hat * share)
    y = np.minimum(np.where(h > 0, h, slope * h), limit)
    return y, h, gx, (gh * hat).sum(AXES), gh.sum(AXES), gh


class Recorder(renga.FunctionHook):
    """Records the arguments of each operation, forward and backward."""

    name = "Recorder"

    def __init__(self):
        self.seen = {}

    def forward_preprocess(self, function, in_data):
        self.seen[function.label, "forward"] = in_data[0]

    def backward_preprocess(self, function, in_data, out_grad):
        self.seen[function.label, "backward"] = out_grad[0]


def run(name, arrays, look=lambda x, h, y: None):
    """Values and gradients of x, gamma and beta; ``look`` gets intermediate results."""
    x, gamma, beta = (renga.Variable(a) for a in arrays[:3])
    before = computed(x)
    h = F.batch_normalization(before, gamma, beta)
    y = ACTIVATIONS[name][0](h)
    look(before, h, y)
    y = y * 1.0
    y.grad = arrays[3]
    y.backward()
    return y.array, x.grad, gamma.grad, beta.grad


@activations
@layouts
@pytest.mark.parametrize("dtype, tolerance", [("d", 1e-11), ("f", 2e-5), ("e", 1e-2)])
def test_values_and_gradients(name, layout, dtype, tolerance):
    arrays = operands(dtype, layout)
    y, _, *gradients, _ = definition(*arrays, *ACTIVATIONS[name][1:])
    found = run(name, arrays)
    assert all(a.dtype == dtype for a in found)
    far = [y, gradients[0]]
    h, limit = definition(*arrays, 1)[1], ACTIVATIONS[name][2]
    distance = np.minimum(np.abs(h), np.abs(limit - h))
    near_kink = distance < (1e-2 if dtype == "e" else 1e-6)
    for a, expected in zip(found[:2], far):
        np.testing.assert_allclose(
            a[~near_kink], expected[~near_kink], tolerance, tolerance
        )
    for a, expected in zip(found[2:], gradients[1:]):
        np.testing.assert_allclose(a, expected, tolerance, 300 * tolerance)


LOOKS = {
    "at h": lambda x, h, y: h.array,
    "at y": lambda x, h, y: y.array,
    "at x": lambda x, h, y: x.array,
    "at none": lambda x, h, y: None,
}


@activations
@layouts
@pytest.mark.parametrize("dtype", ["d", "f", "e", "bfloat16"])
def test_looking_changes_no_bit(name, layout, dtype):
    """A hook, too, prevents fusion: every operation is computed separately."""
    arrays = list(operands("f" if dtype == "bfloat16" else dtype, layout))
    if dtype == "bfloat16":  # results of products
        eye = np.eye(24, dtype="f")[:, :, None, None]
        with renga.using_config("dtype", renga.mixed_bfloat16):
            with renga.no_backprop_mode():
                arrays[0] = F.convolution_2d(arrays[0], eye)
        half = arrays[0]

        def go(look):
            h = F.batch_normalization(half * 1.0, *parameters)
            y = ACTIVATIONS[name][0](h)
            look(half, h, y)
            (gh,) = renga.grad([y * 1.0], [parameters[1]], [renga.Variable(arrays[3])])
            return y.array, gh.array

        parameters = [renga.Variable(a) for a in arrays[1:3]]
    else:

        def go(look):
            return run(name, arrays, look)

    results = [go(look) for look in LOOKS.values()]
    with renga.function_hooks.TimerHook():
        results.append(go(LOOKS["at none"]))
    for other in results[:-1]:
        for a, b in zip(other, results[-1]):
            np.testing.assert_array_equal(a, b)


@activations
def test_what_is_in_between_is_right_whenever_it_is_read(name):
    arrays = operands("d")
    y, h, _, _, _, gh = definition(*arrays, *ACTIVATIONS[name][1:])
    x = computed(arrays[0])
    between = F.batch_normalization(x, *arrays[1:3])
    out = ACTIVATIONS[name][0](between)
    assert between.shape == SHAPE and between.dtype == "d" and len(between) == 8
    total = out * 1.0
    np.testing.assert_allclose(total.array, y, 1e-11, 1e-11)
    np.testing.assert_allclose(between.array, h, 1e-11, 1e-11)

    gamma = renga.Variable(arrays[1])
    between = F.batch_normalization(computed(arrays[0]), gamma, arrays[2])
    out = ACTIVATIONS[name][0](between)
    total = out * 1.0
    total.grad = arrays[3]
    total.backward(retain_grad=True)
    np.testing.assert_allclose(between.grad, gh, 1e-11)
    np.testing.assert_allclose(out.grad, arrays[3], 1e-11)


def test_later_changes_of_the_input_have_no_effect():
    arrays = operands("d")
    y, h, *_ = definition(*arrays, 0)
    x, beta = computed(arrays[0]), arrays[2].copy()
    between = F.batch_normalization(x, arrays[1], beta)
    out = F.relu(between)
    x.array[...] = 0
    beta[...] = 0
    np.testing.assert_allclose(out.array, y, 1e-11, 1e-11)
    np.testing.assert_allclose(between.array, h, 1e-11, 1e-11)

    x = computed(arrays[0])
    view = x.array  # referenced from the start
    between = F.batch_normalization(x, *arrays[1:3])
    view[...] = 0
    np.testing.assert_allclose(F.relu(between).array, y, 1e-11, 1e-11)

    mine = arrays[0].copy()  # memory of NumPy's
    between = F.batch_normalization(mine, *arrays[1:3])
    mine[...] = 0
    np.testing.assert_allclose(F.relu(between).array, y, 1e-11, 1e-11)


def test_a_change_of_the_values_in_between_counts():
    arrays = operands("d")
    h = definition(*arrays, 0)[1]
    between = F.batch_normalization(computed(arrays[0]), *arrays[1:3])
    between.array[...] -= 1
    np.testing.assert_allclose(
        F.relu(between).array, np.maximum(h - 1, 0), 1e-11, 1e-11
    )
    between = F.batch_normalization(computed(arrays[0]), *arrays[1:3])
    between.array = between.array * 2
    np.testing.assert_allclose(
        F.relu(between).array, np.maximum(2 * h, 0), 1e-11, 1e-11
    )


def test_a_value_used_twice():
    arrays = operands("d")
    ones = np.ones_like(arrays[3])
    x, gamma, beta = (renga.Variable(a) for a in arrays[:3])
    h = F.batch_normalization(computed(x), gamma, beta)
    F.sum((F.relu(h) + F.leaky_relu(h, 0.5) + h) * 1.0).backward()
    value = definition(*arrays, 0)[1]
    slopes = np.where(value > 0, 3 * ones, 1.5 * ones)
    *_, ggamma, gbeta, _ = definition(*arrays[:3], slopes, 1)
    np.testing.assert_allclose(gamma.grad, ggamma, 1e-9, 1e-9)
    np.testing.assert_allclose(beta.grad, gbeta, 1e-9)


def test_a_function_of_python_gets_the_gradient():
    """An identity between the two operations."""

    class Twice(renga.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2,)

        def backward(self, indexes, grad_outputs):
            return (grad_outputs[0] * 2,)

    arrays = operands("d")
    x, beta = renga.Variable(arrays[0]), renga.Variable(arrays[2])
    h = F.batch_normalization(computed(x), arrays[1], beta)
    (y,) = Twice().apply((F.relu(h),))
    y.grad = arrays[3]
    y.backward()
    *_, gbeta, _ = definition(*arrays, 0)
    np.testing.assert_allclose(beta.grad, 2 * gbeta, 1e-9)


@activations
def test_fixed_statistics(name):
    x, gamma, beta, gy = operands("d")
    rng = np.random.RandomState(1)
    mean, var = rng.normal(size=24), rng.uniform(0.5, 2, 24)
    scale = wide(gamma) / np.sqrt(wide(var) + EPS)
    h = (x - wide(mean)) * scale + wide(beta)
    _, slope, limit = ACTIVATIONS[name]
    leaf = renga.Variable(x)
    y = ACTIVATIONS[name][0](
        F.fixed_batch_normalization(computed(leaf), gamma, beta, mean, var)
    )
    expected = np.minimum(np.where(h > 0, h, slope * h), limit)
    y = y * 1.0
    np.testing.assert_allclose(y.array, expected, 1e-12, 1e-12)
    y.grad = gy
    y.backward()
    gh = np.where(h > 0, gy, slope * gy) * (h < limit)
    np.testing.assert_allclose(leaf.grad, gh * scale)
    with renga.no_backprop_mode():
        h = F.fixed_batch_normalization(computed(leaf), gamma, beta, mean, var)
        np.testing.assert_allclose(
            (ACTIVATIONS[name][0](h) + 0).array, expected, 1e-11, 1e-11
        )


@activations
def test_double_backward(name):
    x, gamma, beta, gy = operands("d")
    rng = np.random.RandomState(2)
    ggs = tuple(rng.uniform(-1, 1, a.shape) for a in (x, gamma, beta))

    def function(x, gamma, beta):
        return ACTIVATIONS[name][0](F.batch_normalization(x * 1.0, gamma, beta))

    gradient_check.check_double_backward(
        function, (x, gamma, beta), gy, ggs, dtype="d", eps=1e-6, atol=1e-3, rtol=1e-3
    )


@pytest.mark.parametrize("dtype", "ef")
@pytest.mark.parametrize("beta", [0.0, -1e-38])
def test_the_side_of_0_is_that_of_the_normalized_number(beta, dtype):
    """With gamma 0, all of h are beta: 0, or its product with the slope underflows."""
    x, _, _, gy = operands(dtype)
    gamma, beta = np.zeros(24, dtype), np.full(24, beta, dtype)
    v = renga.Variable(beta)
    y = F.leaky_relu(F.batch_normalization(computed(x), gamma, v), 0.25)
    F.sum(y * gy).backward()
    expected = 0.25 * gy.astype("d").sum(AXES)
    tolerance = 2e-2 if dtype == "e" else 1e-4
    np.testing.assert_allclose(v.grad, expected, tolerance, tolerance)


def test_hooks_are_called_for_every_operation():
    arrays = operands("d")
    y, h, *_ = definition(*arrays, 0)
    gamma = renga.Variable(arrays[1])
    with Recorder() as recorder:
        x = computed(arrays[0])
        out = F.relu(F.batch_normalization(x, gamma, arrays[2])) * 1.0
        out.grad = arrays[3]
        out.backward()
    np.testing.assert_allclose(recorder.seen["relu", "forward"], h, 1e-11, 1e-11)
    np.testing.assert_allclose(recorder.seen["ReLU", "backward"], arrays[3])
    gh = definition(*arrays, 0)[5]
    np.testing.assert_allclose(recorder.seen["BatchNormalization", "backward"], gh)
    with renga.profiler() as profile:
        F.relu(F.batch_normalization(computed(arrays[0]), gamma, arrays[2]))
    calls = {(row.name, row.direction): row.calls for row in profile.rows()}
    assert calls["batch_normalization", "forward"] == calls["relu", "forward"] == 1


def test_the_graph_is_the_same():
    arrays = operands("f")
    gamma = renga.Variable(arrays[1])
    h = F.batch_normalization(computed(arrays[0]), gamma, arrays[2])
    y = F.relu(h)
    assert y.creator_node.label == "ReLU"
    assert h.creator_node.label == "BatchNormalization"
    assert y.creator_node.inputs[0] == h.node and (h.rank, y.rank) == (1, 2)
    h.unchain()
    y.grad = arrays[3]
    y.backward()
    assert gamma.grad is None
    np.testing.assert_allclose(h.grad, definition(*arrays, 0)[5], atol=1e-6)
