"""Batches divided among copies of a model, against sums of gradients."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.training.updaters import ParallelUpdater

X = numpy.random.default_rng(0).normal(size=(7, 3))
T = X @ [[1.0], [-2.0], [0.5]] + 0.3


class Model(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", numpy.float64):
            self.linear = L.Linear(3, 1, initialW=renga.initializers.Constant(0.1))

    def forward(self, x, t):
        loss = F.mean_squared_error(self.linear(x), t)
        renga.report({"loss": loss}, self)
        return loss


def make(batch_size, **kwargs):
    iterator = renga.iterators.SerialIterator(
        renga.datasets.TupleDataset(X, T), batch_size, shuffle=False
    )
    optimizer = renga.optimizers.SGD(0.1).setup(Model())
    return ParallelUpdater(iterator, optimizer, **kwargs), optimizer.target


def expected(batches, copies):
    """Gradient descent in NumPy by sums of the gradients of the copies' means."""
    w, b = numpy.full(3, 0.1), 0.0
    for batch in batches:
        gw, gb = numpy.zeros(3), 0.0
        for i in range(copies):
            indices = batch[i::copies]
            if indices:
                error = X[indices] @ w + b - T[indices, 0]
                gw += 2 * error @ X[indices] / len(indices)
                gb += 2 * error.mean()
        w, b = w - 0.1 * gw, b - 0.1 * gb
    return w, b


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [4, 2])
def test_gradients_of_all_copies_are_added_up(copies, batch_size):
    names = ["main", "second", "third"][:copies]
    updater, model = make(batch_size, devices=dict.fromkeys(names, -1))
    for _ in range(3):
        updater.update()
    order = [i % 7 for i in range(3 * batch_size)]
    batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    w, b = expected(batches, copies)
    numpy.testing.assert_allclose(model.linear.W.array[0], w, rtol=1e-12)
    numpy.testing.assert_allclose(model.linear.b.array, [b], rtol=1e-12)


def test_explicit_models():
    other, main = Model(), Model()
    iterator = renga.iterators.SerialIterator(
        renga.datasets.TupleDataset(X, T), 4, shuffle=False
    )
    optimizer = renga.optimizers.SGD(0.1).setup(main)
    ParallelUpdater(iterator, optimizer, models={"main": main, "a": other}).update()
    w, _ = expected([[0, 1, 2, 3]], 2)
    numpy.testing.assert_allclose(main.linear.W.array[0], w, rtol=1e-12)
    numpy.testing.assert_allclose(other.linear.W.array[0], w, rtol=1e-12)


def test_under_a_trainer(tmp_path):
    updater, _ = make(4, devices={"main": "@numpy", "second": "@numpy"})
    trainer = renga.training.Trainer(updater, (2, "epoch"), out=tmp_path)
    log = renga.training.extensions.LogReport(trigger=(1, "iteration"))
    trainer.extend(log)
    trainer.run()
    assert {"main/loss", "second/loss"} <= set(log.log[0])
    assert updater.epoch == 2 and updater.get_optimizer("main").epoch == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "models or devices"),
        ({"devices": {"a": -1}}, KeyError, "devices must contain a 'main' key"),
        ({"models": {"a": Model()}}, KeyError, "models must contain a 'main' key"),
    ],
)
def test_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        make(4, **arguments)


def test_tied_parameters():
    class Tied(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope(), renga.using_config("dtype", numpy.float64):
                self.a = L.Linear(3, 3, initialW=0.1, nobias=True)
                self.b = L.Linear(3, 3, nobias=True)
            with self.b.init_scope():
                self.b.W = self.a.W

        def forward(self, x, t):
            return F.mean_squared_error(F.sum(self.b(self.a(x)), 1, keepdims=True), t)

    data = renga.datasets.TupleDataset(X[:4], T[:4])
    optimizer = renga.optimizers.SGD(0.1).setup(Tied())
    updater = ParallelUpdater(
        renga.iterators.SerialIterator(data, 4, shuffle=False),
        optimizer,
        devices={"main": -1, "second": -1},
    )
    alone = Tied()
    reference = renga.optimizers.SGD(0.2).setup(alone)
    for _ in range(3):
        updater.update()
        reference.update(alone, X[:4], T[:4])
    numpy.testing.assert_allclose(optimizer.target.a.W.array, alone.a.W.array, 1e-12)
