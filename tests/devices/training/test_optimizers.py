"""Hooks and optimizers whose factors are computed on the device, against the CPU."""

from __future__ import annotations

import ctypes
import pathlib
import sys

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core, optimizer_hooks, optimizers
from renga.backends import cuda
from tests.catalogue import OPTIMIZERS

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = "@cupy:0"
standin = None  # counts waits
if getattr(sys.modules.get("renga._cuda"), "__name__", "") == "renga._cuda_standin":
    library = pathlib.Path(_core.__file__).parent / "libcuda_standin.so"
    standin = ctypes.CDLL(str(library))
RANDOM = numpy.random.RandomState(0)
X = [RANDOM.standard_normal((3, 4)), RANDOM.standard_normal(5), numpy.zeros(2)]
GRADS = [[RANDOM.standard_normal(x.shape) for x in X] for _ in range(3)]
NORM = float(numpy.sqrt(sum((g**2).sum() for g in GRADS[0])))


def train(optimizer, hook, dtype, device, grads=GRADS, scale=None):
    """The parameters after updates by these gradients."""
    model = renga.ChainList()
    for x in X:
        link = renga.Link()
        with link.init_scope():
            link.x = renga.Parameter(x.astype(dtype))
        model.append(link)
    model.to_device(device)
    optimizer.setup(model)
    if hook is not None:
        optimizer.add_hook(hook)
    for step in grads:
        for link, g in zip(model, step):
            link.x.grad = link.device.send((g * (scale or 1)).astype(dtype))
            link.x.loss_scale = scale
        optimizer.update()
    return [cuda.to_cpu(link.x.array) for link in model]


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-6), ("float16", 4e-3)]
)
@pytest.mark.parametrize("scale", [None, 128.0])
@pytest.mark.parametrize(
    "hook",
    [
        optimizer_hooks.GradientClipping(0.5),
        optimizer_hooks.GradientClipping(NORM * 1.01),
        optimizer_hooks.GradientClipping(1e3),
        optimizer_hooks.GradientLARS(weight_decay=0.1),
        optimizer_hooks.GradientLARS(threshold=3.0),
    ],
    ids=lambda hook: hook.name,
)
def test_hooks(hook, scale, dtype, tolerance):
    expected, actual = (
        train(optimizers.SGD(0.1), hook, dtype, device, scale=scale)
        for device in ("@numpy", gpu)
    )
    for x, y in zip(expected, actual):
        assert y.dtype == dtype
        numpy.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scale", [None, 128.0])
def test_a_seed_gives_the_same_noise(kind, scale):
    expected, actual = [], []
    for device, results in (("@numpy", expected), (gpu, actual)):
        numpy.random.seed(0)
        hook = optimizer_hooks.GradientNoise(0.3)
        results += train(optimizers.SGD(0.1), hook, "float32", device, scale=scale)
    for x, y in zip(expected, actual):
        numpy.testing.assert_allclose(y, x, rtol=1e-6, atol=1e-6)
    noise = expected[2] / -0.1  # of three steps; the gradients are random, too
    assert abs(noise - sum(grads[2] for grads in GRADS)).min() > 1e-3


@pytest.mark.skipif(standin is None, reason="counts waits of the stand-in")
def test_the_host_waits_for_no_noise(kind):
    if kind == "CuPy":
        pytest.skip("arithmetic of the stand-in for CuPy waits")
    link = renga.Link()
    with link.init_scope():
        link.x = renga.Parameter(numpy.zeros((300, 300), "f"))
    link.to_device(gpu)
    optimizer = optimizers.SGD(0.1).setup(link)
    optimizer.add_hook(optimizer_hooks.GradientNoise(0.3))
    waits = []
    for _ in range(6):
        link.x.grad = link.device.xp.zeros((300, 300), "f")
        before = standin.cuda_standin_waits()
        optimizer.update()
        waits.append(standin.cuda_standin_waits() - before)
    assert waits[3:] == [0] * 3  # the first ones allocate pinned memory
    assert abs(cuda.to_cpu(link.x.array)).min() > 0


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)]
)
def test_lamb(dtype, tolerance):
    expected, actual = (
        train(optimizers.LAMB(0.01), None, dtype, device) for device in ("@numpy", gpu)
    )
    for x, y in zip(expected, actual):
        numpy.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
def test_clipping_of_gradients_that_are_not_finite(value):
    grads = [[g.copy() for g in GRADS[0]]]
    grads[0][1][2] = value
    hook = optimizer_hooks.GradientClipping(0.5)
    with numpy.errstate(invalid="ignore"):
        expected, actual = (
            train(optimizers.SGD(0.1), hook, "float32", device, grads)
            for device in ("@numpy", gpu)
        )
    for x, y in zip(expected, actual):
        numpy.testing.assert_allclose(y, x, rtol=1e-6)


