"""Pipelines under a Trainer: snapshots, evaluation, and with data parallelism."""

import io
import random

import numpy as np
import pytest

import renga
from renga import training
from renga.distributed import parallelize
from renga.optimizers import Adam, MomentumSGD
from renga.parallel.pipeline import measurement
from renga.pipeline import Pipeline, PipelineUpdater
from renga.training import extensions
from renga.variable import as_array
from tests.parallel.pipeline import networks, oracles
from tests.parallel.pipeline.programs import Layers, assert_close, batches, trained

X, T = (np.concatenate(arrays) for arrays in zip(*networks.images()))


def trainer_of(comm, epochs, optimizer, **options):
    """A trainer of a pipeline, whose batches come in the order of the data."""
    data = renga.datasets.TupleDataset(X, T)
    iterator = renga.iterators.SerialIterator(data, 8, shuffle=False)
    model = Pipeline(networks.Residual(), comm, X[:4], T[:4], **options)
    updater = PipelineUpdater(iterator, optimizer.setup(model))
    return training.Trainer(updater, (epochs, "epoch")), model


OPTIONS = [
    {"micro_batches": 2},
    {"schedule": "pipedream", "weights": "stash"},
    {"schedule": "pipedream", "weights": "spectrain"},
]


@pytest.mark.parametrize(
    "options,make",
    [*((options, MomentumSGD) for options in OPTIONS), (OPTIONS[0], Adam)],
)
def test_training_resumes_bit_by_bit(some_ranks, options, make):
    """From a file of a whole model, which a serial program loads too."""

    def run(comm):
        straight, model = trainer_of(comm, 2, make(), **options)
        straight.run()
        file = io.BytesIO()
        renga.serializers.save_npz(file, straight)
        first, _ = trainer_of(comm, 1, make(), **options)
        first.run()
        half = io.BytesIO()
        renga.serializers.save_npz(half, first)
        half.seek(0)
        second, resumed = trainer_of(comm, 2, make(), **options)
        renga.serializers.load_npz(half, second)
        second.run()
        return oracles.arrays(model), oracles.arrays(resumed), file.getvalue()

    results = some_ranks(run)
    whole, again = {}, {}
    for straight, resumed, _ in results:
        whole.update(straight)
        again.update(resumed)
    if options.get("schedule") != "pipedream":  # which completes its batches first
        assert sorted(again) == sorted(whole)
        for path, x in whole.items():
            np.testing.assert_array_equal(again[path], x, err_msg=path)
    for _, _, file in results:
        serial = networks.Residual()
        optimizer = make().setup(serial)
        for what, target in (("model", serial), ("optimizer", optimizer)):
            renga.serializers.load_npz(
                io.BytesIO(file), target, f"updater/{what}:main/"
            )
        for path, param in serial.namedparams():
            np.testing.assert_array_equal(param.array, whole[path], err_msg=path)
        assert optimizer.t == 8 and serial.c0.W.update_rule.t == 8


def test_a_file_loads_on_other_numbers_of_stages(ranks):
    """A serial program's file, in a pipeline of any number of ranks."""
    serial = networks.Residual(seed=5)
    file = io.BytesIO()
    renga.serializers.save_npz(file, serial)

    def run(comm):
        model = Pipeline(networks.Residual(), comm, X[:4], T[:4])
        renga.serializers.load_npz(io.BytesIO(file.getvalue()), model)
        return oracles.arrays(model)

    for found in ranks(run):
        for path, x in found.items():
            expected = dict(serial.namedparams())[path].array
            np.testing.assert_array_equal(x, expected)


def test_evaluator_and_log(some_ranks):
    """Observations are those of a single process, on every rank."""
    data = renga.datasets.TupleDataset(X, T)

    def observe(trainer, model):
        iterator = renga.iterators.SerialIterator(data, 8, repeat=False, shuffle=False)
        trainer.extend(extensions.Evaluator(iterator, model))
        log = []

        @training.make_extension(trigger=(1, "epoch"), priority=-1)
        def record(trainer):
            log.append({k: float(as_array(v)) for k, v in trainer.observation.items()})

        trainer.extend(record)
        trainer.run()
        return log

    def run(comm):
        trainer, model = trainer_of(comm, 2, MomentumSGD(0.01), micro_batches=2)
        return observe(trainer, model)

    serial = networks.Residual()
    iterator = renga.iterators.SerialIterator(data, 8, shuffle=False)
    optimizer = MomentumSGD(0.01).setup(serial)
    updater = training.StandardUpdater(iterator, optimizer)
    expected = observe(training.Trainer(updater, (2, "epoch")), serial)
    for log in some_ranks(run):
        assert [sorted(row) for row in log] == [sorted(row) for row in expected]
        for row, other in zip(log, expected):
            for key, value in row.items():
                np.testing.assert_allclose(value, other[key], 1e-3, 1e-6, err_msg=key)


