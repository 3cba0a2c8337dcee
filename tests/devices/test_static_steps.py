"""Steps that are recorded as graphs of CUDA train as ordinary updates do."""

from __future__ import annotations

import ctypes
import pathlib
import sys

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core, optimizers
from renga.backends import cuda
from renga.optimizer_hooks import GradientClipping, GradientLARS, WeightDecay
from renga.training.updaters import StandardUpdater

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
gpu = "@cupy:0"
RANDOM = numpy.random.RandomState(0)
X = RANDOM.standard_normal((6, 8, 2, 6, 6)).astype("f")
T = RANDOM.randint(0, 3, (6, 8)).astype("i")
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


def update(loss, optimizer):
    """A step as scripts without static_step make it."""

    def step(*args, **kwargs):
        def kept(*args, **kwargs):
            losses.append(loss(*args, **kwargs))
            return losses[-1]

        losses = []
        optimizer.update(kept, *args, **kwargs)
        return losses[-1]

    return step


def scaled():
    optimizer = optimizers.Adam(0.01)
    optimizer.loss_scaling(interval=2, scale=2.0**10)
    return optimizer


OPTIMIZERS = {
    "Adam": (lambda: optimizers.Adam(0.01), ()),
    "hooks": (
        lambda: optimizers.MomentumSGD(0.1),
        (WeightDecay(0.01), GradientClipping(0.5)),
    ),
    "LARS": (lambda: optimizers.SGD(0.1), (GradientLARS(),)),
    "loss scale": (scaled, ()),
}


def train(make_step, name="Adam", steps=6):
    """What training gives: losses, reports, attributes, parameters, launches."""
    numpy.random.seed(0)
    model = L.Classifier(Net()).to_device(gpu)
    make_optimizer, hooks = OPTIMIZERS[name]
    optimizer = make_optimizer().setup(model)
    for hook in hooks:
        optimizer.add_hook(hook)
    step = make_step(model, optimizer)
    reporter, found, launches = renga.Reporter(), [], []
    reporter.add_observer("main", model)
    for i in range(steps):
        observation = {}
        x, t = cuda.to_gpu(X[i % 6]), cuda.to_gpu(T[i % 6])
        before = standin.cuda_standin_launches() if standin else 0
        with reporter.scope(observation):
            loss = step(x, t)
        launches.append(standin.cuda_standin_launches() - before if standin else 0)
        assert sorted(observation) == ["main/accuracy", "main/loss"]
        kept = [loss, *observation.values(), model.y, model.loss, model.accuracy]
        grads = [p.grad for p in model.params()]
        found += [cuda.to_cpu(renga.as_array(v)) for v in [*kept, *grads]]
        optimizer.hyperparam.lr = optimizer.hyperparam.alpha = 0.1 / (i + 1)
    found += [cuda.to_cpu(p.array) for p in model.params()]
    bn = model.predictor.bn
    return [*found, cuda.to_cpu(bn.avg_mean), cuda.to_cpu(bn.avg_var)], launches


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name):
    """Bit for bit, with rates that change, reports and attributes of every step."""
    expected, ordinary = train(update, name)
    found, recorded = train(renga.static_step, name)
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        numpy.testing.assert_array_equal(x, y)
    if standin is not None:
        assert recorded[1] == ordinary[1]
        # The launches of both passes are two; hooks and the update have as many.
        assert recorded[-1] < ordinary[-1] - 40


def test_mixed_precision():
    with renga.using_config("dtype", renga.mixed_bfloat16):
        expected, _ = train(update)
        found, _ = train(renga.static_step)
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        numpy.testing.assert_array_equal(x, y)


def test_on_the_cpu_it_is_an_update():
    def run(make_step):
        numpy.random.seed(0)
        model = L.Classifier(Net(), label_key="t")
        step = make_step(model, optimizers.Adam(0.01).setup(model))
        losses = [step(X[i], t=T[i]).array for i in range(4)]
        return [*losses, *(p.array for p in model.params())]

    found, expected = run(renga.static_step), run(update)
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        numpy.testing.assert_array_equal(x, y)


def test_arguments_are_checked():
    model = chain(lambda self, x: None, l=L.Linear(3, 2))
    with pytest.raises(TypeError, match="static_step: expected an optimizer, got None"):
        renga.static_step(model, None)
    step = renga.static_step(model, optimizers.SGD().setup(model))
    with pytest.raises(TypeError, match="expected a Variable from the loss function"):
        step(cuda.to_gpu(numpy.ones((2, 3), "f")))


def chain(forward, **links):
    model = type("Model", (renga.Chain,), {"forward": forward})(**links)
    return model.to_device(gpu)


def steps_of(model, loss, make_step, count=5):
    """The losses of a few steps."""
    step = make_step(loss, optimizers.SGD(0.1).setup(model))
    xs = [cuda.to_gpu(numpy.full((2, 3), i + 1, "f")) for i in range(count)]
    return [cuda.to_cpu(step(x).array) for x in xs]


