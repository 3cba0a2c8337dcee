"""Pipelines copied, averaged, saved and loaded, against one process."""

import copy
import io

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.optimizers import Adam, MomentumSGD
from renga.serializers import load_npz, save_npz
from renga.training.extensions import ExponentialMovingAverage
from tests.files import saved
from tests.parallel.pipeline.programs import (
    Layers,
    assert_close,
    batches,
    pipeline,
    serial,
    whole,
)

DATA = batches((8, 8, 8, 8))


def values_of(model):
    return {path: np.array(p.array) for path, p in model.namedparams()}


def other():
    return Layers(seed=4)


def test_copyparams(several_ranks):
    """From a model on every rank, on rank 0 alone, and from pipelines."""
    expected = values_of(other())

    def run(comm):
        for source in ("model", "rank 0", "pipeline"):
            model, optimizer = pipeline(Layers, comm, DATA)
            if source == "pipeline":
                model.copyparams(pipeline(other, comm, DATA)[0])
            elif source == "model" or comm.rank == 0:
                model.copyparams(other())
            assert_close(whole(model), expected)
        return True

    assert all(several_ranks(run))


def copied(child, source):
    child.copyparams(source)


def copied_from(child, source):
    source.copyparams(child)


def loaded(child, source):
    load_npz(file_of(source), child)


def written(child, source):
    file_of(child)


def file_of(link):
    file = io.BytesIO()
    save_npz(file, link)
    file.seek(0)
    return file


@pytest.mark.parametrize("change", [copied, copied_from, loaded, written])
@pytest.mark.parametrize("path", ["", "b"])
def test_links_of_the_model_are_copied_and_loaded_with_all_stages(
    some_ranks, change, path
):
    """On every rank, as one that has the link would go on alone."""

    def part(model):
        return getattr(model, path) if path else model

    def run(comm):
        model, _ = pipeline(Layers, comm, DATA)
        before = whole(model)
        child, source = part(model.model), part(other())
        refused = "(copyparams|serialize): expected all parameters of a Pipeline"
        with pytest.raises(RuntimeError, match=refused):
            change(child, source)
        assert_close(whole(model), before)
        with model.gathered_parameters():
            change(child, source)
        expected = values_of(model_with(path, change))
        assert_close(whole(model), expected)
        return True

    assert all(some_ranks(run))


def model_with(path, change):
    model, changed = Layers(), other()
    if change in (copied, loaded):
        if path:
            getattr(model, path).copyparams(getattr(changed, path))
        else:
            model = changed
    return model


def test_copyparams_of_a_pipeline_that_is_cut_elsewhere(some_ranks):
    def run(comm):
        if comm.size > 2:
            return True
        model, _ = pipeline(Layers, comm, DATA, stages=["/b"])
        model.copyparams(pipeline(other, comm, DATA, stages=["/d"])[0])
        assert_close(whole(model), values_of(other()))
        return True

    assert all(some_ranks(run))


class Normalized(Layers):
    def __init__(self, mean=0):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.normalization = L.BatchNormalization(8)
        self.normalization.avg_mean[...] = mean

    def predict(self, x):
        return self.d(self.normalization(F.tanh(self.a(x))))


def test_copyparams_with_and_without_statistics(some_ranks):
    def run(comm):
        model, _ = pipeline(Normalized, comm, DATA)
        mean = model.model.normalization.avg_mean
        model.copyparams(Normalized(mean=3), copy_persistent=False)
        np.testing.assert_array_equal(mean, 0)
        model.copyparams(Normalized(mean=3))
        np.testing.assert_array_equal(mean, 3)
        return True

    assert all(some_ranks(run))


def test_deepcopy(some_ranks):
    """A pipeline of its own: the copy stays, and trains as well."""
    expected = serial(Layers, DATA, 2)

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, 2)
        copied = copy.deepcopy(model)
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
        assert_close(whole(copied), values_of(Layers()))
        assert_close(whole(model), expected)
        optimizer = MomentumSGD(0.1).setup(copied)
        for batch in DATA:
            copied.train_batch(optimizer, copied.model, batch)
        assert_close(whole(copied), expected)
        return True

    assert all(some_ranks(run))


def test_moving_average(some_ranks):
    """Its model is evaluated and saved as that of one process."""
    x, t = DATA[0]
    means, outputs = None, []
    one = Layers()
    optimizer = MomentumSGD(0.1).setup(one)
    for batch in DATA:
        optimizer.update(one, *batch)
        now = values_of(one)
        means = now if means is None else {k: (means[k] + now[k]) / 2 for k in now}
        averaged = Layers()
        for path, param in averaged.namedparams():
            param.array[...] = means[path]
        outputs.append(float(averaged(x, t).array))

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, 2)
        average = ExponentialMovingAverage(model, 0.5)
        found = []
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
            average()
            found.append(float(average.model(x, t).array))
        np.testing.assert_allclose(found, outputs, 1e-9)
        return saved(average.model)

    for file in some_ranks(run):
        assert_close(file, {path[1:]: x for path, x in means.items()})


@pytest.fixture(scope="module")
def halfway():
    """Files of one process after two batches, and its parameters after all."""
    model = Layers()
    optimizer = Adam(0.01).setup(model)
    files = {}
    for i, batch in enumerate(DATA):
        if i == 2:
            for name, target in (("model", model), ("optimizer", optimizer)):
                files[name] = io.BytesIO()
                renga.serializers.save_npz(files[name], target)
        optimizer.update(model, *batch)
    return {k: f.getvalue() for k, f in files.items()}, values_of(model)


