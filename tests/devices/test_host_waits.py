"""What waits for a CUDA device: reading a result, and nothing else in a step."""

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
from renga.communicators import local
from renga.communicators.nccl.nccl_communicator import NcclCollectives
from renga.distributed import create_multi_node_optimizer
from renga.utils.type_check import IndexOutOfRange

# Importing the stand-in would register its devices in the core, for all tests.
if getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin":
    pytest.skip(
        "needs the environment variable RENGA_CUDA_STANDIN", allow_module_level=True
    )
pytestmark = pytest.mark.usefixtures("without_garbage")  # waits are counted
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
gpu = "@cupy:0"


class Network(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(7, 4)
            self.lstm = L.LSTM(4, 4)
            self.conv = L.Convolution2D(4, 3, 1)
            self.bn = L.BatchNormalization(3)
            self.fc = L.Linear(3, 5)

    def forward(self, x):
        self.lstm.reset_state()
        for _ in range(2):
            h = self.lstm(self.embed(x))
        h = F.relu(self.bn(self.conv(h[:, :, None, None])))
        return self.fc(F.dropout(F.max_pooling_2d(h, 1)))


hooks = renga.optimizer_hooks


@pytest.mark.parametrize(
    ("optimizer", "hook"),
    [
        ("SGD", hooks.WeightDecay(1e-4)),
        ("Adam", hooks.GradientClipping(0.1)),
        ("MomentumSGD", hooks.GradientClipping(1e3)),
        ("MomentumSGD", hooks.GradientLARS(weight_decay=1e-4)),
        ("LAMB", hooks.GradientHardClipping(-0.01, 0.01)),
        ("AdamW", hooks.GradientNoise(0.1)),
        ("RMSprop", hooks.Lasso(1e-4)),
    ],
)
def test_a_step_waits_for_nothing(optimizer, hook):
    x = (numpy.arange(16) % 7).astype("i")
    t = (numpy.arange(16) % 5).astype("i")
    model = L.Classifier(Network()).to_device(gpu)
    opt = getattr(renga.optimizers, optimizer)().setup(model)
    opt.add_hook(hook)
    iterator = renga.iterators.SerialIterator(list(zip(x, t)), 8)
    updater = training.StandardUpdater(iterator, opt, device=gpu)
    reporter = renga.Reporter()
    reporter.add_observer("main", model)
    summary = renga.reporter.DictSummary()
    waits = []
    with reporter:
        for _ in range(4):
            before = standin.cuda_standin_waits()
            updater.update()
            summary.add(reporter.observation)
            waits.append(standin.cuda_standin_waits() - before)
    # The first step allocates, and checks that gradients were cleared.
    assert waits[1:] == [0, 0, 0]
    before = standin.cuda_standin_waits()
    assert 0 < summary.compute_mean()["main/loss"] < 5
    assert standin.cuda_standin_waits() > before


@pytest.mark.parametrize("ignored", [0, 3, 8])
def test_ignored_labels_are_counted_on_the_device(ignored):
    x = numpy.random.RandomState(0).standard_normal((8, 5)).astype("f")
    t = (numpy.arange(8) % 5).astype("i")
    t[:ignored] = -1
    expected = F.softmax_cross_entropy(x, t)
    device = renga.get_device(gpu)
    before = standin.cuda_standin_waits()
    loss = F.softmax_cross_entropy(device.send(x), device.send(t))
    assert standin.cuda_standin_waits() == before
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert F.accuracy(device.send(x), device.send(t), -1).item() == pytest.approx(
        F.accuracy(x, t, -1).item(), rel=1e-6
    )


def test_labels_out_of_range_are_an_error_at_the_next_wait():
    device = renga.get_device(gpu)
    x = device.send(numpy.zeros((4, 3), "f"))
    t = device.send(numpy.array([0, 1, 3, 2], "i"))
    loss = F.softmax_cross_entropy(x, t)
    with pytest.raises(IndexOutOfRange, match="expected t from 0 to 2, got 3"):
        _core.synchronize("cuda:0")
    _core.synchronize("cuda:0")  # once
    assert loss.shape == ()
    W = device.send(numpy.ones((3, 2), "f"))
    F.embed_id(device.send(numpy.array([-1, 2], "i")), W)
    standin.cudaDeviceSynchronize()
    with pytest.raises(IndexOutOfRange, match="expected x from 0 to 2, got -1"):
        F.embed_id(device.send(numpy.array([1], "i")), W)
    F.embed_id(device.send(numpy.full(300, 7, "i")), W)  # one of them is named
    with pytest.raises(IndexOutOfRange, match="expected x from 0 to 2, got 7"):
        _core.synchronize("cuda:0")
    y = F.embed_id(device.send(numpy.array([-1, 2], "i")), W, ignore_label=-1)
    numpy.testing.assert_array_equal(y.array.get(), [[0, 0], [1, 1]])
    _core.synchronize("cuda:0")


@pytest.mark.parametrize("double_buffering", [False, True])
def test_a_step_of_two_ranks_over_nccl_waits_for_nothing(monkeypatch, double_buffering):
    native = pytest.importorskip("renga._nccl_standin")
    monkeypatch.setitem(sys.modules, "renga._communicators_nccl", native)
    renga.backends.cuda.load_plugin()
    x = (numpy.arange(16) % 7).astype("i")
    t = (numpy.arange(16) % 5).astype("i")

    def train(comm):
        comm = NcclCollectives(comm.native)
        device = renga.get_device(f"@cupy:{comm.rank}")
        device.use()
        model = L.Classifier(Network()).to_device(device)
        opt = create_multi_node_optimizer(
            renga.optimizers.MomentumSGD(), comm, double_buffering=double_buffering
        ).setup(model)
        opt.add_hook(hooks.GradientClipping(0.1))
        waits = []
        for _ in range(5):
            opt.update(model, device.send(x), device.send(t))
            comm.barrier()
            waits.append(standin.cuda_standin_waits())
            comm.barrier()
        return waits, model.predictor.fc.W.array.get()

    (waits, W), (_, other) = local.run(train, ranks=2)
    assert waits[2:] == waits[2:3] * 3
    numpy.testing.assert_array_equal(W, other)
