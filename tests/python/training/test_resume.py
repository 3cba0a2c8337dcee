"""A run that was interrupted and resumed equals one that was not, bit for bit."""

import json

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import datasets, extensions, iterators, optimizers, serializers, training


class Network(renga.Chain):
    """Everything that carries state: random numbers, running statistics, weights."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, 12)
            self.bn = L.BatchNormalization(12)
            self.l2 = L.Linear(12, 3)

    def __call__(self, x):
        return self.l2(F.dropout(F.relu(self.bn(self.l1(x))), 0.4))


RNG = numpy.random.RandomState(0)
X = RNG.normal(size=(50, 5)).astype("f")
DATA = datasets.TupleDataset(X, (X.sum(1) > 0).astype("i") + (X[:, 0] > 1))

OPTIMIZERS = {
    "sgd": lambda: optimizers.SGD(0.1),
    "momentum": lambda: optimizers.MomentumSGD(0.1),
    "nesterov": lambda: optimizers.NesterovAG(0.1),
    "rmsprop": lambda: optimizers.RMSprop(0.01),
    "adam": lambda: optimizers.Adam(0.01, weight_decay_rate=0.1, amsgrad=True),
}
ITERATORS = {
    "serial": lambda: iterators.SerialIterator(DATA, 8),
    "threads": lambda: iterators.MultithreadIterator(DATA, 8, n_threads=2),
}


def make(out, seed, epochs, optimizer="adam", iterator="serial"):
    numpy.random.seed(seed)
    model = L.Classifier(Network())
    optimizer = OPTIMIZERS[optimizer]().setup(model)
    optimizer.add_hook(renga.optimizer_hooks.GradientNoise(0.01))
    updater = training.StandardUpdater(ITERATORS[iterator](), optimizer)
    trainer = training.Trainer(updater, (epochs, "epoch"), str(out))
    test = iterators.SerialIterator(DATA, 20, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(test, model))
    trainer.extend(extensions.LogReport(trigger=(4, "iteration")))
    attr = "alpha" if hasattr(optimizer, "alpha") else "lr"
    trainer.extend(extensions.ExponentialShift(attr, 0.7), trigger=(5, "iteration"))
    trainer.extend(extensions.MicroAverage("main/loss", "main/accuracy", "ratio"))
    return trainer


def outcome(trainer):
    """All parameters, statistics and log entries of a run, times aside."""
    model = trainer.updater.get_optimizer("main").target
    saved = serializers.DictionarySerializer()
    model.serialize(saved)
    with open(f"{trainer.out}/log") as file:
        log = json.load(file)
    for entry in log:
        del entry["elapsed_time"]
    return saved.target, log


def assert_equal(one, other):
    (arrays, log), (other_arrays, other_log) = outcome(one), outcome(other)
    assert log == other_log
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        assert array.tobytes() == other_arrays[name].tobytes(), name


def check(tmp_path, at, **kwargs):
    whole = make(tmp_path / "whole", 1, 4, **kwargs)
    whole.run()

    first = make(tmp_path / "parts", 1, 4, **kwargs)
    first.extend(extensions.snapshot(), trigger=(at, "iteration"))
    first.extend(lambda t: 1 / 0, trigger=(at + 2, "iteration"), name="interrupt")
    with pytest.raises(ZeroDivisionError):
        first.run(show_loop_exception_msg=False)

    resumed = make(tmp_path / "parts", 2, 4, **kwargs)
    resumed.extend(extensions.snapshot(autoload=True), trigger=(at, "iteration"))
    resumed.extend(lambda t: None, trigger=(at + 2, "iteration"), name="interrupt")
    resumed.run()
    assert resumed.updater.iteration == whole.updater.iteration == 25
    assert_equal(resumed, whole)


@pytest.mark.parametrize("at", [3, 7, 12, 15])
def test_resume_is_exact(tmp_path, at):
    check(tmp_path, at)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_with_every_optimizer(tmp_path, optimizer):
    check(tmp_path, 9, optimizer=optimizer)


def test_with_threads(tmp_path):
    check(tmp_path, 9, iterator="threads")


def test_loading_by_hand_is_the_same(tmp_path):
    whole = make(tmp_path / "whole", 1, 4)
    whole.run()
    first = make(tmp_path / "parts", 1, 2)
    first.extend(extensions.snapshot(), trigger=(6, "iteration"))
    first.run()
    resumed = make(tmp_path / "parts", 2, 4)
    resumed.extend(extensions.snapshot(), trigger=(6, "iteration"))
    serializers.load_npz(tmp_path / "parts" / "snapshot_iter_12", resumed)
    resumed.run()
    assert_equal(resumed, whole)


def test_another_seed_is_another_run(tmp_path):
    """What the tests above compare does depend on the random numbers."""
    runs = [make(tmp_path / str(seed), seed, 1) for seed in (1, 2)]
    for run in runs:
        run.run()
    with pytest.raises(AssertionError):
        assert_equal(*runs)