def test_clipping_of_a_model_on_two_devices():
    if cuda.load_plugin().count() < 2:
        pytest.skip("one device")
    hook = optimizer_hooks.GradientClipping(0.5)
    expected = train(optimizers.SGD(0.1), hook, "float32", "@numpy", GRADS[:1])
    model = renga.ChainList(*(renga.Link() for _ in X))
    for i, (link, x, g) in enumerate(zip(model, X, GRADS[0])):
        with link.init_scope():
            link.x = renga.Parameter(x.astype("f"))
        link.to_device(f"@cupy:{i % 2}" if i < 2 else "@numpy")
        link.x.grad = link.device.send(g.astype("f"))
    optimizer = optimizers.SGD(0.1).setup(model)
    optimizer.add_hook(hook)
    optimizer.update()
    for x, link in zip(expected, model):
        numpy.testing.assert_allclose(cuda.to_cpu(link.x.array), x, rtol=1e-6)


class Weighted(renga.Link):
    def __init__(self, dtype):
        super().__init__()
        with self.init_scope():
            self.x = renga.Parameter(numpy.array([1.0, -2.0, 0.5], dtype))

    def forward(self, weights):
        return F.sum(self.x * weights * self.x)


def train_with_overflows(name, dtype, device, hook=None, read=()):
    """Updates whose gradients overflow once the loss scale is large."""
    model = Weighted(dtype).to_device(device)
    optimizer = OPTIMIZERS[name].make().setup(model)
    optimizer.use_fp32_update()
    if hook is not None:
        optimizer.add_hook(hook)
    optimizer.loss_scaling(interval=2)
    large = float(numpy.finfo(dtype).max) / 8
    scales, waits = [], []
    for i in range(16):
        # The loss of a step is large at some steps, whose gradients overflow then.
        size = large if i in (7, 8, 12) else 1.0
        weights = (numpy.array([0.3, -0.1, 0.2]) * size).astype(dtype)
        before = 0 if standin is None else standin.cuda_standin_waits()
        optimizer.update(model, model.device.send(weights))
        waits.append(0 if standin is None else standin.cuda_standin_waits() - before)
        if i in read:
            scales.append((optimizer.loss_scale, optimizer.is_safe_to_update()))
    x = cuda.to_cpu(model.x.array)
    t = optimizer.t
    return x, scales, optimizer.loss_scale, t, model.x.update_rule.t, waits


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 2e-3)])
@pytest.mark.parametrize("read", [(), (3, 7, 9), range(16)], ids=len)
def test_dynamic_loss_scaling(name, dtype, tolerance, read):
    with numpy.errstate(all="ignore"):
        expected, actual = (
            train_with_overflows(name, dtype, device, read=read)
            for device in ("@numpy", gpu)
        )
    assert numpy.isfinite(expected[0]).all()
    assert expected[4] < expected[3] == 16  # some updates changed nothing
    numpy.testing.assert_allclose(actual[0], expected[0], rtol=tolerance, atol=1e-8)
    assert actual[1] == [(pytest.approx(s), safe) for s, safe in expected[1]]
    assert actual[2] == pytest.approx(expected[2])
    assert actual[3:5] == expected[3:5]
    if not OPTIMIZERS[name].waits and standin is not None and not read:
        assert actual[5][3:] == [0] * 13  # the host never waits


@pytest.mark.parametrize(
    "hook",
    [
        optimizer_hooks.WeightDecay(0.1),
        optimizer_hooks.GradientClipping(0.2),
        optimizer_hooks.GradientLARS(),
        optimizer_hooks.Lasso(0.1),
    ],
    ids=lambda hook: hook.name,
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_hooks_see_gradients_without_the_scale(hook, dtype):
    with numpy.errstate(all="ignore"):
        expected, actual = (
            train_with_overflows("Adam", dtype, device, hook)
            for device in ("@numpy", gpu)
        )
    tolerance = 1e-5 if dtype == "float32" else 4e-3
    numpy.testing.assert_allclose(actual[0], expected[0], rtol=tolerance)
    assert actual[2:5] == (pytest.approx(expected[2]), *expected[3:5])


def test_a_snapshot_holds_the_updates_that_changed_something(tmp_path):
    def train(device):
        model = Weighted("float32").to_device(device)
        optimizer = optimizers.Adam().setup(model)
        optimizer.loss_scaling(interval=1)
        sizes = [1.0, 1e38, 1e38, 1.0]
        for size in sizes:
            weights = numpy.full(3, size, "f")
            optimizer.update(model, model.device.send(weights))
        path = tmp_path / device.strip("@:0")
        renga.serializers.save_npz(path, optimizer)
        return dict(numpy.load(path))

    with numpy.errstate(all="ignore"):
        expected, actual = train("@numpy"), train(gpu)
    assert expected.keys() == actual.keys()
    assert actual["x/t"] == expected["x/t"] < actual["t"] == 4
    for key, value in expected.items():
        numpy.testing.assert_allclose(actual[key], value, rtol=1e-5, err_msg=key)