def test_a_state_that_the_loss_resets():
    def run(make_step):
        model = chain(lambda self, x: None, lstm=L.LSTM(3, 2, lateral_init=1))
        for param in model.params():
            param.array[...] = 0.1

        def loss(x):
            model.lstm.reset_state()
            model.lstm(x)
            return F.sum(model.lstm(x))

        return steps_of(model, loss, make_step)

    assert run(renga.static_step) == run(update)


def test_a_state_that_the_caller_resets():
    """The state is None before each step, which a recorded step checks."""

    def run(make_step):
        model = chain(lambda self, x: None, lstm=L.LSTM(3, 2))
        for param in model.params():
            param.array[...] = 0.1
        step = make_step(
            lambda x: F.sum(model.lstm(x)), optimizers.SGD(0.1).setup(model)
        )
        losses = []
        for i in range(6):
            model.lstm.reset_state()
            x = cuda.to_gpu(numpy.full((2, 3), i + 1, "f"))
            losses.append(float(cuda.to_cpu(step(x).array)))
        return losses

    assert run(renga.static_step) == run(update)


other = renga.Parameter(numpy.ones(2, "f"))


def reading(self, x):
    return F.sum(self.l(x)) * float(cuda.to_cpu(F.sum(x).array))


def drawing(self, x):
    return F.sum(self.l(x)) * numpy.random.random()


def counting(self, x):
    self.count = getattr(self, "count", 0) + 1
    return F.sum(self.l(x))


def remembering(self, x):
    if self.h is not None:
        x = x + F.sum(self.h).reshape(1, 1)
    self.h = self.l(x)
    self.h.unchain()
    return F.sum(self.l(x))


def using(self, x):
    return F.sum(self.l(x) * other)


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (reading, r"Model.*test_static_steps\.py:\d+"),
        (drawing, "it draws random numbers of NumPy"),
        (counting, "it sets 'count'"),
        (remembering, "'h', which the call before has set"),
        (using, "a variable that is not the chain's"),
    ],
)
def test_steps_that_cannot_be_recorded(forward, reason):
    other.array = cuda.to_gpu(numpy.ones(2, "f"))
    model = chain(forward, l=L.Linear(3, 2))
    model.h = None
    step = renga.static_step(model, optimizers.SGD(0.1).setup(model))
    x = cuda.to_gpu(numpy.ones((2, 3), "f"))
    step(x), step(x)
    before, h = cuda.to_cpu(model.l.W.array).copy(), model.h
    for _ in range(2):  # a step that was refused is refused again
        with pytest.raises(RuntimeError, match=f"(?s)static_step: .*{reason}"):
            step(x)
        assert model.h is h
    numpy.testing.assert_array_equal(cuda.to_cpu(model.l.W.array), before)


def test_many_shapes_are_warned_of():
    model = chain(lambda self, x: F.sum(self.l(x)), l=L.Linear(3, 2))
    step = renga.static_step(model, optimizers.SGD(0.1).setup(model))
    for n in range(1, 9):
        step(cuda.to_gpu(numpy.ones((n, 3), "f")))
    with pytest.warns(UserWarning, match="at most 8 kinds") as told:
        step(cuda.to_gpu(numpy.ones((9, 3), "f")))
    assert told[0].filename == __file__


def test_another_target():
    """Steps train the model that the optimizer was set up with last."""
    models = [chain(lambda self, x: self.l(x), l=L.Linear(3, 1)) for _ in range(2)]
    optimizer = optimizers.SGD(0.5).setup(models[0])
    step = renga.static_step(lambda x: F.sum(optimizer.target(x)), optimizer)
    for model in models:
        optimizer.setup(model)
        before = cuda.to_cpu(model.l.W.array)
        for _ in range(4):
            step(cuda.to_gpu(numpy.ones((1, 3), "f")))
        numpy.testing.assert_allclose(cuda.to_cpu(model.l.W.array), before - 2, 1e-5)


def test_updater():
    def run(**options):
        numpy.random.seed(0)
        model = L.Classifier(Net()).to_device(gpu)
        data = renga.datasets.TupleDataset(X.reshape(-1, 2, 6, 6), T.reshape(-1))
        iterator = renga.iterators.SerialIterator(data, 8, shuffle=False)
        updater = StandardUpdater(
            iterator, optimizers.Adam(0.01).setup(model), device=gpu, **options
        )
        for _ in range(6):
            updater.update()
        return [cuda.to_cpu(p.array) for p in model.params()]

    found, expected = run(static=True), run()
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        numpy.testing.assert_array_equal(x, y)


def test_updater_refuses_accumulation():
    model = chain(lambda self, x: F.sum(self.l(x)), l=L.Linear(3, 2))
    optimizer = optimizers.SGD().setup(model)
    iterator = renga.iterators.SerialIterator(X, 2)
    with pytest.raises(ValueError, match="static=False.*accumulate=2"):
        StandardUpdater(iterator, optimizer, accumulate=2, static=True)
