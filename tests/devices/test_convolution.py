"""Convolutions on CUDA devices: layouts, dtypes, and what cuDNN's engines may do."""

from __future__ import annotations

import contextlib
import threading

import numpy
import pytest

import renga
from renga import _core
from renga.backends import cuda

try:
    _cuda, reason = cuda.load_plugin(), ""
except RuntimeError as error:
    _cuda, reason = None, str(error)
pytestmark = pytest.mark.skipif(_cuda is None, reason=reason)

# stride, pad, dilate, groups; image; kernel; whether the last window may cover the end
CASES = [
    (((1, 1), (1, 1), (1, 1), 1), (2, 4, 6, 7), (3, 3), False),
    (((2, 3), (0, 1), (1, 1), 2), (2, 4, 8, 7), (3, 2), True),
    (((2, 2), (1, 0), (2, 1), 4), (3, 4, 7, 5), (2, 3), True),
    (((2,), (1,), (1,), 1), (2, 3, 9), (3,), True),
    (((1, 2, 1), (1, 0, 1), (1, 1, 2), 1), (2, 3, 4, 5, 6), (2, 2, 2), False),
    (
        ((1, 2, 1, 1), (0, 1, 0, 0), (1, 1, 1, 1), 1),
        (2, 2, 3, 4, 2, 3),
        (2, 2, 1, 2),
        False,
    ),
]
TOLERANCES = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 2e-6, "float64": 1e-13}


def random(*shape, seed=0):
    return numpy.random.RandomState(seed).uniform(-1, 1, shape)


def results(case, dtype, device, channels_last=False):
    """y and the gradients with respect to x, W and b, in float64."""
    window, shape, kernel, cover_all = case
    x, W = random(*shape), random(8, shape[1] // window[3], *kernel, seed=1)
    b = random(8, seed=2)
    if channels_last:
        x = numpy.moveaxis(numpy.moveaxis(x, 1, -1).copy(), -1, 1)
    leaves = [_core.Variable(a.astype(dtype), requires_grad=True) for a in (x, W, b)]
    for leaf in leaves:
        leaf.move_to(device)
    y = _core.ops.convolution_nd(*leaves, window, cover_all)
    gy = _core.Variable(random(*y.shape, seed=3).astype(dtype), requires_grad=False)
    gy.move_to(device)
    total = _core.ops.sum(_core.ops.multiply(y, gy))
    gs = _core.grad([total], leaves, [], [])
    assert [g.device_name.split(":")[0] for g in gs] == [device.split(":")[0]] * 3
    return [cuda.to_cpu(v.array).astype("d") for v in (y, *gs)]


def assert_near(got, expected, tolerance):
    for a, b in zip(got, expected):
        assert a.shape == b.shape
        numpy.testing.assert_allclose(a, b, 0, tolerance * max(1, abs(b).max()))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case, dtype, channels_last):
    expected = results(case, "float64", "cpu")
    got = results(case, dtype, "cuda:0", channels_last)
    assert_near(got, expected, TOLERANCES[dtype] * (4 if dtype == "float16" else 1))


@pytest.mark.parametrize("case", CASES[:5])
def test_bfloat16_images_have_float32_weights(case):
    expected = results(case, "float64", "cpu")
    with renga.using_config("dtype", renga.mixed_bfloat16):
        got = results(case, "float32", "cuda:0")
    assert_near(got, expected, TOLERANCES["bfloat16"])


def test_float32_may_be_rounded_in_medium_precision_only():
    expected = results(CASES[0], "float64", "cpu")
    errors = {}
    for precision in ("highest", "high", "medium"):
        with renga.using_config("compute_precision", precision):
            y = results(CASES[0], "float32", "cuda:0")[0]
        errors[precision] = abs(y - expected[0]).max()
    assert errors["highest"] < 2e-6
    assert errors["high"] < 2e-6
    # That of the engine: cuDNN's heuristics may well prefer one that does not round.
    assert errors["medium"] < 5e-2
    if _cuda.__name__.endswith("standin"):  # whose engine rounds
        assert errors["medium"] > 1e-5


def test_engines_that_sum_in_any_order_can_be_excluded():
    expected = results(CASES[1], "float64", "cpu")
    before = cuda.get_max_workspace_size()
    for deterministic, workspace in ((True, 1 << 30), (False, 1 << 10), (True, 0)):
        cuda.set_max_workspace_size(workspace)
        try:
            with renga.using_config("cudnn_deterministic", deterministic):
                got = results(CASES[1], "float32", "cuda:0")
        finally:
            cuda.set_max_workspace_size(before)
        assert_near(got, expected, TOLERANCES["float32"])


