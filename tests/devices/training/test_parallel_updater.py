"""ParallelUpdater on two devices, against one with the whole batch."""

from __future__ import annotations

import ctypes
import pathlib
import sys

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core, training
from renga.backends import cuda

if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
ParallelUpdater = training.updaters.ParallelUpdater
X = numpy.random.RandomState(0).standard_normal((26, 6)).astype("f")
T = (numpy.arange(26) % 4).astype("i")


class Model(renga.Chain):
    """Its loss is a sum over examples, so that the parts' losses add up to it."""

    def __init__(self, size=6):
        super().__init__()
        with self.init_scope():
            self.hidden = L.Linear(size, 5)
            self.out = L.Linear(5, 4)

    def forward(self, x, t):
        assert int(cuda.get_device_from_array(x)) in (-1, cuda.loaded().Device().id)
        h = F.tanh(self.hidden(x))
        return F.sum(F.softmax_cross_entropy(self.out(h), t, reduce="no")) / 8


def make(optimizer, updater, size=6, **kwargs):
    numpy.random.seed(0)
    model = Model(size)
    optimizer = optimizer().setup(model)
    iterator = renga.iterators.SerialIterator(list(zip(X, T)), 7, shuffle=False)
    return model, updater(iterator, optimizer, **kwargs)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("optimizer", ["MomentumSGD", "Adam"])
def test_two_devices_are_one_with_the_whole_batch(optimizer, number):
    standin.cuda_standin_seed(ctypes.c_uint64(number))
    optimizer = getattr(renga.optimizers, optimizer)
    expected, serial = make(optimizer, training.StandardUpdater)
    devices = {"main": "@cupy:0", "second": "@cupy:1"}
    model, parallel = make(
        optimizer, training.updaters.ParallelUpdater, devices=devices
    )
    waits = []
    for _ in range(8):
        serial.update()
        before = standin.cuda_standin_waits()
        parallel.update()
        waits.append(standin.cuda_standin_waits() - before)
    assert parallel.epoch == serial.epoch == 2
    assert waits[3:] == [0] * 5
    assert model.device == renga.get_device("@cupy:0")
    for name, copy in parallel._models.items():
        assert copy.device == renga.get_device(devices[name])
        assert_same(expected, copy)


def test_one_copy_stays_on_the_cpu_and_parameters_wait_for_data():
    expected, serial = make(renga.optimizers.SGD, training.StandardUpdater, None)
    devices = {"main": "@numpy", "gpu": "@cupy:1"}
    model, parallel = make(renga.optimizers.SGD, ParallelUpdater, None, devices=devices)
    # Each copy draws the values of its own lazy parameters; the main one's win.
    serial.update()
    parallel.update()
    for copy in parallel._models.values():
        assert_same(model, copy)
    expected.copyparams(model)
    for _ in range(3):
        serial.update()
        parallel.update()
    assert_same(expected, model)


def test_gradients_and_parameters_cross_devices():
    a, b = (Model().to_device(f"@cupy:{i}") for i in range(2))
    b.copyparams(a)
    assert_same(a, b)
    for model in (a, b):
        x, t = (model.device.send(v) for v in (X, T))
        model.cleargrads()
        with renga.using_device(model.device):
            model(x, t).backward()
    once = cuda.to_cpu(a.out.W.grad)
    a.addgrads(b)
    assert a.out.W.grad.device.id == 0
    numpy.testing.assert_allclose(cuda.to_cpu(a.out.W.grad), 2 * once, rtol=1e-6)
    a.hidden.W.cleargrad()
    a.hidden.W.addgrad(b.hidden.W)
    assert a.hidden.W.grad.device.id == 0


def assert_same(model, other):
    for (name, x), y in zip(sorted(model.namedparams()), params_of(other)):
        numpy.testing.assert_allclose(
            cuda.to_cpu(y), cuda.to_cpu(x.array), rtol=0, atol=1e-5, err_msg=name
        )


def params_of(model):
    return [p.array for _, p in sorted(model.namedparams())]
