"""Dropout fused with batch normalization and an activation: the same results.

The mask of a dropout is its result for ones, which other tests compare with the
generator's definition.
"""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import gradient_check
from tests.python.functions.normalization.test_activation_fusion import (
    EPS,
    LAYOUTS,
    Recorder,
    computed,
    definition,
    operands,
)

RATIO = 0.3
ACTIVATIONS = {  # with the slope below 0
    "none": (lambda h: h, 1.0),
    "relu": (F.relu, 0.0),
    "leaky_relu": (lambda h: F.leaky_relu(h, 0.2), 0.2),
}
activations = pytest.mark.parametrize("name", ACTIVATIONS)
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def dropout(h):
    """With the same random numbers every time."""
    np.random.seed(5)
    return F.dropout(h, RATIO)


def factors(x):
    return dropout(np.ones_like(x, "d")).array


def run(name, arrays, before=computed, look=lambda x, h, r, y: None):
    """Values and gradients of x, gamma and beta; ``look`` gets intermediate results."""
    x, gamma, beta = (renga.Variable(a) for a in arrays[:3])
    first = before(x)
    h = F.batch_normalization(first, gamma, beta)
    r = ACTIVATIONS[name][0](h)
    y = dropout(r)
    look(first, h, r, y)
    last = y * 1.0
    last.grad = arrays[3].astype(last.dtype)
    last.backward()
    return last.array, x.grad, gamma.grad, beta.grad


@activations
@layouts
@pytest.mark.parametrize("dtype, tolerance", [("d", 1e-11), ("f", 2e-5), ("e", 1e-2)])
def test_values_and_gradients(name, layout, dtype, tolerance):
    arrays = operands(dtype, layout)
    kept = factors(arrays[0])
    assert abs((kept == 0).mean() - RATIO) < 0.02
    slope = ACTIVATIONS[name][1]
    y, _, *gradients, _ = definition(*arrays[:3], arrays[3] * kept, slope)
    found = run(name, arrays)
    assert all(a.dtype == dtype for a in found)
    near_kink = np.abs(definition(*arrays, 1)[1]) < (1e-2 if dtype == "e" else 1e-6)
    for a, expected in zip(found[:2], (y * kept, gradients[0])):
        np.testing.assert_allclose(
            a[~near_kink], expected[~near_kink], 2 * tolerance, 2 * tolerance
        )
    for a, expected in zip(found[2:], gradients[1:]):
        np.testing.assert_allclose(a, expected, tolerance, 300 * tolerance)


LOOKS = {
    "at none": lambda x, h, r, y: None,
    "at x": lambda x, h, r, y: x.array,
    "at h": lambda x, h, r, y: h.array,
    "at r": lambda x, h, r, y: r.array,
    "at y": lambda x, h, r, y: y.array,
}


def to_bfloat16(x):
    """Results of products."""
    eye = np.eye(24, dtype="f")[:, :, None, None]
    with renga.using_config("dtype", renga.mixed_bfloat16):
        return F.convolution_2d(x, eye)


@activations
@layouts
@pytest.mark.parametrize("dtype", ["d", "f", "e", "bfloat16"])
def test_looking_changes_no_bit(name, layout, dtype):
    """A hook, too, prevents fusion: every operation is computed separately."""
    half = dtype == "bfloat16"
    arrays = operands("f" if half else dtype, layout)
    before = to_bfloat16 if half else computed
    results = [run(name, arrays, before, look) for look in LOOKS.values()]
    with renga.function_hooks.TimerHook():
        results.append(run(name, arrays, before))
    for other in results[:-1]:
        for a, b in zip(other, results[-1]):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("channels", [1, 3, 17, 40])
