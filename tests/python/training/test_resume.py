"""A resumed run has bit-identical results to an uninterrupted one."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import iterators, optimizers, training
from renga.training import extensions

ITERATIONS = 9
SIZE, BATCH = 22, 4

rng = numpy.random.default_rng(0)
DATA = renga.datasets.TupleDataset(
    rng.normal(size=(SIZE, 1, 6, 6)).astype("f4"), rng.integers(0, 3, SIZE).astype("i4")
)


class Model(renga.Chain):
    """A layer of each kind that has a state or draws random numbers."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, 4, 3)
            self.bn = L.BatchNormalization(4)
            self.linear = L.Linear(None, 3)

    def forward(self, x):
        h = F.dropout(F.relu(self.bn(self.conv(x))), 0.3)
        return self.linear(F.gaussian(h, 0 * h - 4))


OPTIMIZERS = {
    "Adam": lambda: optimizers.Adam(amsgrad=True),
    "MomentumSGD": optimizers.MomentumSGD,
    "SMORMS3": optimizers.SMORMS3,
    "RMSpropGraves": optimizers.RMSpropGraves,
}


def make(folder, optimizer, kind, stop):
    numpy.random.seed(1)
    model = L.Classifier(Model())
    optimizer = OPTIMIZERS[optimizer]().setup(model)
    optimizer.add_hook(renga.optimizer_hooks.WeightDecay(1e-3))
    optimizer.add_hook(renga.optimizer_hooks.GradientNoise(1e-3))
    iterator = kind(DATA, BATCH)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (stop, "iteration"), out=folder)
    trainer.extend(extensions.LogReport(trigger=(2, "iteration")))
    rate = "alpha" if hasattr(optimizer, "alpha") else "lr"
    trainer.extend(extensions.ExponentialShift(rate, 0.7), trigger=(1, "epoch"))
    trainer.extend(extensions.snapshot(autoload=True), trigger=(1, "iteration"))
    return trainer, model, iterator


def bits(model):
    return {name: param.array.tobytes() for name, param in model.namedparams()} | {
        "mean": model.predictor.bn.avg_mean.tobytes(),
        "var": model.predictor.bn.avg_var.tobytes(),
    }


def run(*args):
    trainer, model, iterator = make(*args)
    trainer.run()
    iterator.finalize()
    return bits(model), trainer.get_extension("LogReport").log


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_resume_after_any_iteration(optimizer, tmp_path):
    serial = iterators.SerialIterator
    uninterrupted, log = run(tmp_path / "uninterrupted", optimizer, serial, ITERATIONS)
    stops = range(1, ITERATIONS) if optimizer == "Adam" else (4,)
    for stop in stops:
        folder = tmp_path / str(stop)
        part, _ = run(folder, optimizer, serial, stop)
        assert part != uninterrupted
        # The snapshot restores the generator, whatever is drawn in between.
        numpy.random.uniform(size=3)
        resumed, resumed_log = run(folder, optimizer, serial, ITERATIONS)
        assert resumed == uninterrupted
        for entry, expected in zip(resumed_log, log):
            assert entry["main/loss"] == expected["main/loss"]


def test_with_examples_read_ahead(tmp_path):
    uninterrupted, _ = run(
        tmp_path / "serial", "Adam", iterators.SerialIterator, ITERATIONS
    )
    for kind in (iterators.MultithreadIterator, iterators.MultiprocessIterator):
        folder = tmp_path / kind.__name__
        run(folder, "Adam", kind, 5)
        assert run(folder, "Adam", kind, ITERATIONS)[0] == uninterrupted