@pytest.mark.parametrize("in_context", [False, True])
@pytest.mark.parametrize("loader", ["all", "rank 0"])
def test_ranks_that_load(some_ranks, halfway, loader, in_context):
    """What rank 0 alone has loaded, states too, reaches the stages of all ranks."""
    files, expected = halfway

    def load(comm, model, optimizer):
        if loader == "all" or comm.rank == 0:
            load_npz(io.BytesIO(files["model"]), model)
            load_npz(io.BytesIO(files["optimizer"]), optimizer)

    def run(comm):
        model, _ = pipeline(other, comm, DATA, 2)
        optimizer = Adam(0.01).setup(model)
        if in_context:
            with model.gathered_parameters(optimizer):
                load(comm, model, optimizer)
        else:
            load(comm, model, optimizer)
        for batch in DATA[2:]:
            model.train_batch(optimizer, model.model, batch)
        assert optimizer.t == 4
        return whole(model)

    for found in some_ranks(run):
        assert_close(found, expected)


def test_files_of_an_optimizer_have_the_states_of_all_stages(several_ranks, halfway):
    """Without a context."""
    with np.load(io.BytesIO(halfway[0]["optimizer"])) as arrays:
        expected = dict(arrays)

    def run(comm):
        model, _ = pipeline(Layers, comm, DATA, 2)
        optimizer = Adam(0.01).setup(model)
        for batch in DATA[:2]:
            model.train_batch(optimizer, model.model, batch)
        return saved(optimizer)

    for found in several_ranks(run):
        assert_close(found, expected)


class Scaled(Layers):
    """With parameters of one element, and of none."""

    def __init__(self, seed=0):
        super().__init__(seed)
        with self.init_scope():
            self.scale = renga.Parameter(np.array(1.5))
            self.nothing = renga.Parameter(np.zeros((0, 3)))

    def predict(self, x):
        return super().predict(x) * self.scale + renga.functions.sum(self.nothing)


def test_parameters_without_axes_and_without_elements(some_ranks):
    expected = serial(Scaled, DATA, 2)

    def run(comm):
        model, optimizer = pipeline(Scaled, comm, DATA, 2)
        for batch in DATA:
            model.train_batch(optimizer, model.model, batch)
        return saved(model), saved(optimizer)

    one = Scaled()
    optimizer = MomentumSGD(0.1).setup(one)
    optimizer.update(one, *DATA[0])
    shapes = {name: x.shape for name, x in saved(optimizer).items()}
    for found, states in some_ranks(run):
        assert_close(found, {path[1:]: x for path, x in expected.items()})
        assert {name: x.shape for name, x in states.items()} == shapes


def test_average_of_a_model_that_has_been_loaded(some_ranks, halfway):
    """Made before the first update after it."""
    load_npz(io.BytesIO(halfway[0]["model"]), one := Layers())
    expected = values_of(one)

    def run(comm):
        model, _ = pipeline(other, comm, DATA, 2)
        if comm.rank == 0:
            load_npz(io.BytesIO(halfway[0]["model"]), model)
        average = ExponentialMovingAverage(model, 0.5)
        average()
        assert_close(whole(average.model), expected)
        assert_close(whole(model), expected)
        return True

    assert all(some_ranks(run))


@pytest.mark.parametrize("schedule", ["1f1b", "pipedream"])
def test_parameters_that_are_set_later_are_refused(some_ranks, schedule):
    """No stage has them."""

    def run(comm):
        model, optimizer = pipeline(Layers, comm, DATA, 2, schedule=schedule)
        model.train_batch(optimizer, model.model, DATA[0])
        model.drain()
        before = [(param, param.array.copy()) for param in model.params()]
        del model.model.d
        with model.model.init_scope():
            model.model.d = L.Linear(8, 5)
        for use in (
            lambda: optimizer.setup(model),
            lambda: model.train_batch(optimizer, model.model, DATA[1]),
        ):
            with pytest.raises(ValueError, match="stages, got another one, /d"):
                use()
        for param, array in before:
            np.testing.assert_array_equal(param.array, array)
        return True

    assert all(some_ranks(run))


class Keeping(Layers):
    """A link has a state, and the model keeps its loss."""

    def __init__(self, seed=0):
        super().__init__(seed)
        with self.init_scope(), renga.using_config("dtype", np.float64):
            self.lstm = L.LSTM(8, 8)
        for i, (_, param) in enumerate(sorted(self.lstm.namedparams())):
            param.array[...] = np.random.RandomState(i).normal(0, 0.3, param.shape)

    def predict(self, x):
        return self.d(F.tanh(self.c(self.lstm(F.tanh(self.a(x))))))

    def forward(self, x, t):
        self.loss = super().forward(x, t)
        return self.loss


def test_an_average_that_begins_later(some_ranks):
    """Other ranks' states and losses have no elements to copy."""

    def run(comm):
        model, optimizer = pipeline(Keeping, comm, DATA)
        model.train_batch(optimizer, model.model, DATA[0])
        average = ExponentialMovingAverage(model, 0.5)
        average()
        assert_close(whole(average.model), whole(model))
        with pytest.raises(RuntimeError, match=r"Keeping.loss: expected it to be read"):
            float(model.model.loss.array)
        return True

    assert all(some_ranks(run))
