"""Arrays on CUDA devices in Python: CuPy's, or without CuPy renga's own."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core, backend
from renga.backends import cuda

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = "@cupy:0"


def random(*shape, dtype="float32"):
    return numpy.random.RandomState(0).standard_normal(shape).astype(dtype)


def on_device(x):
    return renga.get_device(gpu).send(x)


def test_a_variable_has_the_array_that_it_is_given(kind):
    x = on_device(random(3, 4))
    assert type(x) is cuda.ndarray and type(x).__module__.startswith(
        "cupy" if kind == "CuPy" else "renga"
    )
    v = renga.Variable(x)
    assert v.array is x and v.data is x
    assert v.xp is cuda.cupy and v.device == renga.get_device(gpu)
    assert (v.shape, v.dtype) == ((3, 4), numpy.float32)


def test_results_are_arrays_over_the_memory_of_the_core(kind):
    x = random(3, 4)
    y = F.exp(renga.Variable(on_device(x)))
    assert isinstance(y.array, cuda.ndarray) and y.array is y.array
    numpy.testing.assert_allclose(y.array.get(), numpy.exp(x), rtol=1e-6)
    described = y.array.__cuda_array_interface__
    assert described["data"] == y.__cuda_array_interface__["data"]


def test_writes_are_seen_on_both_sides(kind):
    x = on_device(random(5, 6))
    v = renga.Variable(x)
    x[1:3, ::2] = 7
    x[4] *= 2
    expected = random(5, 6)
    expected[1:3, ::2] = 7
    expected[4] *= 2
    numpy.testing.assert_array_equal(F.copy(v, -1).array, expected)
    v.array[...] = on_device(expected[::-1])
    numpy.testing.assert_array_equal(x.get(), expected[::-1])
    _core.optimizers.sgd(v.array, on_device(expected), {}, {"lr": 1.0})
    numpy.testing.assert_array_equal(x.get(), expected[::-1] - expected)
    renga.Variable(x[::2].T).array[...] = 0  # a view's variable
    assert not x.get()[::2].any() and x.get()[1].any()


def test_an_array_outlives_its_variable(kind):
    x = random(1000)
    y = F.sqrt(renga.Variable(on_device(x * x))).array
    part = y[10:20]
    del y
    for _ in range(10):
        F.exp(renga.Variable(on_device(x)))
    numpy.testing.assert_allclose(part.get(), abs(x[10:20]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "float64"])
def test_dtypes_strides_and_views(kind, dtype):
    x = (random(4, 5, 6) * 9).astype(dtype)
    a = on_device(x)
    assert a.dtype == dtype and a.nbytes == x.nbytes and len(a) == 4
    numpy.testing.assert_array_equal(a.get(), x)
    numpy.testing.assert_array_equal(a[1, ::-2, 2:].get(), x[1, ::-2, 2:])
    numpy.testing.assert_array_equal(a.T.get(), x.T)
    numpy.testing.assert_array_equal(renga.Variable(a.T).array.get(), x.T)
    numpy.testing.assert_array_equal(a[:, None].get(), x[:, None])
    numpy.testing.assert_array_equal(a.astype("float32").get(), x.astype("float32"))
    numpy.testing.assert_array_equal(a.reshape(20, -1).get(), x.reshape(20, -1))
    assert on_device(x[:0]).get().shape == (0, 5, 6)
    assert a[2, 3, 4].item() == x[2, 3, 4]


def test_conversion_to_numpy_is_never_silent(kind):
    with pytest.raises(TypeError):
        numpy.asarray(on_device(random(3)))


def test_gradients_are_arrays_of_the_device(kind):
    x = renga.Variable(on_device(random(3)))
    F.sum(x * x).backward()
    assert isinstance(x.grad, cuda.ndarray)
    numpy.testing.assert_allclose(x.grad.get(), 2 * random(3))
    x.grad *= 2
    numpy.testing.assert_allclose(x.grad.get(), 4 * random(3))
    with pytest.raises(TypeError, match="dtype"):
        x.grad = on_device(random(3).astype("float64"))
    with pytest.raises(ValueError, match="shape"):
        x.grad = on_device(random(4))


def test_operators_take_numbers_and_arrays_of_the_device(kind):
    x, y = random(3, 4), random(4) + 3
    v = renga.Variable(on_device(x))
    for got, expected in [
        (v + on_device(y), x + y),
        (on_device(y) - v, y - x),
        (2 / (v * v + 1), 2 / (x * x + 1)),
        (v @ on_device(y), x @ y),
        (renga.Variable(on_device(numpy.arange(5))) // 2, numpy.arange(5) // 2),
        (renga.Variable(on_device(numpy.arange(5))) / 2, numpy.arange(5) / 2),
    ]:
        numpy.testing.assert_allclose(got.array.get(), expected, rtol=1e-5)


def test_operators_of_arrays(kind):
    x, y = random(3, 4), random(4) + 3
    a, b = on_device(x), on_device(y)
    for got, expected in [
        *((a + b, x + y), (a - b, x - y), (a * b, x * y), (a / b, x / y)),
        *((3 + a, 3 + x), (3 - a, 3 - x), (3 * a, 3 * x), (3 / b, 3 / y), (-a, -x)),
    ]:
        numpy.testing.assert_allclose(got.get(), expected, rtol=1e-5)
    for change in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
        c = a.copy()
        assert change(c, 3) is c
        numpy.testing.assert_allclose(c.get(), change(x.copy(), 3), rtol=1e-5)


def test_moving_there_and_back(kind):
    x = renga.Variable(random(3), grad=random(3) * 2)
    x.to_gpu()
    assert isinstance(x.array, cuda.ndarray) and isinstance(x.grad, cuda.ndarray)
    x.to_device(gpu)
    x.to_cpu()
    numpy.testing.assert_array_equal(x.array, random(3))
    numpy.testing.assert_array_equal(x.grad, random(3) * 2)
    sent = cuda.to_gpu([random(2), None, random(3)])
    assert sent[1] is None
    numpy.testing.assert_array_equal(cuda.to_cpu(sent)[2], random(3))
    numpy.testing.assert_array_equal(cuda.copy(sent[0]).get(), random(2))
    assert backend.get_array_module(sent[0]) is cuda.cupy
    assert cuda.get_array_module(renga.Variable(sent[0])) is cuda.cupy
    assert cuda.get_device_from_array(sent[0]) == cuda.Device(0)
    assert cuda.get_device_from_array(random(2)) is cuda.DummyDevice


def test_arrays_are_made_on_the_current_device(kind):
    if cuda.load_plugin().count() < 2:
        pytest.skip("one device")
    with renga.using_device("@cupy:1"):
        x = cuda.cupy.zeros((2, 3), "f")
        y = cuda.to_gpu(random(2))
    assert x.device == y.device == cuda.Device(1)
    assert cuda.cupy.ones(2).device == cuda.Device(0)
    moved = cuda.to_gpu(x, 0)
    assert moved.device == cuda.Device(0) and not moved.get().any()
    v = renga.Variable(y)
    v.to_device(gpu)
    assert v.device == renga.get_device(gpu)
    numpy.testing.assert_array_equal(v.array.get(), random(2))


class MLP(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, 5, nobias=True)
            self.bn = L.BatchNormalization(5)
            self.l2 = L.Linear(5, 3)

    def forward(self, x):
        return self.l2(F.relu(self.bn(self.l1(x))))


def test_links_move_and_are_initialized_on_the_device(kind):
    numpy.random.seed(0)
    serial = MLP()
    y = serial(random(4, 6))
    numpy.random.seed(0)
    model = MLP().to_device(gpu)
    assert model.device == renga.get_device(gpu) and model.xp is cuda.cupy
    z = model(on_device(random(4, 6)))
    numpy.testing.assert_allclose(z.array.get(), y.array, rtol=1e-5, atol=1e-6)
    assert isinstance(model.bn.avg_mean, cuda.ndarray)
    assert all(isinstance(p.array, cuda.ndarray) for p in model.params())
    numpy.testing.assert_allclose(model.bn.avg_var.get(), serial.bn.avg_var, rtol=1e-5)
    model.to_device("@numpy")
    numpy.testing.assert_allclose(
        model(random(4, 6)).array, y.array, rtol=1e-5, atol=1e-6
    )


def test_models_are_saved_and_copied_from_the_device(kind, tmp_path):
    model = MLP().to_device(gpu)
    model(on_device(random(4, 6)))
    renga.serializers.save_npz(tmp_path / "model.npz", model)
    other = MLP()
    renga.serializers.load_npz(tmp_path / "model.npz", other)
    third = MLP().to_device(gpu)
    renga.serializers.load_npz(tmp_path / "model.npz", third)
    copies = [other, third, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for clone in [*copies, model.copy("copy")]:
        for (name, p), (_, q) in zip(
            sorted(model.namedparams()), sorted(clone.namedparams())
        ):
            expected = p.array.get()
            numpy.testing.assert_array_equal(cuda.to_cpu(q.array), expected, name)
            assert q.array is not p.array


OPTIMIZERS = [
    ("SGD", {}),
    ("MomentumSGD", {}),
    ("Adam", {}),
    ("AdaGrad", {}),
    ("RMSprop", {}),
    ("LAMB", {}),
    ("RMSpropMomentumSGD", {"sgd_share": 0.5}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=lambda x: str(x))
def test_optimizers_and_hooks(kind, name, options):
    def train(device):
        numpy.random.seed(1)
        model = MLP().to_device(device)
        optimizer = getattr(renga.optimizers, name)(**options).setup(model)
        optimizer.add_hook(renga.optimizer_hooks.GradientClipping(0.5))
        optimizer.add_hook(renga.optimizer_hooks.GradientHardClipping(-0.1, 0.1))
        optimizer.add_hook(renga.optimizer_hooks.Lasso(1e-3))
        optimizer.add_hook(renga.optimizer_hooks.WeightDecay(1e-2))
        x = renga.get_device(device).send(random(8, 6))
        t = renga.get_device(device).send(numpy.arange(8, dtype="i") % 3)
        for _ in range(3):
            optimizer.update(lambda: F.softmax_cross_entropy(model(x), t))
        return model, optimizer

    expected, _ = train("@numpy")
    model, optimizer = train(gpu)
    for p, q in zip(expected.params(), model.params()):
        numpy.testing.assert_allclose(q.array.get(), p.array, rtol=1e-5, atol=1e-6)
    # The state follows the model to another device.
    model.to_device("@numpy")
    optimizer.update(lambda: F.sum(model(random(8, 6)) ** 2))
    assert isinstance(next(model.params()).array, numpy.ndarray)


def test_optimizers_are_saved_on_one_device_and_loaded_on_another(kind, tmp_path):
    def step(model, optimizer, device):
        x = renga.get_device(device).send(random(8, 6))
        optimizer.update(lambda: F.sum(model(x) ** 2))

    def make(device):
        model = MLP().to_device(device)
        return model, renga.optimizers.Adam().setup(model)

    model, optimizer = make(gpu)
    step(model, optimizer, gpu)
    for name, saved in (("m", model), ("o", optimizer)):
        renga.serializers.save_npz(tmp_path / name, saved)
    results = []
    for device in ("@numpy", gpu):
        loaded, its = make(device)
        renga.serializers.load_npz(tmp_path / "m", loaded)
        renga.serializers.load_npz(tmp_path / "o", its)
        step(loaded, its, device)
        results.append([cuda.to_cpu(p.array) for p in loaded.params()])
    step(model, optimizer, gpu)
    for p, a, b in zip(model.params(), *results):
        numpy.testing.assert_allclose(a, p.array.get(), rtol=1e-5, atol=1e-6)
        numpy.testing.assert_allclose(b, p.array.get(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scale", [None, 128.0])
def test_loss_scaling_in_float16(kind, scale):
    with renga.using_config("dtype", numpy.float16):
        model = L.Linear(6, 3).to_device(gpu)
        optimizer = renga.optimizers.MomentumSGD(0.1).setup(model)
        optimizer.use_fp32_update()
        optimizer.loss_scaling(scale=scale)
        before = model.W.array.get()
        x = on_device(random(8, 6, dtype="float16"))
        for _ in range(3):
            optimizer.update(lambda: F.sum(model(x)))
    # The gradient of W is the sum of x; momentum SGD moves 1 + 1.9 + 2.71 times 0.1.
    moved = (before - model.W.array.get()).astype("f")
    expected = 0.561 * random(8, 6, dtype="float16").astype("f").sum(0)
    numpy.testing.assert_allclose(moved, numpy.tile(expected, (3, 1)), atol=4e-3)
    x[0, 0] = numpy.inf
    if scale is None:
        before = model.W.array.get()
        optimizer.update(lambda: F.sum(model(x)))
        numpy.testing.assert_array_equal(model.W.array.get(), before)  # skipped


def test_copies_between_devices_are_differentiated(kind):
    x = renga.Variable(random(3))
    y = F.copy(x * 2, gpu)
    assert isinstance(y.array, cuda.ndarray)
    F.sum(F.copy(y * y, "@numpy")).backward()
    numpy.testing.assert_allclose(x.grad, 8 * random(3), rtol=1e-6)


def test_functions_written_in_python(kind):
    class Double(renga.FunctionNode):
        def forward_gpu(self, inputs):
            return (inputs[0] + inputs[0],)

        def forward_cpu(self, inputs):
            raise AssertionError

        def backward(self, indexes, gys):
            return (gys[0] * 2,)

    x = renga.Variable(on_device(random(3)))
    (y,) = Double().apply((x,))
    F.sum(y * y).backward()
    numpy.testing.assert_allclose(y.array.get(), 2 * random(3))
    numpy.testing.assert_allclose(x.grad.get(), 8 * random(3), rtol=1e-6)


def test_batches_and_reports(kind):
    batch = [(random(2), numpy.int32(1)), (random(2) * 2, numpy.int32(0))]
    x, t = renga.dataset.concat_examples(batch, gpu)
    assert isinstance(x, cuda.ndarray) and isinstance(t, cuda.ndarray)
    numpy.testing.assert_array_equal(x.get(), numpy.stack([random(2), random(2) * 2]))
    reporter = renga.Reporter()
    with reporter:
        renga.report({"loss": F.sum(renga.Variable(x))})
    summary = renga.reporter.DictSummary()
    summary.add(reporter.observation)
    assert summary.compute_mean()["loss"] == pytest.approx(3 * random(2).sum())
    assert "variable([" in repr(renga.Variable(x))
    assert "device" in renga.Variable(x).debug_print()


def test_memory_is_the_cores(kind):
    if kind == "own":
        pytest.skip("there is no other memory")
    before = _core.memory_stats("cuda:0")["in_use"]
    x = cuda.cupy.zeros((1 << 10, 1 << 8), "f")
    assert _core.memory_stats("cuda:0")["in_use"] - before >= 1 << 20
    del x
    assert _core.memory_stats("cuda:0")["in_use"] == before


def test_kernels_of_cupy_are_compiled_once(kind):
    if kind == "own":
        with pytest.raises(RuntimeError, match="expected CuPy"):
            cuda.elementwise("T x", "T y", "y = x + x", "double")
        return
    first = cuda.elementwise("T x", "T y", "y = x", "identity")
    assert cuda.elementwise("T x", "T y", "y = x", "identity") is first
    assert cuda.elementwise("T x", "T y", "y = -x", "negative") is not first
    cuda.clear_memo()
    assert cuda.elementwise("T x", "T y", "y = x", "identity") is not first


def test_memoize_and_fuse(kind):
    calls = []

    @cuda.memoize(for_each_device=True)
    def keep(n, m=1):
        calls.append(n)
        return n + m

    assert [keep(1), keep(1), keep(2), keep(1, m=2)] == [2, 2, 3, 3]
    assert calls == [1, 2, 1]
    if kind == "CuPy":
        double = cuda.fuse()(lambda x: x + x)
        numpy.testing.assert_array_equal(double(random(3)), 2 * random(3))
        got = double(on_device(random(3)))
        numpy.testing.assert_array_equal(got.get(), 2 * random(3))
