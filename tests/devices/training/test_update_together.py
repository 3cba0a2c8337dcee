"""Updates of all parameters by one launch, against the CPU."""

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
from renga.optimizer import FusedRule
from tests.catalogue import OPTIMIZERS

if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
standin.cuda_standin_launches.restype = ctypes.c_int64
gpu = "@cupy:0"
RANDOM = numpy.random.RandomState(0)
SHAPES = [(3, 4), (1,), (40, 70), (5,), (2, 3, 3, 3), (0, 2)]
RULES = {
    name: row.kind
    for name, row in OPTIMIZERS.items()
    if isinstance(row.make().create_update_rule(), FusedRule)
}


def make(shapes, dtype="float32"):
    model = renga.ChainList()
    for i, shape in enumerate(shapes):
        link = renga.Link()
        with link.init_scope():
            x = numpy.random.RandomState(i).standard_normal(shape)
            link.x = renga.Parameter(x.astype(dtype))
        model.append(link)
    return model


def train(model, device, optimizer, hook=None, steps=3):
    """The parameters after some updates, and the kernels of the last one."""
    model.to_device(device)
    optimizer.setup(model)
    if hook is not None:
        optimizer.add_hook(hook)
    random = numpy.random.RandomState(0)
    launches = 0
    for _ in range(steps):
        for param in model.params():
            g = random.standard_normal(param.shape).astype(param.dtype)
            param.grad = param.device.send(g)
        before = standin.cuda_standin_launches()
        optimizer.update()
        launches = standin.cuda_standin_launches() - before
    return [cuda.to_cpu(param.array) for param in model.params()], launches


def assert_close(expected, actual, tolerance=1e-6):
    for x, y in zip(expected, actual):
        numpy.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("decay", [None, 0.1])
@pytest.mark.parametrize("name", RULES)
def test_every_rule(name, decay):
    hook = decay and optimizer_hooks.WeightDecay(decay)
    expected, _ = train(make(SHAPES), "@numpy", RULES[name](), hook)
    actual, launches = train(make(SHAPES), gpu, RULES[name](), hook)
    assert launches == 1
    assert_close(expected, actual, 3e-6)


@pytest.mark.parametrize("number", range(3))
def test_more_parameters_than_a_launch_can_have(number):
    standin.cuda_standin_seed(ctypes.c_uint64(number))
    shapes = [(i % 7, 3) for i in range(100)]
    expected, _ = train(make(shapes), "@numpy", optimizers.Adam())
    actual, launches = train(make(shapes), gpu, optimizers.Adam())
    assert 2 <= launches <= 5
    assert_close(expected, actual)


def test_dtypes_and_orders_of_memory():
    def model():
        made = make([(3, 4), (2, 5)])
        for dtype in ("float16", "float64"):
            made.append(make([(4, 2)], dtype)[0])
        return made

    expected, _ = train(model(), "@numpy", optimizers.MomentumSGD(0.1))
    moved = model().to_device(gpu)
    param = moved[0].x
    rows = renga.Variable(cuda.to_gpu(cuda.to_cpu(param.array).T.copy()))
    param.array = F.transpose(rows).array
    assert param.array.strides == (4, 12)
    actual, launches = train(moved, gpu, optimizers.MomentumSGD(0.1))
    assert launches == 4
    assert_close(expected, actual, 1e-3)
    assert_close(expected[3:], actual[3:], 1e-14)


def test_a_parameter_that_is_updated_twice():
    results = []
    for device in ("@numpy", gpu):
        model = make(SHAPES[:2])
        model.append(model[0])
        results.append(train(model, device, optimizers.MomentumSGD(0.1))[0])
    assert_close(*results)


def test_two_parameters_with_one_array():
    """The second update comes after the first: by a launch of its own."""
    results = []
    for device in ("@numpy", gpu):
        model = make([(3, 4)] * 2).to_device(device)
        model[1].x.array = model[0].x.array
        results.append(train(model, device, optimizers.SGD(0.1)))
    (expected, _), (actual, launches) = results
    assert_close(expected, actual)
    assert launches == 2


def test_a_hook_of_a_rule_sees_the_update():
    seen = []

    def hook(rule, param):
        seen.append(cuda.to_cpu(param.array).copy())

    hook.call_for_each_param = True
    hook.timing = "post"
    model = make(SHAPES[:2]).to_device(gpu)
    optimizer = optimizers.SGD(0.5).setup(model)
    for param in model.params():
        param.update_rule.add_hook(hook, "seen", timing="post")
    before = [cuda.to_cpu(param.array) for param in model.params()]
    for param in model.params():
        param.grad = cuda.to_gpu(numpy.ones(param.shape, "f"))
    optimizer.update()
    assert_close([x - 0.5 for x in before], seen)


def test_an_error_leaves_what_was_updated_before():
    model = make([(3,), (4,)]).to_device(gpu)
    optimizer = optimizers.SGD(1).setup(model)
    first, second = model.params()
    before = cuda.to_cpu(first.array)
    first.grad = cuda.to_gpu(numpy.ones(3, "f"))
    second.grad = cuda.to_gpu(numpy.ones(4, "f"))

    def update():
        first.update()
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        _core.optimizers.update_together(update)
    numpy.testing.assert_allclose(cuda.to_cpu(first.array), before - 1)
    assert optimizer.t == 0
