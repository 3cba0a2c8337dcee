"""MultiprocessParallelUpdater on the CPU, against one process with all batches."""

from __future__ import annotations

import multiprocessing
import os

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.training.updaters import (
    MultiprocessParallelUpdater,
    gathering,
    multiprocess_parallel_updater as functions,
)

X = numpy.random.RandomState(0).standard_normal((24, 6)).astype("f")
T = (numpy.arange(24) % 4).astype("i")


class Model(renga.Chain):
    """Fails, or ends its process, at an input of 100."""

    def __init__(self, failure=None):
        super().__init__()
        self.failure = failure
        with self.init_scope():
            self.hidden = L.Linear(None, 5)
            self.out = L.Linear(5, 4)

    def forward(self, x, t):
        if self.failure is not None and abs(x).max() >= 100:
            if self.failure == "exit":
                os._exit(3)
            raise ValueError(self.failure)
        h = F.tanh(self.hidden(x))
        return F.softmax_cross_entropy(self.out(h), t)


def parts(x=X, n=2):
    """Iterators over parts of the data."""
    examples = list(zip(x, T))
    length = len(x) // n
    return [
        renga.iterators.SerialIterator(
            examples[i * length : (i + 1) * length], 3, shuffle=False
        )
        for i in range(n)
    ]


def model(failure=None):
    numpy.random.seed(0)
    model = Model(failure)
    with renga.no_backprop_mode():
        model(X[:1], T[:1])  # initializes its parameters
    return model


def serial(optimizer, updates, n=2):
    """Training by the sums of the parts' gradients."""
    expected = model()
    optimizer.setup(expected)
    iterators = parts(n=n)
    for _ in range(updates):
        expected.cleargrads()
        for iterator in iterators:
            expected(*renga.dataset.concat_examples(iterator.next())).backward()
        optimizer.update()
    return expected


def assert_same(expected, other):
    for (name, x), (_, y) in zip(
        sorted(expected.namedparams()), sorted(other.namedparams())
    ):
        numpy.testing.assert_allclose(y.array, x.array, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_parts_are_one_batch(n):
    trained = model()
    optimizer = renga.optimizers.MomentumSGD(0.1 * n).setup(trained)
    with pytest.warns(UserWarning, match="optimizer.lr is changed to 0.1"):
        updater = MultiprocessParallelUpdater(
            parts(n=n), optimizer, devices=["@numpy"] * n
        )
    for _ in range(24 // n // 3 + 1):
        updater.update()
    assert updater.epoch == 1 and updater.iteration == 24 // n // 3 + 1
    updater.finalize()
    assert_same(
        serial(renga.optimizers.MomentumSGD(0.1), updater.iteration, n), trained
    )


def test_parameters_that_wait_for_data_are_the_same_everywhere():
    numpy.random.seed(0)
    trained = Model()
    optimizer = renga.optimizers.MomentumSGD(0.2).setup(trained)
    with pytest.warns(UserWarning):
        updater = MultiprocessParallelUpdater(
            parts(), optimizer, devices=["@numpy", "@numpy"]
        )
    updater.update()
    updater.update()
    updater.finalize()
    assert_same(serial(renga.optimizers.MomentumSGD(0.1), 2), trained)


def test_a_trainer_reports_what_the_main_process_observes(tmp_path):
    trained = L.Classifier(L.Linear(6, 4))
    optimizer = renga.optimizers.SGD(0.1).setup(trained)
    with pytest.warns(UserWarning):
        updater = MultiprocessParallelUpdater(
            parts(), optimizer, devices={"other": -1, "main": -1}
        )
    trainer = training.Trainer(updater, (1, "epoch"), tmp_path)
    trainer.extend(training.extensions.LogReport())
    before = set(multiprocessing.active_children())
    trainer.run()
    (entry,) = trainer.get_extension("LogReport").log
    assert entry["iteration"] == 4 and "main/accuracy" in entry
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize(
    ("failure", "text"),
    [("no more", "ValueError: no more"), ("exit", "its process has ended")],
)
def test_a_worker_that_fails_is_an_error(failure, text):
    x = X.copy()
    x[18:] = 100  # the second worker's third batch
    optimizer = renga.optimizers.SGD(0.1).setup(model(failure))
    with pytest.warns(UserWarning):
        updater = MultiprocessParallelUpdater(
            parts(x), optimizer, devices=["@numpy", "@numpy"]
        )
    updater.update()
    updater.update()
    with pytest.raises(RuntimeError, match=f"a worker has failed: {text}"):
        updater.update()
    updater.finalize()


@pytest.mark.parametrize(
    ("optimizer", "name", "value"),
    [
        ("SGD", "lr", 0.005),
        ("Adam", "eps", 2e-8),
        ("RMSpropGraves", "eps", 4e-4),
        ("AdaDelta", "eps", 4e-6),
    ],
)
def test_hyperparameters_are_those_of_sums(optimizer, name, value):
    made = getattr(renga.optimizers, optimizer)().setup(model())
    with pytest.warns(UserWarning, match=f"optimizer.{name} is changed"):
        MultiprocessParallelUpdater(parts(), made, devices=[-1, -1])
    assert getattr(made, name) == pytest.approx(value)


@pytest.mark.parametrize(
    ("iterators", "devices", "text"),
    [
        (2, None, "expected a list or dictionary of devices, got None"),
        (2, [-1, None], "got \\[-1, None\\]"),
        (2, [-1] * 3, "expected 3 iterators"),
        (1, [-1] * 2, "expected 2 iterators"),
    ],
)
def test_refuses(iterators, devices, text):
    optimizer = renga.optimizers.SGD().setup(model())
    with pytest.raises(ValueError, match=text):
        MultiprocessParallelUpdater(parts(n=iterators), optimizer, devices=devices)


def test_tied_parameters_are_gathered_once():
    link = renga.Chain(a=L.Linear(2, 2), b=L.Linear(2, 2), e=renga.Link(w=(0, 3)))
    with link.b.init_scope():
        link.b.W = link.a.W
    values = numpy.arange(8, dtype="f")
    assert gathering.size_num_grads(link) == (8, 3)
    gathering.scatter(link, values, "data")
    numpy.testing.assert_array_equal(gathering.gather(link, "data"), values)
    numpy.testing.assert_array_equal(link.b.W.array, link.a.W.array)


def test_gradients_are_gathered_on_gpus_alone():
    link = L.Linear(2, 3)
    assert functions.size_num_grads(link) == (9, 2)
    for name in ("gather_grads", "gather_params"):
        with pytest.raises(RuntimeError, match=f"{name}: expected a link on a GPU"):
            getattr(functions, name)(link)
