"""Hooks and optimizers whose factors are computed on the device, against the CPU."""

from __future__ import annotations

import numpy
import pytest

import renga
from renga import optimizer_hooks, optimizers
from renga.backends import cuda

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = "@cupy:0"
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
            link.x._loss_scale = scale
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
