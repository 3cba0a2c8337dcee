"""What public programs call in ways that other cases do not have."""

import io
import os

import chainer
import chainer.functions as F
import numpy as np
from chainer import Variable as V, distributions as D, serializers
from chainer.datasets import TupleDataset
from chainer.functions.array.broadcast import broadcast_to
from chainer.training import extensions, updater
from chainer.utils import type_check

EXPRESSIONS = """
broadcast_to(f(1, 2), (3, 2))
updater.ParallelUpdater.__name__
logged(log_name=None)
logged(filename=None)
in_npz({'a': f(1, 2), 'b/c': np.int32(3)})
in_hdf5({'a': f(1, 2)})
differentiated(lambda a: D.Laplace(a, f(1, 2)).cdf(f(0, 0)), f(0, 0))
differentiated(lambda a: D.Laplace(f(0, 1), f(1, 2)).cdf(a), f(0, 1))
differentiated(lambda a: D.Laplace(f(0, 1), f(1, 2)).icdf(a), f(.5, .5))
differentiated(lambda a: D.Exponential(f(1, 2, 3)).cdf(a), f(0, 1, 0))
differentiated(lambda a: D.Categorical(a).entropy, f(0, 1, 0))
differentiated(lambda a: D.Categorical(a).entropy, f(.25, .75, 0))
differentiated(lambda a: D.Bernoulli(a).entropy, f(0, 1, .5, .25))
differentiated(F.log_ndtr, f(-200, -88, -5, 0, 5))
unexpected(lambda types: types[0].ndim == 3)
unexpected(lambda types: types[0].dtype.kind == 'i')
unexpected(lambda types: types[0].dtype == np.dtype('d'))
same_dtype()
"""


def f(*values):
    return np.array(values, "f")


def logged(**options):
    """The files of a LogReport, which a program of Optuna's keeps in memory alone."""
    chain = chainer.links.Linear(1, 1)
    data = TupleDataset(np.ones((2, 1), "f"))
    made = chainer.training.updaters.StandardUpdater(
        chainer.iterators.SerialIterator(data, 2),
        chainer.optimizers.SGD().setup(chain),
        loss_func=lambda x: F.sum(chain(x)),
    )
    trainer = chainer.training.Trainer(made, (1, "epoch"), "out")
    report = extensions.LogReport(**options)
    trainer.extend(report)
    trainer.run()
    return len(report.log), sorted(os.listdir("out"))


def in_npz(arrays):
    file = io.BytesIO()
    serializers.save_npz(file, arrays)
    file.seek(0)
    with np.load(file) as read:
        return {name: read[name] for name in sorted(read.files)}


def in_hdf5(arrays):
    h5py = __import__("h5py")
    serializers.save_hdf5("file", arrays)
    with h5py.File("file", "r") as read:
        return {name: read[name][()] for name in read}


def differentiated(function, x):
    x = V(x)
    y = function(x)
    F.sum(y).backward()
    return y, x.grad


def unexpected(condition):
    types = type_check.get_types((f(1, 2),), "in_types", False)
    try:
        type_check.expect(condition(types))
    except type_check.InvalidType as error:
        return str(error)


def same_dtype():
    """A cast to the dtype that a Variable has makes a node of the graph."""
    x = V(f(1, 2))
    y = F.cast(x, "f")
    F.sum(y * y).backward()
    with chainer.no_backprop_mode():
        same = F.cast(x, "f") is x
    return y is x, y.creator is None, y.rank, x.grad, same
