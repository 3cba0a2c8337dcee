"""Without a graph, what follows a convolution goes over its parts: the same results.

Values are those of the definition in float64; bits are those of operations that a hook
keeps separate. Images are large enough for a convolution to be deferred until its
result is accessed.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga._runtime.runtime_info import cpu
from tests.threads import on_threads

EPS = 2e-5
# Channels, outputs, kernel, stride, pad, groups, extent of the images.
SHAPES = {
    "pointwise": (24, 40, 1, 1, 0, 1, 32),
    "pointwise, odd": (24, 20, 1, 1, 0, 1, 48),  # no multiple of a vector
    "pointwise, few": (48, 5, 1, 1, 0, 1, 64),
    "pointwise, wide": (64, 100, 1, 1, 0, 1, 30),
    "strided": (24, 40, 1, 2, 0, 1, 45),
    "dense": (32, 32, 3, 1, 1, 1, 24),
    "direct": (3, 24, 3, 2, 1, 1, 64),
    "direct, odd": (3, 27, 3, 2, 1, 1, 64),
    "depthwise": (40, 40, 3, 1, 1, 40, 25),
    "depthwise, odd": (37, 37, 3, 1, 1, 37, 25),
    "strided depthwise": (40, 40, 5, 2, 2, 40, 41),
    "wide depthwise": (24, 24, 7, 1, 3, 24, 29),
    "grouped": (32, 64, 3, 1, 1, 4, 20),
}
shapes = pytest.mark.parametrize("name", SHAPES)
STEPS = {
    "relu": (F.relu, lambda h: np.maximum(h, 0)),
    "leaky_relu": (F.leaky_relu, lambda h: np.where(h > 0, h, 0.2 * h)),
    "relu6": (F.relu6, lambda h: np.clip(h, 0, 6)),
    "hard_swish": (F.hard_swish, lambda h: h * np.clip(h + 3, 0, 6) / 6),
    "silu": (F.silu, lambda h: h / (1 + np.exp(-h))),
    "sigmoid": (F.sigmoid, lambda h: 1 / (1 + np.exp(-h))),
    "tanh": (F.tanh, np.tanh),
    "hard_sigmoid": (F.hard_sigmoid, lambda h: np.clip(0.2 * h + 0.5, 0, 1)),
}


def operands(name, seed=0):
    channels, outputs, ksize, _, _, groups, extent = SHAPES[name]
    rng = np.random.RandomState(seed)
    x = rng.normal(size=(3, extent, extent, channels)).astype("f")
    W = rng.normal(size=(outputs, channels // groups, ksize, ksize)).astype("f")
    b, gamma, beta, mean = rng.normal(size=(4, outputs)).astype("f")
    var = rng.uniform(20, 200, outputs).astype("f")
    return x.transpose(0, 3, 1, 2), W, b, (gamma, beta, mean, var)


def definition(x, W, b, name):
    *_, stride, pad, groups, _ = SHAPES[name]
    x = np.pad(x.astype("d"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, W.shape[2:], (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    parts = zip(np.split(windows, groups, 1), np.split(W.astype("d"), groups))
    y = [np.einsum("nihwkl,oikl->nohw", p, w, optimize=True) for p, w in parts]
    return np.concatenate(y, 1) + b.astype("d").reshape(1, -1, 1, 1)


def normalized(h, statistics):
    gamma, beta, mean, var = (p.astype("d").reshape(1, -1, 1, 1) for p in statistics)
    return (h - mean) / np.sqrt(var + EPS) * gamma + beta


def convolved(x, W, b, name):
    *_, stride, pad, groups, _ = SHAPES[name]
    # The image is an operation's result, whose memory is the core's.
    h = renga.as_variable(x) * 1.0
    return F.convolution_2d(h, W, b, stride, pad, groups=groups)


def parameters(*values):
    """In the core's memory: a result waits only for what nothing else can write to."""
    make = renga.initializers.Constant
    return [renga.Parameter(make(value), value.shape) for value in values]


