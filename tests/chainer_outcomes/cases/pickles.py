"""Objects that Chainer has pickled, and what becomes of them when they are used.

``python pickles.py`` with Chainer 7.8.1 (Python 3.7) writes the pickles to
``pickles.json``, from which ``record.py`` uses them.
"""

import base64
import json
import pickle
import sys
import zlib
from functools import partial
from pathlib import Path

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import iterators, optimizer_hooks, optimizers

FILE = Path(__file__).with_suffix(".json")
X = np.sin(np.arange(12, dtype="f")).reshape(4, 3)
IMAGES = np.cos(np.arange(3 * 16, dtype="f")).reshape(1, 3, 4, 4)
T = np.array([0, 2, 1, 3], "i")


class Model(chainer.Chain):
    """A class of the program's own."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 2, nobias=True)
            self.bn = L.BatchNormalization(2)
            self.l2 = L.Linear(None, 1, initialW=0.5)

    def forward(self, x):
        return F.sum(self.l2(F.tanh(self.bn(self.l1(x)))) ** 2)


def trained(optimizer, updates=2, hooks=True):
    model = Model()
    optimizer.setup(model)
    if hooks:
        optimizer.add_hook(optimizer_hooks.WeightDecay(0.01))
        optimizer.add_hook(optimizer_hooks.GradientClipping(1.0))
        model.l1.W.update_rule.add_hook(lasso, "lasso")
    model.l2.b.update_rule.enabled = False
    for _ in range(updates):
        optimizer.update(model, X)
    return model, optimizer


def lasso(rule, param):
    param.grad += 0.01 * np.sign(param.array)


def go_on(pair):
    model, optimizer = pair
    for _ in range(2):
        optimizer.update(model, X)
    params = [model.l1.W, model.bn.gamma, model.l2.W, model.l2.b]
    return [optimizer.t, optimizer._loss_scale, *map(nested, params)]


def scaled():
    optimizer = optimizers.Adam()
    optimizer.loss_scaling(interval=2)
    return trained(optimizer, hooks=False)


def used(link, *args):
    """After a call, with the statistics and states that it leaves."""
    link(*args)
    return link


def called(*args):
    def call(link):
        np.random.seed(0)
        with chainer.using_config("train", False):
            return nested(link(*args))

    return call


def nested(y):
    if isinstance(y, (list, tuple)):
        return [nested(part) for part in y]
    y = np.asarray(getattr(y, "array", y))
    return [float(f"{x:.7g}") for x in y.ravel()]


def serial(**options):
    iterator = iterators.SerialIterator(list(range(7)), 3, **options)
    iterator.next()
    return iterator


def batches(iterator):
    found = [[int(i) for i in iterator.next()]]
    return [*found, iterator.epoch, iterator.previous_epoch_detail or 0]


def variable():
    v = chainer.Variable(X[0].copy(), name="v")
    v.grad = 2 * X[0]
    return v


# The name by which pickles find what is defined here.
sys.modules["chainer_pickles"] = sys.modules[__name__]
Model.__module__ = lasso.__module__ = "chainer_pickles"

OBJECTS = {
    "variable": (variable, lambda v: [v.name, nested(v), nested(v.grad)]),
    "parameters": (
        lambda: [chainer.Parameter(2.0, (2,), "p"), chainer.Parameter(1.0)],
        lambda ps: [ps[0].name, nested(ps[0]), nested(ps[0] * 2), ps[1].array is None],
    ),
    "adam": (lambda: trained(optimizers.Adam()), go_on),
    "before the first update": (lambda: trained(optimizers.AdaBound(), 0), go_on),
    "loss scaling": (scaled, go_on),
    "convolutions": (
        lambda: chainer.Sequential(
            L.Convolution2D(3, 2, 3), F.relu, L.Deconvolution2D(2, 1, 2)
        ),
        called(IMAGES),
    ),
    "batch normalization": (
        lambda: used(L.BatchNormalization(axis=(0, 2, 3)), IMAGES),
        called(IMAGES),
    ),
    "renormalization": (lambda: L.BatchRenormalization(3), called(X)),
    "lstm": (lambda: used(L.LSTM(3, 2), X), called(X)),
    "n_step": (
        lambda: L.NStepBiRNNTanh(1, 3, 1, 0.0),
        called(None, [X, X[:2]]),
    ),
    "tree": (
        lambda: L.BinaryHierarchicalSoftmax(3, ((0, 1), (2, 3))),
        called(X, T),
    ),
    "sampler": (lambda: L.NegativeSampling(3, [1, 2, 3, 4], 2), called(X, T)),
    "deformable": (lambda: L.DeformableConvolution2D(3, 1, 1), called(IMAGES)),
    "classifier": (lambda: L.Classifier(L.Linear(3, 4)), called(X, T)),
    "serial": (serial, batches),
    "in order": (lambda: serial(shuffle=False, repeat=False), batches),
    "threads": (
        lambda: iterators.MultithreadIterator(list(range(7)), 3, shuffle=False),
        batches,
    ),
}


def used_again(name):
    """What becomes of a recorded object."""
    content = base64.b64decode(json.loads(FILE.read_text())[name])
    return OBJECTS[name][1](pickle.loads(zlib.decompress(content)))


GENERATED = {name: partial(used_again, name) for name in OBJECTS}


def record():
    lines = []
    for name, (make, _) in OBJECTS.items():
        np.random.seed(0)
        content = base64.b64encode(zlib.compress(pickle.dumps(make(), 2), 9))
        lines.append(f"{json.dumps(name)}: {json.dumps(content.decode())}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