def test_a_plan_is_made_once_for_a_problem():
    before = _cuda.convolution_plans()
    results(CASES[4], "float32", "cuda:0")
    made = _cuda.convolution_plans() - before
    results(CASES[4], "float32", "cuda:0", channels_last=True)
    assert _cuda.convolution_plans() - before == made <= 3


def test_a_recorded_graph_keeps_its_plans():
    """A full table of plans is emptied, as here by images of ever new widths."""
    if not _cuda.__name__.endswith("standin"):
        pytest.skip("cuDNN takes a minute for so many plans")

    class Net(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.conv = renga.links.Convolution2D(3, 4, 3)

        forward = renga.static_graph(lambda self, x: self.conv(x))

    net, x = Net().to_device("@cupy:0"), cuda.to_gpu(random(2, 3, 7, 7).astype("f"))
    for _ in range(4):
        y = net(renga.Variable(x))
    row = _core.Variable(numpy.ones((1, 1, 1, 1100), "f"), requires_grad=False)
    W = _core.Variable(numpy.ones((1, 1, 1, 1), "f"), requires_grad=False)
    row.move_to("cuda:0")
    W.move_to("cuda:0")
    window, before = ((1, 1), (0, 0), (1, 1), 1), _cuda.convolution_plans()
    for width in range(1, 1100):
        _core.ops.convolution_nd(row[..., :width], W, None, window)
    assert _cuda.convolution_plans() < before + 1099  # it was emptied
    z = net(renga.Variable(x))
    numpy.testing.assert_array_equal(cuda.to_cpu(y.array), cuda.to_cpu(z.array))


def used(settings):
    """How many plans a convolution of its own shape makes under these settings."""
    used.problems += 1
    x = numpy.ones((2, 3, 4 + used.problems, 5), "f")
    W = numpy.ones((4, 3, 2, 2), "f")
    before = _cuda.convolution_plans()
    with contextlib.ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(renga.using_config(name, value))
        y = renga.functions.convolution_2d(*map(cuda.to_gpu, (x, W)))
    numpy.testing.assert_array_equal(y.array.get(), 12)
    return _cuda.convolution_plans() - before


used.problems = 0


def test_settings_choose_the_engines():
    assert used({}) == 1
    assert used({"use_cudnn": "never"}) == 0
    assert used({"use_cudnn": "always", "autotune": True}) == 1
    assert used({"cudnn_deterministic": True}) == 1
    renga.global_config.use_cudnn = "never"
    try:
        assert used({}) == 0
        assert used({"use_cudnn": "auto"}) == 1
        assert not cuda.should_use_cudnn(">=auto")
    finally:
        renga.global_config.use_cudnn = "auto"
    assert used({}) == 1
    assert cuda.should_use_cudnn(">=auto")
    assert not cuda.should_use_cudnn("==always")
    assert cuda.should_use_cudnn_tensor_core("float16")
    assert not cuda.should_use_cudnn_tensor_core("float32")
    before = cuda.get_max_workspace_size()
    cuda.set_max_workspace_size(0)
    try:
        assert used({}) == 1
    finally:
        cuda.set_max_workspace_size(before)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_images_that_start_anywhere(dtype):
    """A part of a batch does not start where cuDNN's kernels want it to."""
    x, W = random(3, 3, 5, 3).astype(dtype), random(3, 3, 3, 3, seed=1).astype(dtype)

    def run(device):
        leaves = [_core.Variable(a, requires_grad=True) for a in (x, W)]
        for leaf in leaves:
            leaf.move_to(device)
        window = ((1, 1), (1, 1), (1, 1), 1)
        y = _core.ops.convolution_nd(*leaves, None, window)
        y = _core.ops.convolution_nd(y[1:], leaves[1], None, window)
        gs = _core.grad([_core.ops.sum(y[1:] * y[1:])], leaves, [], [])
        return [cuda.to_cpu(v.array).astype("d") for v in (y, *gs)]

    assert_near(run("cuda:0"), run("cpu"), 2 * TOLERANCES[dtype])


def test_threads_have_plans_of_their_own():
    x, W = random(2, 3, 6, 6).astype("f"), random(4, 3, 3, 3, seed=1).astype("f")
    window = ((1, 1), (1, 1), (1, 1), 1)
    expected = _core.ops.convolution_nd(x, W, None, window).array
    found = []

    def run():
        leaves = [_core.Variable(a, requires_grad=False) for a in (x, W)]
        for leaf in leaves:
            leaf.move_to("cuda:0")
        for _ in range(20):
            y = _core.ops.convolution_nd(*leaves, None, window)
        found.append(cuda.to_cpu(y.array))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for y in found:
        numpy.testing.assert_allclose(y, expected, rtol=0, atol=1e-5)