def test_with_data_parallelism(several_ranks, monkeypatch):
    """A grid of data × stage ranks equals a process with the whole batch."""
    measure = measurement.measure

    def measure_with_noise(*args, **options):
        costs = measure(*args, **options)
        for segment in costs.segments:
            segment.forward = random.uniform(1, 9)
        return costs

    monkeypatch.setattr(measurement, "measure", measure_with_noise)
    batches = networks.images(n=8)
    expected = oracles.accumulated(networks.Residual(), MomentumSGD(0.05), batches, 1)

    def run(comm):
        if comm.size % 2:
            return {}
        groups = renga.distributed.create_groups(comm, stage=2)
        share = 8 // groups.data.size
        mine = slice(groups.data.rank * share, (groups.data.rank + 1) * share)
        x, t = batches[0]
        model = Pipeline(
            networks.Residual(), groups.stage, x[:2], t[:2], micro_batches=2
        )
        cuts = [stage.links[0] for stage in model.partition.stages[1:]]
        assert groups.data.allgather_obj(cuts) == [cuts] * groups.data.size
        optimizer = renga.distributed.create_multi_node_optimizer(
            MomentumSGD(0.05), groups.data
        ).setup(model)
        for x, t in batches:
            model.train_batch(optimizer, model.model, (x[mine], t[mine]))
        return oracles.arrays(model)

    for found in several_ranks(run):
        for path, x in found.items():
            np.testing.assert_allclose(x, expected[path], 1e-4, 1e-6, err_msg=path)


def test_with_channel_parallelism(several_ranks):
    """A grid of channel × stage ranks, whose file is that of a single process."""
    batches = networks.images()
    expected = oracles.accumulated(networks.Residual(), MomentumSGD(0.05), batches, 2)

    def run(comm):
        if comm.size % 2:
            return None
        groups = renga.distributed.create_groups(comm, channel=comm.size // 2, stage=2)
        parts = [x[:4] for x in batches[0]]
        serial = networks.Residual()
        sharded = parallelize(serial, groups.channel, "channel", *parts)
        options = {"micro_batches": 2, "stages": ["/d0"]}
        model = Pipeline(sharded, groups.stage, *parts, **options)
        optimizer = MomentumSGD(0.05).setup(model)
        for batch in batches:
            model.train_batch(optimizer, model.model, batch)
        file = io.BytesIO()
        renga.serializers.save_npz(file, model)
        return file.getvalue()

    for file in several_ranks(run):
        if file is None:
            continue
        found = networks.Residual(seed=1)
        renga.serializers.load_npz(io.BytesIO(file), found)
        for path, x in oracles.arrays(found).items():
            np.testing.assert_allclose(x, expected[path], 1e-4, 1e-6, err_msg=path)


def test_gradient_clipping_by_the_norm_over_all_stages(some_ranks):
    batches = networks.images()
    hook = renga.optimizer_hooks.GradientClipping

    def clipped(model):
        optimizer = MomentumSGD(0.05).setup(model)
        optimizer.add_hook(hook(0.1))
        return optimizer

    serial = networks.Residual()
    optimizer = clipped(serial)
    for batch in batches:
        optimizer.update(serial, *batch)

    def run(comm):
        model = Pipeline(networks.Residual(), comm, X[:4], T[:4], micro_batches=2)
        optimizer = clipped(model)
        for batch in batches:
            model.train_batch(optimizer, model.model, batch)
        stream = Pipeline(networks.Residual(), comm, X, T, schedule="pipedream")
        if comm.rank == comm.size - 1:
            with pytest.raises(RuntimeError, match="expected a schedule that flushes"):
                stream.sum_over_stages(1.0)
        return oracles.arrays(model)

    for found in some_ranks(run):
        for path, x in found.items():
            expected = dict(serial.namedparams())[path].array
            np.testing.assert_allclose(x, expected, 1e-4, 1e-6, err_msg=path)


def test_an_optimizer_of_another_link_is_refused():
    iterator = renga.iterators.SerialIterator([(X[0], T[0])], 1)
    optimizer = MomentumSGD().setup(networks.Residual())
    with pytest.raises(TypeError, match="PipelineUpdater: expected an optimizer of a"):
        PipelineUpdater(iterator, optimizer)


class Late(Layers):
    """A link and a parameter are made in the first call."""

    def predict(self, x):
        if not hasattr(self, "late"):
            random = np.random.RandomState(4)
            with self.init_scope():
                self.late = renga.links.Linear(8, 8, initialW=random.randn(8, 8))
                self.bias = renga.Parameter(random.randn(8))
        h = self.late(renga.functions.tanh(self.b(self.a(x))))
        return self.d(self.c(renga.functions.bias(h, self.bias)))


def test_links_that_the_first_call_makes(some_ranks):
    data = batches()
    with renga.using_config("dtype", np.float64):
        model, optimizer = Late(), MomentumSGD(0.1)
        model(*data[0])
        optimizer.setup(model)
        for batch in data:
            optimizer.update(model, *batch)

    def run(comm):
        with renga.using_config("dtype", np.float64):
            return trained(Late, comm, data)

    for found in some_ranks(run):
        assert_close(found, {path: p.array for path, p in model.namedparams()})
