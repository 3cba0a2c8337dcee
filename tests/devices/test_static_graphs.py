"""Calls of static chains as graphs of CUDA compute what ordinary calls compute."""

from __future__ import annotations

import copy
import ctypes
import gc
import logging
import pathlib
import pickle
import re
import sys
import threading

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core, static_graph
from renga.backends import cuda
from renga.graph_optimizations import recorded_calls

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = "@cupy:0"
X = numpy.random.RandomState(0).standard_normal((8, 2, 6, 6)).astype("f")
standin = None
if getattr(sys.modules.get("renga._cuda"), "__name__", "") == "renga._cuda_standin":
    path = pathlib.Path(_core.__file__).parent / "libcuda_standin.so"
    standin = ctypes.CDLL(str(path))
    standin.cuda_standin_launches.restype = ctypes.c_int64


class Net(renga.Chain):
    """Convolution, batch normalization, dropout and pooling."""

    def __init__(self):
        super().__init__()
        W = renga.initializers.HeNormal(rng=numpy.random.RandomState(1))
        with self.init_scope():
            self.conv = L.Convolution2D(2, 4, 3, pad=1, initialW=W)
            self.bn = L.BatchNormalization(4)
            self.fc = L.Linear(4 * 9, 3, initialW=W)

    def forward(self, x):
        h = F.dropout(F.relu(self.bn(self.conv(x))), 0.3)
        return F.dropout(self.fc(F.max_pooling_2d(h, 2)), 0.2)


class StaticNet(Net):
    forward = static_graph(Net.forward)


def plain(function):
    return function


def make(forward, decorate=static_graph, **links):
    """A chain on the device with a decorated method."""
    cls = type("Static", (renga.Chain,), {"forward": decorate(forward)})
    chain = cls(**links)
    chain.to_device(gpu)
    return chain


def on_device(x):
    return renga.Variable(cuda.to_gpu(x))


def launches():
    return 0 if standin is None else standin.cuda_standin_launches()


def train(net, steps, optimizer=None, batch=None):
    """What a few steps of training give: the losses, and launches of each step."""
    numpy.random.seed(0)
    net.to_device(gpu)
    optimizer = (optimizer or renga.optimizers.Adam(0.01)).setup(net)
    losses, counts = [], []
    for i in range(steps):
        before = launches()
        x = on_device(X + numpy.float32(i) / 8)
        loss = F.mean(net(x) ** 2)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append((loss.array, x.grad))
        counts.append(launches() - before)
    found = [cuda.to_cpu(array) for pair in losses for array in pair]
    found += [cuda.to_cpu(p.array) for p in net.params()]
    return found + [cuda.to_cpu(net.bn.avg_mean), cuda.to_cpu(net.bn.avg_var)], counts


def assert_same(found, expected):
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        numpy.testing.assert_array_equal(x, y)


def test_training(kind):
    """Bit for bit: random numbers and running statistics included."""
    expected, ordinary = train(Net(), 6)
    found, recorded = train(StaticNet(), 6)
    assert_same(found, expected)
    if standin is not None:
        # The network is two launches beside copies of what goes in and out.
        assert recorded[1] == ordinary[1]
        assert recorded[-1] < ordinary[-1]


def test_the_precision_of_the_call_counts():
    net, x = StaticNet().to_device(gpu), on_device(X)
    for precision in ("highest", "medium") * 4:
        with renga.using_config("compute_precision", precision):
            numpy.random.seed(0)
            y = net(x)
            numpy.random.seed(0)
            expected = Net.forward(net, x)
            assert_same([cuda.to_cpu(y.array)], [cuda.to_cpu(expected.array)])


def test_operations_that_ask_a_placement_are_not_recorded():
    """As with parameters that are gathered whenever an operation reads them."""

    class Placement:
        labels = []

        def __call__(self, call):
            self.labels.append(call.label)
            call.run()

    net, x = (
        make(lambda self, x: self.l(x), l=L.Linear(3, 3)),
        on_device(X[:, 0, 0, :3]),
    )
    _core.set_around_call(Placement())
    try:
        for _ in range(6):
            net(x)
    finally:
        _core.set_around_call(None)
    assert Placement.labels == ["linear"] * 6


def test_several_calls_before_the_backward_pass():
    def forward(self, x):
        return F.tanh(self.l(x))

    def run(decorate):
        net = make(forward, decorate, l=L.Linear(3, 3, initialW=numpy.eye(3)))
        xs = [on_device(numpy.full((2, 3), i / 4, "f")) for i in range(6)]
        for _ in range(3):
            net.cleargrads()
            ys = [net(net(x)) for x in xs]
            F.sum(sum(y * (i + 1) for i, y in enumerate(ys))).backward()
        results = [*ys, *(x.grad_var for x in xs), net.l.W.grad_var]
        return [cuda.to_cpu(x.array) for x in results]

    assert_same(run(static_graph), run(plain))