@pytest.mark.parametrize("dtype", ["d", "f"])
def test_channels_that_fill_no_vector(channels, dtype):
    """Elements of a vector then have bits anywhere in the mask."""
    rng = np.random.RandomState(1)
    shape = (20 * 1024 // channels, channels)
    x, gy = rng.normal(size=(2, *shape)).astype(dtype)
    gamma, beta = rng.uniform(0.5, 2, (2, channels)).astype(dtype)
    y, gx, *_ = run("relu", (x, gamma, beta, gy))
    hat = (x - x.mean(0, dtype="d")) / np.sqrt(x.var(0, dtype="d") + EPS)
    h = gamma * hat + beta
    gh = np.where(h > 0, gy * factors(x), 0)
    expected = gh - gh.mean(0) - hat * (gh * hat).mean(0)
    expected *= gamma / np.sqrt(x.var(0, dtype="d") + EPS)
    rtol = 1e-11 if dtype == "d" else 1e-4
    np.testing.assert_allclose(y, np.maximum(h, 0) * factors(x), rtol, rtol)
    np.testing.assert_allclose(gx, expected, rtol, rtol)


@activations
def test_what_is_in_between_is_right_whenever_it_is_read(name):
    arrays = operands("d")
    activation, slope = ACTIVATIONS[name]
    kept = factors(arrays[0])
    value, between, _, _, _, gh = definition(*arrays[:3], arrays[3] * kept, slope)
    h = F.batch_normalization(computed(arrays[0]), renga.Variable(arrays[1]), arrays[2])
    r = activation(h)
    y = dropout(r)
    last = y * 1.0
    last.grad = arrays[3]
    last.backward(retain_grad=True)
    np.testing.assert_allclose(last.array, value * kept, 1e-11, 1e-11)
    np.testing.assert_allclose(r.array, value, 1e-11, 1e-11)
    np.testing.assert_allclose(h.array, between, 1e-11, 1e-11)
    np.testing.assert_allclose(h.grad, gh, 1e-11)
    np.testing.assert_allclose(r.grad, arrays[3] * kept, 1e-11)
    np.testing.assert_allclose(y.grad, arrays[3], 1e-11)


def test_other_orders_and_several_dropouts():
    arrays = operands("d")
    kept = factors(arrays[0])
    h = definition(*arrays, 0)[1]
    chains = {
        "dropout twice": (lambda h: dropout(dropout(h)), 1 + 0 * h, kept * kept),
        "relu last": (lambda h: F.relu(dropout(h)), h > 0, kept),
        "relu between": (
            lambda h: dropout(F.relu(dropout(h))),
            h > 0,
            kept * kept,
        ),
        "both used": (
            lambda h: (lambda r: dropout(r) + r)(F.relu(h)),
            h > 0,
            kept + 1,
        ),
    }
    for chain, slopes, factor in chains.values():
        x, gamma, beta = (renga.Variable(a) for a in arrays[:3])
        y = chain(F.batch_normalization(computed(x), gamma, beta)) * 1.0
        y.grad = arrays[3]
        y.backward()
        np.testing.assert_allclose(y.array, h * slopes * factor, 1e-11, 1e-11)
        # The gradient of h given, those of the parameters are those without a kink.
        gh = arrays[3] * slopes * factor
        _, _, gx, ggamma, gbeta, _ = definition(*arrays[:3], gh, 1)
        for found, expected in ((x, gx), (gamma, ggamma), (beta, gbeta)):
            np.testing.assert_allclose(found.grad, expected, 1e-9, 1e-9)


@activations
def test_double_backward(name):
    # The check creates row-major arrays, on which the dropped elements depend.
    x, gamma, beta, gy = operands("d", LAYOUTS[0])
    rng = np.random.RandomState(2)
    ggs = tuple(rng.uniform(-1, 1, a.shape) for a in (x, gamma, beta))

    def function(x, gamma, beta):
        h = F.batch_normalization(x * 1.0, gamma, beta)
        return dropout(ACTIVATIONS[name][0](h))

    gradient_check.check_double_backward(
        function, (x, gamma, beta), gy, ggs, dtype="d", eps=1e-6, atol=1e-3, rtol=1e-3
    )


def test_hooks_are_called_for_every_operation():
    arrays = operands("d")
    kept = factors(arrays[0])
    with Recorder() as recorder:
        run("relu", arrays)
    value, *_, gh = definition(*arrays[:3], arrays[3] * kept, 0)
    np.testing.assert_allclose(recorder.seen["dropout", "forward"], value, 1e-11, 1e-11)
    np.testing.assert_allclose(recorder.seen["Dropout", "backward"], arrays[3])
    np.testing.assert_allclose(recorder.seen["ReLU", "backward"], arrays[3] * kept)
    np.testing.assert_allclose(recorder.seen["BatchNormalization", "backward"], gh)