@pytest.fixture(autouse=True)
def evaluation():
    with renga.no_backprop_mode(), renga.using_config("train", False):
        yield


@shapes
@pytest.mark.parametrize("step", ["relu", "relu6", "silu"])
def test_normalization_and_activation(name, step):
    x, W, b, statistics = operands(name)
    function, expected = STEPS[step]
    W, b = parameters(W, b)

    def run():  # no name keeps what is computed in between: it is overwritten
        return function(
            F.fixed_batch_normalization(convolved(x, W, b, name), *statistics)
        ).array

    y = run()
    h = normalized(definition(x, W.array, b.array, name), statistics)
    np.testing.assert_allclose(y, expected(h), 1e-4, 1e-4)
    with renga.function_hooks.TimerHook():
        np.testing.assert_array_equal(run(), y)


@pytest.mark.parametrize("step", STEPS)
def test_activation_of_a_convolution(step):
    x, W, b, _ = operands("pointwise")
    function, expected = STEPS[step]
    parts = parameters(W, b)
    y = function(convolved(x, *parts, "pointwise")).array
    np.testing.assert_allclose(
        y, expected(definition(x, W, b, "pointwise")), 1e-4, 1e-4
    )
    with renga.function_hooks.TimerHook():
        separate = function(convolved(x, *parts, "pointwise")).array
    np.testing.assert_array_equal(y, separate)


@pytest.mark.parametrize("step", ["silu", "tanh"])
def test_activation_of_the_parts_of_a_normalized_image(step):
    x, _, _, statistics = operands("depthwise")
    function, expected = STEPS[step]
    for image in (x, np.ascontiguousarray(x)):
        h = renga.as_variable(image) * 1.0
        y = function(F.fixed_batch_normalization(h, *statistics)).array
        np.testing.assert_allclose(
            y, expected(normalized(x.astype("d"), statistics)), 1e-4, 1e-4
        )


@shapes
def test_a_residual_and_the_activation_after_it(name):
    x, W, b, statistics = operands(name)
    h = normalized(definition(x, W, b, name), statistics)
    residual = np.random.RandomState(1).normal(size=h.shape).astype("f")
    W, b = parameters(W, b)
    rows = np.ascontiguousarray(residual.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)

    def run(step):
        other = renga.as_variable(rows) * 1.0
        before = convolved(x, W, b, name)
        return step(other + F.fixed_batch_normalization(before, *statistics)).array

    for step, expected in list(STEPS.values())[:3]:
        y = run(step)
        np.testing.assert_allclose(y, expected(h + residual), 1e-4, 1e-4)
        with renga.function_hooks.TimerHook():
            np.testing.assert_array_equal(run(step), y)


@pytest.mark.parametrize("name", ["pointwise", "depthwise", "dense"])
def test_bfloat16(name):
    x, W, b, statistics = operands(name)
    parts = parameters(W, b)

    def run():
        h = F.fixed_batch_normalization(convolved(x, *parts, name), *statistics)
        return F.cast(F.hard_swish(h), "f").array

    with renga.using_config("dtype", renga.mixed_bfloat16):
        y = run()
        with renga.function_hooks.TimerHook():
            np.testing.assert_array_equal(run(), y)
    h = normalized(definition(x, W, b, name), statistics)
    expected = h * np.clip(h + 3, 0, 6) / 6
    np.testing.assert_allclose(y, expected, 0.1, 0.1)


def test_what_is_in_between_is_right_whenever_it_is_read():
    x, W, b, statistics = operands("pointwise")
    expected = definition(x, W, b, "pointwise")
    h = convolved(x, *parameters(W, b), "pointwise")
    n = F.fixed_batch_normalization(h, *statistics)
    y, other = F.silu(n), F.relu(h)
    assert h.shape == n.shape == expected.shape
    bend = STEPS["silu"][1](normalized(expected, statistics))
    np.testing.assert_allclose(y.array, bend, 1e-4, 1e-4)
    np.testing.assert_allclose(h.array, expected, 1e-4, 1e-4)
    np.testing.assert_allclose(other.array, np.maximum(expected, 0), 1e-4, 1e-4)
    np.testing.assert_allclose(n.array, normalized(expected, statistics), 1e-4, 1e-4)


