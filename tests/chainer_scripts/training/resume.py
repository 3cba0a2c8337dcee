"""Serializers: npz and HDF5, a snapshot of the trainer, and going on from it."""

import os

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import serializers, training
from chainer.training import extensions


def make(out, epoch):
    np.random.seed(0)
    x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    dataset = chainer.datasets.TupleDataset(x, x ** 2)
    model = L.Classifier(
        chainer.Sequential(L.Linear(1, 8), F.tanh, L.Linear(8, 1)),
        lossfun=F.mean_squared_error)
    model.compute_accuracy = False
    optimizer = chainer.optimizers.Adam(0.02).setup(model)
    iterator = chainer.iterators.SerialIterator(dataset, 16, shuffle=False)
    trainer = training.Trainer(
        training.StandardUpdater(iterator, optimizer), (epoch, 'epoch'), out)
    trainer.extend(extensions.snapshot(
        filename='snapshot_epoch-{.updater.epoch}'))
    trainer.extend(extensions.LogReport())
    return trainer, model


whole, model = make('whole', 6)
whole.run()
part, _ = make('part', 3)
part.run()
resumed, other = make('part', 6)
serializers.load_npz(os.path.join('part', 'snapshot_epoch-3'), resumed)
resumed.run()
for ours, theirs in zip(model.params(), other.params()):
    assert (ours.array == theirs.array).all()

serializers.save_npz('model.npz', model)
serializers.save_hdf5('model.h5', model)
for load, name in ((serializers.load_npz, 'model.npz'),
                   (serializers.load_hdf5, 'model.h5')):
    _, fresh = make('x', 1)
    load(name, fresh)
    assert (fresh.predictor[0].W.array == model.predictor[0].W.array).all()
with np.load('model.npz') as f:
    print(sorted(f))
