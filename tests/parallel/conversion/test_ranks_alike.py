"""What has to be the same on all ranks of a model: random numbers and loaded files."""

import io

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import serializers
from renga.communicators import local
from renga.parallel.conversion.replacement import copy_with_replacements
from renga.parallel.parallelize import parallelize
from renga.parallel.samples.strategy import SampleRun
from renga.utils.type_check import InvalidType


class Noisy(renga.Chain):
    """Random numbers of its input, between links and of its output."""

    def __init__(self, noise):
        super().__init__()
        random = np.random.RandomState(0)
        self.noise = noise
        with self.init_scope():
            self.a = L.Convolution2D(3, 4, 3, pad=1, initialW=_init(random))
            self.b = L.Convolution2D(4, 2, 3, pad=1, initialW=_init(random))

    def forward(self, x):
        return self.noise(self.b(self.noise(F.tanh(self.a(self.noise(x))))))


class Tokens(renga.Chain):
    def __init__(self, noise):
        super().__init__()
        self.noise = noise
        random = np.random.RandomState(0)
        with self.init_scope():
            self.a = L.Linear(4, 4, initialW=_init(random))
            self.b = L.Linear(4, 3, initialW=_init(random))

    def forward(self, x):
        h = self.noise(F.tanh(self.a(self.noise(x), n_batch_axes=2)))
        return self.b(h, n_batch_axes=2)


def _init(random):
    def fill(array):
        array[...] = random.normal(0, 0.5, array.shape)

    return fill


IMAGES = np.random.RandomState(1).normal(size=(4, 3, 6, 5)).astype("f")
TEXTS = np.random.RandomState(1).normal(size=(2, 6, 4)).astype("f")
NOISES = {
    "dropout": lambda h: F.dropout(h, 0.4),
    "gaussian": lambda h: h + F.gaussian(h * 0, h * 0),
    "rrelu": F.rrelu,
    "zoneout": lambda h: F.zoneout(h, 2 * h),
}


def train(model, x, disturb=lambda: None):
    """Losses and parameters, where rank 0 alone draws other numbers in between."""
    optimizer = renga.optimizers.SGD(0.1).setup(model)
    losses = []
    for _ in range(3):
        loss = F.mean(F.dropout(model(x)) ** 2)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
        disturb()
    saved = {}
    serializers.DictionarySerializer(saved).save(model)
    return [np.array(losses), *(np.array(saved[name]) for name in sorted(saved))]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
def test_replicated_activations_have_the_noise_of_rank_0(
    ranks_with_own_random_numbers, noise, has_example
):
    model = Noisy(NOISES[noise])
    np.random.seed(3)
    np.random.rand(2)
    expected = train(Noisy(NOISES[noise]), IMAGES, np.random.rand)

    def act(comm):
        new = parallelize(model, comm, "channel", *([IMAGES] if has_example else []))
        np.random.seed(3)
        if comm.rank == 0:
            np.random.rand(2)
        else:
            np.random.rand(comm.rank)
        return train(new, IMAGES, np.random.rand if comm.rank == 0 else lambda: None)

    results = ranks_with_own_random_numbers(act)
    for found in results:
        for value, first, serial in zip(found, results[0], expected):
            np.testing.assert_array_equal(value, first)
            # With an example some activations are sharded, and draw their own numbers.
            if not has_example or len(results) == 1:
                np.testing.assert_allclose(value, serial, 1e-4, 1e-5)


def test_generators_go_on_as_that_of_rank_0(
    ranks_with_own_random_numbers,
):
    """Where others have drawn other numbers before; shards have the whole's numbers."""

    def weights(model):
        model(TEXTS[0])
        saved = {}
        serializers.DictionarySerializer(saved).save(model)
        return saved

    np.random.seed(3)
    expected = weights(renga.Sequential(L.Linear(None, 5)))

    def act(comm):
        np.random.seed(3)
        np.random.rand(comm.rank)
        model = parallelize(renga.Sequential(L.Linear(None, 5)), comm, "channel")
        drawn = np.random.rand()
        np.random.seed(3)
        return weights(model), drawn

    np.random.seed(3)
    first = np.random.rand()
    for found, drawn in ranks_with_own_random_numbers(act):
        assert drawn == first
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("way", ["spatial", "sequence", "samples"])
def test_ranks_stay_alike_though_one_draws_other_numbers(
    ranks_with_own_random_numbers, way
):
    x = TEXTS if way == "sequence" else IMAGES
    model = (Tokens if way == "sequence" else Noisy)(NOISES["dropout"])

    def act(comm):
        if way == "samples":
            run = SampleRun.create(comm, comm.size, (False,))
            new = copy_with_replacements(model, {}, run.class_of)
        else:
            new = parallelize(model, comm, way)
        return train(new, x, np.random.rand if comm.rank == 0 else lambda: None)

    results = ranks_with_own_random_numbers(act)
    for found in results:
        for value, first in zip(found, results[0]):
            np.testing.assert_array_equal(value, first)


@pytest.mark.parametrize("strategy", ["channel", "spatial"])
def test_a_model_that_some_ranks_have_loaded(strategy):
    file, other = io.BytesIO(), Noisy(F.tanh)
    other.a.W.array[...] += 1
    loaded = other(IMAGES).array
    serializers.save_npz(file, other)
    content, broken = file.getvalue(), io.BytesIO()
    serializers.save_npz(broken, renga.Chain(a=L.Linear(2, 2)))

    def act(comm):
        model = parallelize(Noisy(F.tanh), comm, strategy)
        if comm.rank == 1:  # a failed load changes nothing
            with pytest.raises((ValueError, InvalidType)):
                serializers.load_npz(io.BytesIO(broken.getvalue()), model)
        model(IMAGES)
        if comm.rank == 0:
            serializers.load_npz(io.BytesIO(content), model)
        np.testing.assert_allclose(model(IMAGES).array, loaded, 1e-4, 1e-5)
        if comm.rank == 2:
            model.copyparams(Noisy(F.sin))
        with pytest.raises(RuntimeError, match=r"got \[.*\] links loaded on ranks 0"):
            model(IMAGES)
        if comm.rank != 2:
            model.copyparams(Noisy(F.sin))
        return model(IMAGES).array

    for y in local.run(act, ranks=3):
        np.testing.assert_allclose(y, Noisy(F.tanh)(IMAGES).array, 1e-4, 1e-5)


def test_values_that_are_broadcast_after_one_rank_has_loaded_them():
    serial = Noisy(F.tanh)
    serial.a.W.array[...] += 1

    def act(comm):
        model = parallelize(Noisy(F.tanh), comm, "spatial")
        if comm.rank == 0:
            model.copyparams(serial)
        comm.bcast_data(model)
        return model(IMAGES).array, model(IMAGES).array

    for ys in local.run(act, ranks=2):
        np.testing.assert_allclose(ys, [serial(IMAGES).array] * 2, 1e-4, 1e-5)