def test_later_changes_have_no_effect():
    x, W, b, statistics = operands("pointwise")
    expected = normalized(definition(x, W, b, "pointwise"), statistics)
    weights, bias = parameters(W.copy(), b.copy())
    image, statistics = x.copy(), [p.copy() for p in statistics]
    variable = renga.as_variable(image) * 1.0
    ys = [F.convolution_2d(v, weights, bias) for v in (image, variable)]
    ys = [F.fixed_batch_normalization(y, *statistics) for y in ys]
    image[...] = 0
    for array in (variable.array, weights.array, bias.array, *statistics):
        array[...] = 0
    for y in ys:
        np.testing.assert_allclose(y.array, expected, 1e-4, 1e-4)


def test_an_update_of_the_weights_comes_after_the_convolution():
    x, W, b, _ = operands("pointwise")
    link = L.Convolution2D(24, 40, 1, initialW=W, initial_bias=b)
    y = F.relu(link(renga.as_variable(x) * 1.0))
    optimizer = renga.optimizers.SGD(lr=1.0).setup(link)
    for parameter in link.params():
        parameter.grad = np.ones_like(parameter.array)
    optimizer.update()
    expected = np.maximum(definition(x, W, b, "pointwise"), 0)
    np.testing.assert_allclose(y.array, expected, 1e-4, 1e-4)


def test_the_precision_is_that_of_the_call():
    x, W, b, _ = operands("dense")
    parts = parameters(W, b)
    with renga.using_config("compute_precision", "medium"):
        y = convolved(x, *parts, "dense")
        expected = convolved(x, *parts, "dense").array
    np.testing.assert_array_equal(y.array, expected)


def test_many_activations_in_a_row():
    x, W, b, _ = operands("pointwise")
    h = convolved(x, *parameters(W, b), "pointwise")
    expected = definition(x, W, b, "pointwise")
    for _ in range(100):
        h = F.tanh(h)
    for _ in range(100):
        expected = np.tanh(expected)
    np.testing.assert_allclose(h.array, expected, 1e-4, 1e-4)


def test_nan_stays():
    x, W, b, statistics = operands("pointwise")
    x[0, 0, 0, 0] = np.nan
    h = convolved(x, *parameters(W, b), "pointwise")
    y = F.relu6(F.fixed_batch_normalization(h, *statistics)).array
    assert np.isnan(y[0, :, 0, 0]).all() and np.isnan(y).sum() == y.shape[1]


def test_hooks_see_every_operation():
    x, W, b, statistics = operands("depthwise")
    parts = parameters(W, b)
    with renga.profiler() as profile:
        h = F.fixed_batch_normalization(convolved(x, *parts, "depthwise"), *statistics)
        F.relu6(h)
    calls = {row.name: row.calls for row in profile.rows()}
    names = ("convolution_2d", "fixed_batch_normalization", "clipped_relu")
    assert [calls[name] for name in names] == [1, 1, 1]


def test_what_has_a_graph_keeps_it():
    """The residual's gradient reaches it beside a normalization without a graph."""
    x, W, b, statistics = operands("pointwise")
    h = normalized(definition(x, W, b, "pointwise"), statistics)
    before = convolved(x, *parameters(W, b), "pointwise")
    n = F.fixed_batch_normalization(before, *statistics)
    with renga.force_backprop_mode():
        r = renga.Variable(np.zeros_like(n.array))
        n = F.fixed_batch_normalization(
            convolved(x, *(p.array for p in parameters(W, b)), "pointwise"), *statistics
        )
        y = F.relu(n + r * 1.0)
        F.sum(y).backward()
    np.testing.assert_array_equal(r.grad, h > 0)
    np.testing.assert_allclose(y.array, np.maximum(h, 0), 1e-4, 1e-4)