def test_gradients_are_accumulated():
    def run(decorate):
        net = make(
            lambda self, x: self.l(x) ** 2, decorate, l=L.Linear(3, 2, initialW=1)
        )
        net.cleargrads()
        found = []
        for i in range(6):
            y = net(on_device(numpy.full((2, 3), i, "f")))
            F.sum(y).backward()
            F.sum(y * 2).backward()  # once more through the same call
            found += [cuda.to_cpu(y.array), cuda.to_cpu(net.l.W.grad)]
        return found

    assert_same(run(static_graph), run(plain))


def test_gradients_of_some_inputs(kind):
    net = make(
        lambda self, a, b: (self.l(a) * b, F.sum(b)), l=L.Linear(3, 3, initialW=1)
    )
    a, b = numpy.arange(6, dtype="f").reshape(2, 3), numpy.ones((2, 3), "f")
    for i in range(5):
        xs = on_device(a + i), on_device(b)
        y, total = net(*xs)
        (gb,) = renga.grad([y], [xs[1]])
        (ga, gW) = renga.grad([y, total], [xs[0], net.l.W])
        expected = (a + i).sum(1, keepdims=True).repeat(3, 1)
        numpy.testing.assert_array_equal(cuda.to_cpu(gb.array), expected)
        numpy.testing.assert_array_equal(cuda.to_cpu(ga.array), b * 3)
        expected = (a + i).sum(0, keepdims=True).repeat(3, 0)
        numpy.testing.assert_array_equal(cuda.to_cpu(gW.array), expected)
        assert float(cuda.to_cpu(total.array)) == 6


def test_replaced_parameters_are_used():
    net = make(lambda self, x: self.l(x), l=L.Linear(3, 2, nobias=True))
    for i in range(6):
        net.l.W.array = cuda.to_gpu(numpy.full((2, 3), i, "f"))
        y = net(on_device(numpy.ones((1, 3), "f")))
        numpy.testing.assert_array_equal(cuda.to_cpu(y.array), [[3 * i, 3 * i]])


def test_other_shapes_and_no_training():
    net = make(lambda self, x: self.l(x), l=L.Linear(3, 2, initialW=1))
    for i in range(12):
        n = i % 3 + 1
        with renga.using_config("train", i % 4 > 0):
            y = net(on_device(numpy.full((n, 3), i, "f")))
        numpy.testing.assert_array_equal(
            cuda.to_cpu(y.array), numpy.full((n, 2), 3 * i)
        )


def setting(self, x):
    self.h = self.l(x)
    return self.h


def reading(self, x):
    return self.l(x) * float(cuda.to_cpu(F.sum(x).array))


def drawing(self, x):
    return self.l(x) * numpy.random.random()


def drawing_arrays(self, x):
    return F.zoneout(self.l(x), self.l(x), 0.5)


other = renga.Parameter(numpy.ones(2, "f"))


def using(self, x):
    return self.l(x) * other


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (setting, "it sets 'h'"),
        (reading, "copy from or to the host|error 900|stream is capturing"),
        (drawing, "it draws random numbers of NumPy"),
        (drawing_arrays, "random numbers of the host"),
        (using, "a variable that is not the chain's"),
    ],
)
def test_calls_that_cannot_be_recorded(kind, forward, reason, caplog):
    other.array = cuda.to_gpu(numpy.ones(2, "f"))

    def run(decorate):
        numpy.random.seed(0)
        net = make(forward, decorate, l=L.Linear(3, 2, initialW=1))
        found = []
        for i in range(5):
            net.cleargrads()
            y = net(on_device(numpy.full((2, 3), i + 1, "f")))
            F.sum(y).backward()
            found += [cuda.to_cpu(y.array), cuda.to_cpu(net.l.W.grad)]
        return found

    with caplog.at_level(logging.INFO, "renga.graph_optimizations"):
        found = run(static_graph)
    (record,) = caplog.records
    assert re.search(rf"Static\..*({reason})", record.getMessage())
    assert_same(found, run(plain))


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (lambda self, x: on_another_stream(self.l, x), "got another stream"),
        (
            lambda self, x: F.copy(F.copy(self.l(x), 1), 0),
            "got a copy to another device",
        ),
    ],
)
def test_graphs_are_of_one_stream(forward, reason, caplog):
    pytest.importorskip("cupy")
    if cuda.load_plugin().count() < 2:
        pytest.skip("one device")
    net = make(forward, l=L.Linear(3, 2, initialW=1))
    with caplog.at_level(logging.INFO, "renga.graph_optimizations"):
        for i in range(5):
            y = net(on_device(numpy.full((2, 3), i, "f")))
            numpy.testing.assert_array_equal(cuda.to_cpu(y.array), [[3 * i] * 2] * 2)
    (record,) = caplog.records
    assert f"in a recorded graph, {reason}" in record.getMessage()


