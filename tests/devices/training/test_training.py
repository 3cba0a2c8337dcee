"""Training on CUDA devices computes what training on the CPU computes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.backends import cuda

pytestmark = pytest.mark.skipif(not cuda.available, reason="no CUDA device")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
gpu = "@cupy:0"


def example(folder, name, monkeypatch):
    """A module of the examples."""
    monkeypatch.syspath_prepend(str(EXAMPLES / folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def images(n):
    rng = numpy.random.RandomState(0)
    x = rng.standard_normal((n, 3, 32, 32)).astype("f")
    return x, (numpy.arange(n) % 10).astype("i")


def assert_same(models, others, tolerance=1e-5):
    for model, other in zip(models, others):
        expected = dict(model.namedparams())
        for name, p in other.namedparams():
            x = expected[name].array
            scale = max(abs(x).max(), 0.1)  # gradients of some biases are 0
            numpy.testing.assert_allclose(
                cuda.to_cpu(p.array), x, rtol=0, atol=tolerance * scale, err_msg=name
            )


def as_graph(network, device):
    """``network`` with a forward pass that becomes a graph on a device."""
    kind = type(network)
    if device != "@numpy":
        forward = renga.static_graph(kind.forward)
        network.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    return network


def run(updater, steps):
    observations = []
    for _ in range(steps):
        reporter = renga.Reporter()
        for optimizer in updater.get_all_optimizers().values():
            name = optimizer.target.name or "main"
            reporter.add_observer(name, optimizer.target)
        with reporter:
            updater.update()
        observations.append(
            {k: float(cuda.to_cpu(v.array)) for k, v in reporter.observation.items()}
        )
    return observations


def assert_same_reports(reports, others):
    for report, other in zip(reports, others):
        assert report.keys() == other.keys() and report
        for key, value in report.items():
            assert other[key] == pytest.approx(value, rel=1e-4, abs=1e-5), key


@pytest.mark.parametrize(
    ("dtype", "batch", "lr", "tolerance", "steps"),
    # Normalization of few pixels amplifies the roundings of float32. From the third
    # step on the network is a graph.
    [("float64", 4, 0.05, 1e-10, 4), ("float32", 16, 0.002, 1e-5, 2)],
)
def test_vgg(monkeypatch, dtype, batch, lr, tolerance, steps):
    VGG16 = example("02_parallel", "vgg", monkeypatch).VGG16

    def train(device):
        numpy.random.seed(0)
        x, t = images(2 * batch)
        model = L.Classifier(as_graph(VGG16(width=2), device)).to_device(device)
        optimizer = renga.optimizers.MomentumSGD(lr).setup(model)
        optimizer.add_hook(renga.optimizer_hooks.WeightDecay(5e-4))
        examples = list(zip(x.astype(dtype), t))
        iterator = renga.iterators.SerialIterator(examples, batch)
        updater = training.StandardUpdater(iterator, optimizer, device=device)
        return model, run(updater, steps)

    with renga.using_config("dtype", numpy.dtype(dtype)):
        model, reports = train("@numpy")
        other, its = train(gpu)
    assert_same([model], [other], tolerance)
    assert_same_reports(reports, its)


@pytest.mark.parametrize("static", [False, True])
def test_dcgan(monkeypatch, static):
    example("05_images", "data", monkeypatch)
    example("02_parallel", "dcgan", monkeypatch)
    script = example("05_images", "train_dcgan", monkeypatch)

    def train(device):
        numpy.random.seed(0)
        x, t = images(8)
        models = {
            "gen": script.Generator(2, script.HIDDEN + 10).to_device(device),
            "dis": script.Discriminator(2, colours=13).to_device(device),
        }
        for name, model in models.items():
            model.name = name
            if static:
                as_graph(model, device)
        updater = script.DCGANUpdater(
            renga.iterators.SerialIterator(list(zip(x, t)), 4),
            {name: script.make_optimizer(m, 5e-4) for name, m in models.items()},
            device=device,
        )
        return models.values(), run(updater, 4 if static else 3)

    models, reports = train("@numpy")
    others, its = train(gpu)
    assert_same(models, others, 3e-5)  # sums of what cancels, over four steps
    assert_same_reports(reports, its)


def test_language_model(monkeypatch):
    example("06_sequences", "words", monkeypatch)
    script = example("06_sequences", "train_language_model", monkeypatch)
    text = numpy.random.RandomState(0).randint(0, 20, 400).astype("i")

    def train(device):
        numpy.random.seed(0)
        model = L.Classifier(script.RNN(20, 8))
        model.compute_accuracy = False
        model.to_device(device)
        optimizer = renga.optimizers.Adam(3e-3).setup(model)
        optimizer.add_hook(renga.optimizer_hooks.GradientClipping(0.5))
        iterator = script.ParallelSequentialIterator(text, 5)
        run_ = script.BPTTUpdater(iterator, optimizer, 6, device)
        return model, run(run_, 3)

    model, reports = train("@numpy")
    other, its = train(gpu)
    assert_same([model], [other])
    assert_same_reports(reports, its)


def test_a_trainer_with_extensions(kind, tmp_path):
    def train(device, out):
        numpy.random.seed(0)
        x = numpy.random.standard_normal((24, 6)).astype("f")
        t = (x.sum(1) > 0).astype("i")
        examples = list(zip(x, t))
        model = L.Classifier(L.Linear(6, 2)).to_device(device)
        optimizer = renga.optimizers.Adam().setup(model)
        iterator = renga.iterators.SerialIterator(examples, 8)
        updater = training.StandardUpdater(iterator, optimizer, device=device)
        trainer = training.Trainer(updater, (2, "epoch"), out=out)
        test = renga.iterators.SerialIterator(examples, 8, repeat=False, shuffle=False)
        ext = training.extensions
        trainer.extend(ext.Evaluator(test, model, device=device))
        trainer.extend(ext.LogReport())
        trainer.extend(ext.FailOnNonNumber())
        trainer.extend(ext.ParameterStatistics(model), trigger=(1, "iteration"))
        trainer.extend(ext.VariableStatisticsPlot(model, trigger=(9, "epoch")))
        trainer.extend(ext.snapshot())
        trainer.run()
        return trainer.get_extension("LogReport").log, model

    log, model = train("@numpy", tmp_path / "cpu")
    other_log, other = train(gpu, tmp_path / "gpu")
    assert_same([model], [other])
    for entry, its in zip(log, other_log):
        for key in entry.keys() - {"elapsed_time"}:
            assert its[key] == pytest.approx(entry[key], rel=1e-4, abs=1e-5), key
    # A snapshot of one device is loaded on the other.
    renga.serializers.load_npz(
        tmp_path / "gpu" / "snapshot_iter_6", model, "updater/model:main/"
    )
    assert_same([model], [other], 0)


@pytest.mark.parametrize("static", [False, True])
def test_data_parallel_training_over_nccl(monkeypatch, static):
    """The five-line change: two ranks with a device each are one with both batches.

    From the third step on, a static network is a graph.
    """
    native = pytest.importorskip("renga._nccl_standin")
    from renga.communicators import local
    from renga.communicators.nccl.nccl_communicator import NcclCollectives
    from renga.distributed import create_multi_node_optimizer, scatter_dataset

    if cuda.load_plugin().count() < 2:
        pytest.skip("one device")
    monkeypatch.setitem(sys.modules, "renga._communicators_nccl", native)
    x, t = images(16)
    x = x[:, :, :8, :8].copy()

    class CNN(renga.Chain):
        def __init__(self):
            super().__init__()
            rng = numpy.random.RandomState(0)
            W = renga.initializers.HeNormal(rng=rng)
            with self.init_scope():
                self.conv = L.Convolution2D(3, 4, 3, initialW=W)
                self.fc = L.Linear(4 * 9, 10, initialW=W)

        def forward(self, x):
            return self.fc(F.max_pooling_2d(F.relu(self.conv(x)), 2))

    def make(optimizer, device, static=False):
        network = as_graph(CNN(), device) if static else CNN()
        model = L.Classifier(network).to_device(device)
        return model, optimizer.setup(model)

    def batch(examples, device):
        return renga.dataset.concat_examples(examples, device)

    def train(comm):
        comm = NcclCollectives(comm.native)
        device = renga.get_device(f"@cupy:{comm.intra_rank}")
        device.use()
        optimizer = create_multi_node_optimizer(renga.optimizers.MomentumSGD(0.1), comm)
        model, optimizer = make(optimizer, device, static)
        examples = scatter_dataset(list(zip(x, t)), comm)
        for i in range(0, 8, 2):
            optimizer.update(model, *batch(examples[i : i + 2], device))
        device.device.synchronize()
        return model

    model, optimizer = make(renga.optimizers.MomentumSGD(0.1), gpu)
    for i in range(0, 8, 2):
        whole = [(x[j], t[j]) for j in [i, i + 1, 8 + i, 9 + i]]
        optimizer.update(model, *batch(whole, gpu))
    model.to_device("@numpy")
    for other in local.run(train, ranks=2):
        assert_same([model], [other])


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
def test_parameters_that_are_not_finite_end_training(kind, value, tmp_path):
    model = L.Linear(3, 2).to_device(gpu)
    optimizer = renga.optimizers.SGD(1).setup(model)
    examples = [numpy.full(3, v, "f") for v in (1, 1, value)]
    iterator = renga.iterators.SerialIterator(examples, 1, shuffle=False)
    updater = training.StandardUpdater(
        iterator, optimizer, device=gpu, loss_func=lambda x: F.sum(model(x))
    )
    trainer = training.Trainer(updater, (4, "iteration"), out=tmp_path)
    trainer.extend(training.extensions.FailOnNonNumber(), trigger=(1, "iteration"))
    with pytest.raises(RuntimeError, match="/W of optimizer 'main' .* iteration 3"):
        trainer.run()


def test_debug_mode_names_the_function_that_computes_nan(kind):
    x = renga.Variable(renga.get_device(gpu).send(-numpy.ones(3, "f")))
    with renga.using_config("debug", True):
        F.exp(x)
        with pytest.raises(RuntimeError, match="log: NaN in what it computed"):
            F.log(x)
