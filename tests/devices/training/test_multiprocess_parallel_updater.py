"""MultiprocessParallelUpdater over NCCL, its processes being threads of this one."""

from __future__ import annotations

import multiprocessing.dummy
import pickle
import sys
import threading
import types

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.backends import cuda
from renga.training.updaters import (
    MultiprocessParallelUpdater,
    multiprocess_parallel_updater as functions,
)

native = pytest.importorskip("renga._nccl_standin", reason="RENGA_CUDA_STANDIN is off")
if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
X = numpy.random.RandomState(0).standard_normal((16, 6)).astype("f")
T = (numpy.arange(16) % 4).astype("i")


class Model(renga.Chain):
    """The last layer's gradient is None where ``partial`` says so."""

    def __init__(self, dtype="f"):
        super().__init__()
        with self.init_scope():
            with renga.using_config("dtype", numpy.dtype(dtype)):
                self.hidden = L.Linear(6, 5)
            self.out = L.Linear(5, 4)
            self.unused = L.Bias(shape=(3,))

    def forward(self, x, t):
        assert int(cuda.get_device_from_array(x)) in (-1, cuda.loaded().Device().id)
        h = F.tanh(self.hidden(F.cast(x, self.hidden.W.dtype)))
        return F.softmax_cross_entropy(self.out(F.cast(h, "f")), t)


class Process(threading.Thread):
    """A thread that gets what a spawned process would get."""

    def __init__(self, target, args):
        pipe, worker = args
        worker = pickle.loads(pickle.dumps(worker))
        super().__init__(target=target, args=(pipe, worker))


@pytest.fixture
def processes(kind, monkeypatch):
    cuda.load_plugin()
    threads = types.SimpleNamespace(Process=Process, Pipe=multiprocessing.dummy.Pipe)
    monkeypatch.setattr(functions, "_processes", threads)
    monkeypatch.setitem(sys.modules, "renga._communicators_nccl", native)


def iterators(n):
    examples = list(zip(X, T))
    return [
        renga.iterators.SerialIterator(examples[i::n], 8 // n, shuffle=False)
        for i in range(n)
    ]


def train(dtype, devices, optimizer):
    numpy.random.seed(0)
    model = Model(dtype).to_device(devices[-1])
    optimizer.setup(model)
    with pytest.warns(UserWarning, match="optimizer.lr"):
        updater = MultiprocessParallelUpdater(
            iterators(len(devices)), optimizer, devices=devices
        )
    for _ in range(5):
        updater.update()
    updater.finalize()
    return model, updater


@pytest.mark.parametrize(("dtype", "atol"), [("f", 1e-6), ("e", 2e-3)])
def test_two_devices_are_one_with_the_whole_batch(processes, dtype, atol):
    expected, _ = train(dtype, ["@numpy"], renga.optimizers.MomentumSGD(0.1))
    devices = ["@cupy:0", "@cupy:1"]
    optimizer = renga.optimizers.MomentumSGD(0.1)
    assert MultiprocessParallelUpdater.available()
    model, updater = train(dtype, devices, optimizer)
    assert updater.epoch == 2 and optimizer.lr == 0.05
    assert model.device == renga.get_device("@cupy:0")
    params = dict(expected.namedparams())
    for name, param in model.namedparams():
        assert param.dtype == params[name].dtype
        numpy.testing.assert_allclose(
            cuda.to_cpu(param.array),
            params[name].array,
            rtol=0,
            atol=atol,
            err_msg=name,
        )


def test_gathered_arrays(processes):
    model = Model("e").to_device("@cupy:1")
    model.cleargrads()
    gathered = functions.gather_params(model)
    assert gathered.dtype == numpy.float32
    params = [param for _, param in sorted(model.namedparams())]
    whole = numpy.concatenate([cuda.to_cpu(p.array).ravel() for p in params])
    numpy.testing.assert_array_equal(cuda.to_cpu(gathered), whole)
    assert functions.size_num_grads(model) == (whole.size, 5)
    assert not cuda.to_cpu(functions.gather_grads(model)).any()
    functions.scatter_grads(model, gathered)
    for param in params:
        assert param.grad.dtype == param.dtype and param.grad.device.id == 1
        numpy.testing.assert_array_equal(
            cuda.to_cpu(param.grad), cuda.to_cpu(param.array)
        )


def test_without_nccl_there_is_one_clear_error(monkeypatch):
    cuda.load_plugin()
    monkeypatch.setitem(sys.modules, "renga._communicators_nccl", None)
    optimizer = renga.optimizers.SGD().setup(Model())
    text = "expected NCCL for .*, got none: renga was built without RENGA_NCCL"
    assert not MultiprocessParallelUpdater.available()
    with pytest.raises(RuntimeError, match=text):
        MultiprocessParallelUpdater(iterators(2), optimizer, devices=[0, 1])
    with pytest.raises(ValueError, match="expected different GPUs, or CPUs"):
        MultiprocessParallelUpdater(iterators(2), optimizer, devices=[0, 0])