def on_another_stream(link, x):
    with cuda.cupy.cuda.Stream(non_blocking=True):
        return link(x.array)


def test_errors_of_the_call_are_its_own():
    net = make(lambda self, x: self.l(x) if self.works else 1 / 0, l=L.Linear(3, 2))
    net.works = True
    x = on_device(numpy.ones((1, 3), "f"))
    net(x), net(x)
    net.works = False
    with pytest.raises(ZeroDivisionError):
        net(x)
    net.works = True
    assert net(x).shape == (1, 2)


def test_double_backprop():
    def run(**options):
        net = make(
            lambda self, x: self.l(x) ** 3, static_graph(**options), l=L.Linear(1, 1)
        )
        for _ in range(4):
            x = on_device(numpy.full((1, 1), 2, "f"))
            y = net(x)
        (gx,) = renga.grad([y], [x], enable_double_backprop=True)
        return gx

    with pytest.raises(RuntimeError, match="expected one backward pass"):
        run()
    assert run(enable_double_backprop=True).creator_node is not None


def test_copies_of_a_chain_record_their_own():
    net = StaticNet().to_device(gpu)
    x = on_device(X)
    for _ in range(4):
        net(x)
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        copied.to_device(gpu)
        copied.conv.W.array[...] *= 2
        for _ in range(4):
            numpy.random.seed(0)
            y = copied(x)
        numpy.random.seed(0)
        expected = Net.forward(copied, x)
        assert_same([cuda.to_cpu(y.array)], [cuda.to_cpu(expected.array)])


def test_memory_is_given_back():
    def run():
        net = StaticNet().to_device(gpu)
        for _ in range(4):
            y = net(on_device(X))
        F.sum(y).backward()
        return y

    def in_use():
        gc.collect()
        _core.synchronize("cuda:0")
        return renga.memory.stats("cuda:0")["in_use"]

    run()
    before = in_use()
    y = run()  # what is in use outlives the network
    kept = cuda.to_cpu(y.array)
    numpy.testing.assert_array_equal(cuda.to_cpu(y.array), kept)
    del y
    assert in_use() == before


def empty_cache():
    renga.memory.empty_cache("cuda:0")


def exhaust_memory():
    with pytest.raises(MemoryError):
        _core.empty_variable((1 << 44,), "uint8", "cuda:0")


@pytest.mark.parametrize("release", [empty_cache, exhaust_memory])
def test_graphs_keep_their_memory(release):
    """Also blocks that were free again when the recording ended."""
    expected, _ = train(Net(), 8)
    net = StaticNet()

    class Optimizer(renga.optimizers.Adam):
        def update(self, *args, **kwargs):
            super().update(*args, **kwargs)
            gc.collect()
            release()
            # What the graphs need would be here.
            self.others = [on_device(numpy.zeros(2**k, "f")) for k in range(4, 20)]

    found, _ = train(net, 8, Optimizer(0.01))
    assert_same(found, expected)


@pytest.mark.parametrize("seed", range(4))
def test_streams(seed):
    """Replays follow what precedes them on CuPy's current stream."""
    pytest.importorskip("cupy")
    if standin is not None:  # which runs streams in another order with every seed
        standin.cuda_standin_seed(ctypes.c_uint64(seed))
    net = make(
        lambda self, x: F.exp(self.l(x)), l=L.Linear(3, 3, initialW=numpy.eye(3))
    )
    for i in range(6):
        with cuda.cupy.cuda.Stream(non_blocking=True):
            y = net(on_device(numpy.full((2, 3), i / 8, "f")))
        numpy.testing.assert_allclose(
            cuda.to_cpu(y.array), numpy.exp(numpy.full((2, 3), i / 8)), rtol=1e-6
        )


def test_the_garbage_collector_pauses_until_the_last_recording_ends():
    assert gc.isenabled()
    with recorded_calls._collector_pause:
        with recorded_calls._collector_pause:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_memory_that_another_thread_frees_waits_for_the_recording():
    """Freeing it waits for the device, which no recording allows."""
    x = on_device(numpy.ones(3, "f"))
    others = [cuda.load_plugin().Recording(0)]
    others[0].begin()
    _core.addresses([F.exp(x)])  # in memory of the recording
    others[0].end()
    recording = cuda.load_plugin().Recording(0)
    recording.begin()
    thread = threading.Thread(target=others.clear)
    thread.start()
    thread.join()
    assert not others
    recording.end()