def assert_same(found, expected, rounding=1e-5):
    """That the bits are the same.

    Without AVX-512, oneDNN's products round a row by its place among those that are
    multiplied together: there the difference is rounding, relative to the largest.
    """
    if "avx512" in cpu():
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(
            found, expected, 0, rounding * np.abs(expected).max()
        )


# Convolutions in a row: channels, kernel, stride, pad, groups of each. Images take more
# than a core's own cache and are computed a few at a time.
ROWS = {
    "inverted residual": [(96, 1, 1, 0, 1), (96, 3, 1, 1, 96), (24, 1, 1, 0, 1)],
    "strided": [(72, 1, 1, 0, 1), (72, 5, 2, 2, 72), (40, 1, 1, 0, 1)],
    "odd channels": [(75, 1, 1, 0, 1), (75, 3, 1, 1, 75), (21, 1, 1, 0, 1)],
    "grouped": [(64, 3, 1, 1, 1), (64, 3, 1, 1, 32), (16, 1, 1, 0, 1)],
    "longer": [(64, 1, 1, 0, 1), (64, 3, 1, 1, 64), (48, 1, 1, 0, 1)] * 2,
}
rows = pytest.mark.parametrize("name", ROWS)


class Row:
    """The convolutions of a row, each normalized and bent."""

    def __init__(self, name, axes=2, extent=40, samples=7):
        rng = np.random.RandomState(0)
        channels = 24
        self.x = rng.normal(size=(samples, *(extent,) * axes, channels)).astype("f")
        self.x = np.moveaxis(self.x, -1, 1)
        self.steps = []
        for outputs, ksize, _, _, groups in ROWS[name]:
            shape = (outputs, channels // groups, *(ksize,) * axes)
            W = rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
            gamma, beta, mean = rng.normal(size=(3, outputs))
            statistics = gamma, beta, mean, rng.uniform(0.5, 2, outputs)
            (W,) = parameters(W.astype("f"))
            self.steps.append((W, [s.astype("f") for s in statistics]))
            channels = outputs
        self.options = [row[2:] for row in ROWS[name]]

    def convolve(self, h, i):
        stride, pad, groups = self.options[i]
        return F.convolution_nd(h, self.steps[i][0], None, stride, pad, groups=groups)

    def __call__(self, step=F.relu6):
        h = renga.as_variable(self.x) * 1.0
        for i, (_, statistics) in enumerate(self.steps):
            h = step(F.fixed_batch_normalization(self.convolve(h, i), *statistics))
        return h

    def definition(self, step=STEPS["relu6"][1]):
        """In float64, whose convolutions do not wait."""
        h = self.x.astype("d")
        for (W, statistics), (stride, pad, groups) in zip(self.steps, self.options):
            W = W.array.astype("d")
            h = F.convolution_nd(h, W, None, stride, pad, groups=groups).array
            statistics = [
                s.astype("d").reshape(-1, *(1,) * (h.ndim - 2)) for s in statistics
            ]
            gamma, beta, mean, var = statistics
            h = step((h - mean) / np.sqrt(var + EPS) * gamma + beta)
        return h


@rows
@pytest.mark.parametrize("step", ["relu6", "silu"])
def test_convolutions_of_some_images_after_others(name, step):
    function, expected = STEPS[step]
    row = Row(name)
    y = row(function).array
    np.testing.assert_allclose(y, row.definition(expected), 1e-4, 1e-4)
    with renga.function_hooks.TimerHook():
        assert_same(row(function).array, y)


@pytest.mark.parametrize("axes, extent", [(1, 2048), (3, 14)])
def test_images_of_other_axes_some_after_others(axes, extent):
    row = Row("inverted residual", axes, extent, samples=5)
    y = row().array
    np.testing.assert_allclose(y, row.definition(), 1e-4, 1e-4)
    with renga.function_hooks.TimerHook():
        assert_same(row().array, y)


@pytest.mark.parametrize("samples", [1, 2, 3, 8, 9])
def test_some_images_after_others_on_threads(samples):
    row = Row("inverted residual", samples=samples)
    ys = on_threads(lambda: row().array)
    np.testing.assert_allclose(ys[0], row.definition(), 1e-4, 1e-4)
    for y in ys[1:]:
        np.testing.assert_array_equal(y, ys[0])


def test_a_row_in_bfloat16():
    row = Row("inverted residual")
    with renga.using_config("dtype", renga.mixed_bfloat16):
        y = row().array
        with renga.function_hooks.TimerHook():
            assert_same(row().array, y, 2**-8)
    np.testing.assert_allclose(y.astype("d"), row.definition(), 0.1, 0.2)


def test_a_row_has_the_algorithms_of_all_images():
    row = Row("grouped")
    renga.kernels.forget()
    assert np.isfinite(row().array).all()
    of_groups = renga.kernels.choices()
    renga.kernels.forget()
    with renga.function_hooks.TimerHook():
        row()
    assert of_groups == renga.kernels.choices()
    assert all(", x (7, " in problem for problem in of_groups)


@pytest.mark.parametrize("read", [(), (0,), (1,), (2,), (0, 1)])
@pytest.mark.parametrize("written", [False, True])
def test_what_is_in_between_may_be_read_and_written(read, written):
    """A result is that of the arrays of its call, whatever is done to them later."""
    row = Row("inverted residual")
    expected = row.definition()
    h = renga.as_variable(row.x) * 1.0
    kept = []
    for i, (_, statistics) in enumerate(row.steps):
        before = row.convolve(h, i)
        h = F.relu6(F.fixed_batch_normalization(before, *statistics))
        kept += [before, h]
    for i in read:
        array = kept[2 * i].array
        assert np.isfinite(array).all()
        if written:
            array[...] = 0
            if i < 2:
                kept[2 * i + 1].array[...] = 0
    np.testing.assert_allclose(h.array, expected, 1e-4, 1e-4)


def test_two_convolutions_of_one_result_in_between():
    row = Row("inverted residual")
    expected = row.definition()
    h = renga.as_variable(row.x) * 1.0
    _, statistics = row.steps[0]
    h = F.relu6(F.fixed_batch_normalization(row.convolve(h, 0), *statistics))
    both = [row.convolve(h, 1), row.convolve(h, 1)]
    del h
    for y in both:
        for i in (1, 2):
            if i > 1:
                y = row.convolve(y, i)
            y = F.relu6(F.fixed_batch_normalization(y, *row.steps[i][1]))
        np.testing.assert_allclose(y.array, expected, 1e-4, 1e-4)


def test_the_precision_of_a_row_is_that_of_its_calls():
    row = Row("inverted residual")
    with renga.using_config("compute_precision", "medium"):
        y = row()
        expected = row().array
    np.testing.assert_array_equal(y.array, expected)


_SUM_WITH_ITSELF = """
import numpy as np
import renga
import renga.functions as F

ones, zeros = np.ones(40, "f"), np.zeros(40, "f")
with renga.no_backprop_mode(), renga.using_config("train", False):
    x = renga.as_variable(np.ones((3, 32, 32, 24), "f").transpose(0, 3, 1, 2)) * 1.0
    h = F.convolution_2d(x, renga.Parameter(np.full((40, 24, 1, 1), 0.5, "f")))
    h = F.fixed_batch_normalization(h, ones, zeros, zeros, ones)
    np.testing.assert_allclose((h + h).array, 24, 1e-4)
"""


def test_a_normalization_is_added_to_itself():
    """The sum reads one operand, which drops the computation that the other continues.

    The C library fills memory that is freed, so that nothing is read there unnoticed.
    """
    subprocess.run(
        [sys.executable, "-c", _SUM_WITH_ITSELF],
        env={**os.environ, "MALLOC_PERTURB_": "165"},
        check=True,
        timeout=60,
    )
