"""Training loops that change something on the way, for one process and for ranks."""

import io

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.optimizer_hooks import GradientClipping, GradientLARS, WeightDecay
from renga.optimizers import MomentumSGD
from renga.serializers import load_npz, save_npz
from tests.files import saved

STEPS = 6
SAMPLES = 12


class Net(renga.Chain):
    """A weight under two names, a scalar, an empty parameter, and a lazy layer."""

    def __init__(self, seed=0):
        super().__init__()
        draw = renga.initializers.Uniform(0.5, rng=np.random.RandomState(seed))
        with self.init_scope():
            self.first = L.Linear(None, 5, initialW=draw)
            self.a = L.Linear(5, 5, initialW=draw)
            self.b = L.Linear(5, 5, initialW=draw)
            self.scale = renga.Parameter(np.array(0.7))
            self.empty = renga.Parameter(np.zeros((0, 3)))
        with self.b.init_scope():
            self.b.W = self.a.W

    def forward(self, x):
        h = F.tanh(self.first(x))
        y = self.b(F.tanh(self.a(h)))
        return y * F.broadcast_to(self.scale, y.shape)

    def loss(self, x, t):
        return F.mean_squared_error(self(x), t)


def float64():
    """A context in which parameters are of float64."""
    return renga.using_config("dtype", np.dtype("float64"))


def data(step):
    random = np.random.RandomState(step)
    return random.normal(size=(SAMPLES, 4)), random.normal(size=(SAMPLES, 5))


def freeze(step, model, optimizer):
    if step == 2:
        model.a.disable_update()
        model.scale.update_rule.enabled = False
    if step == 4:
        model.a.enable_update()


def freeze_first(step, model, optimizer):
    if step == 0:
        model.b.disable_update()


def own_settings(step, model, optimizer):
    if step == 0:
        model.first.b.update_rule.hyperparam.lr = 0.02
    if step == 3:
        model.b.b.update_rule.hyperparam.momentum = 0.5
        model.a.W.update_rule.add_hook(WeightDecay(0.1))


def own_rule(step, model, optimizer):
    if step == 0:
        model.b.b.update_rule = renga.optimizers.SGD(0.3).create_update_rule()
        model.first.b.update_rule = None


def rates(step, model, optimizer):
    optimizer.lr *= 0.9


def decay_later(step, model, optimizer):
    if step == 2:
        optimizer.add_hook(WeightDecay(0.05))
    if step == 4:
        optimizer.remove_hook("WeightDecay")


def decay_changes(step, model, optimizer):
    if step == 0:
        optimizer.add_hook(Decay())
    optimizer.update_hooks("pre")["decay"].rate = 0.01 * step


class Decay:
    """A hook with a setting that the program changes."""

    name = "decay"
    call_for_each_param = True
    timing = "pre"
    rate = 0.0

    def __call__(self, rule, param):
        param.grad += self.rate * param.array


def clip_later(step, model, optimizer):
    if step == 3:
        optimizer.add_hook(GradientClipping(0.05))


def lars_later(step, model, optimizer):
    if step == 2:
        optimizer.add_hook(GradientLARS())


def write(step, model, optimizer):
    if step in (2, 3):
        model.a.W.array[1:3] *= 0.5
        model.scale.array[...] = 0.3 + step


def replace(step, model, optimizer):
    if step == 3:
        # An array in Fortran's order, too.
        model.a.W.array = np.asfortranarray(0.5 * model.b.W.array)


def load_model(step, model, optimizer):
    if step == 1:
        model.file = io.BytesIO()
        save_npz(model.file, model)
    if step == 4:
        model.file.seek(0)
        load_npz(model.file, model)


def load_both(step, model, optimizer):
    """Back to the state of step 2."""
    pair = [("optimizer", optimizer), ("model", model)]
    if step == 2:
        model.files = [io.BytesIO(), io.BytesIO()]
        for file, (_, obj) in zip(model.files, pair):
            save_npz(file, obj)
    if step == 4:
        for file, (_, obj) in zip(model.files, pair):
            file.seek(0)
            load_npz(file, obj)


def by_hand(step, model, optimizer):
    """Gradients of two backward passes and of ``renga.grad``."""
    return "by hand" if step % 2 else None


PROGRAMS = [
    *(freeze, freeze_first, own_settings, own_rule, rates, decay_later),
    *(decay_changes, clip_later, lars_later, write, replace, load_model),
    *(load_both, by_hand),
]


def train(program, comm=None, make=MomentumSGD, wrap=None, seed=0):
    """Files of the model and the optimizer, after training in this rank's samples."""
    with float64():
        return _train(program, comm, make, wrap, seed)


def _train(program, comm, make, wrap, seed):
    model = Net(seed)
    optimizer = make(0.1).setup(model)
    if wrap is not None:
        optimizer = wrap(optimizer, comm)
    for step in range(STEPS):
        kind = program(step, model, optimizer)
        x, t = data(step)
        if comm is not None:
            x, t = x[comm.rank :: comm.size], t[comm.rank :: comm.size]
        if kind is None:
            optimizer.update(model.loss, x, t)
        else:
            model.cleargrads()
            (0.25 * model.loss(x, t)).backward()
            loss = 0.75 * model.loss(x, t)
            params = [model.a.W, model.scale]
            for param, more in zip(params, renga.grad([loss], params)):
                param.grad = np.asarray(param.grad + more.array)
            optimizer.update()
    if comm is not None:
        optimizer.join()
    return saved(model), saved(optimizer)


def assert_equal_files(found, expected):
    for got, wanted in zip(found, expected):
        assert got.keys() >= wanted.keys()
        for key, x in wanted.items():
            assert got[key].shape == x.shape and got[key].dtype == x.dtype, key
            if x.dtype != object:
                np.testing.assert_allclose(
                    got[key], x, rtol=1e-9, atol=1e-9, err_msg=key
                )
