"""Rules without a state: before the first update, and of parameters that are frozen."""

import io

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizers, serializers
from renga.serializers.npz import NpzDeserializer, serialize
from tests.catalogue import OPTIMIZERS

FORMATS = {
    "npz": (serializers.save_npz, serializers.load_npz),
    "hdf5": (serializers.save_hdf5, serializers.load_hdf5),
}
X = numpy.random.default_rng(0).normal(size=(5, 3))


class Model(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, 4)
            self.b = L.Linear(4, 2)
            self.scale = renga.Parameter(numpy.array(0.5))
            self.nothing = renga.Parameter(numpy.zeros((0, 3)))

    def forward(self, x):
        return F.sum(self.b(F.tanh(self.a(x))) ** 2) * self.scale + F.sum(self.nothing)


def make(rule, seed):
    numpy.random.seed(seed)
    with renga.using_config("dtype", numpy.float64):
        model = Model()
    return model, rule().setup(model)


def freeze(model):
    model.a.disable_update()
    model.scale.update_rule.enabled = False


def assert_same(one, other):
    one, other = serialize(one), serialize(other)
    assert one.keys() == other.keys()
    for name in one:
        numpy.testing.assert_array_equal(one[name], other[name], name)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_with_frozen_parameters(name, kind):
    pytest.importorskip("h5py")
    save, load = FORMATS[kind]
    for updates in (0, 2):
        model, optimizer = make(OPTIMIZERS[name].kind, 0)
        freeze(model)
        for _ in range(updates):
            optimizer.update(model, X)
        files = io.BytesIO(), io.BytesIO()
        for file, part in zip(files, (model, optimizer)):
            save(file, part)
            file.seek(0)
        optimizer.update(model, X)
        # The parameters of the resumed run have been updated before, and are frozen
        # then.
        resumed = make(OPTIMIZERS[name].kind, 1)
        if updates:
            resumed[1].update(resumed[0], X)
        freeze(resumed[0])
        for file, part in zip(files, resumed):
            load(file, part)
        resumed[1].update(resumed[0], X)
        assert_same(optimizer, resumed[1])
        assert_same(model, resumed[0])


def test_a_layer_trained_after_it_was_loaded_frozen_has_states_of_its_shape():
    model, optimizer = make(optimizers.Adam, 0)
    freeze(model)
    optimizer.update(model, X)
    saved = serialize(optimizer)
    model, optimizer = make(optimizers.Adam, 0)
    NpzDeserializer(saved).load(optimizer)
    optimizer.update(model, X)
    rule = model.a.W.update_rule
    assert rule.state["m"].shape == (4, 3) and rule.t == 1


@pytest.mark.parametrize("strict", [True, False])
def test_a_file_from_before_the_first_update_takes_the_states_away(strict):
    saved = serialize(make(optimizers.Adam, 0)[1])
    model, optimizer = make(optimizers.Adam, 0)
    optimizer.update(model, X)
    NpzDeserializer(saved, strict=strict).load(optimizer)
    assert all(param.update_rule.state is None for param in model.params())
    assert_same(optimizer, make(optimizers.Adam, 0)[1])


@pytest.mark.parametrize("updates", [0, 1])
def test_a_load_that_fails_changes_no_rule(updates):
    model, optimizer = make(optimizers.Adam, 0)
    optimizer.update(model, X)
    saved = serialize(optimizer)
    for missing in saved:
        model, optimizer = make(optimizers.Adam, 1)
        for _ in range(updates):
            optimizer.update(model, X)
        before = serialize(optimizer)
        rest = {name: array for name, array in saved.items() if name != missing}
        with pytest.raises(KeyError, match=missing):
            NpzDeserializer(rest).load(optimizer)
        assert serialize(optimizer).keys() == before.keys()
        for name, array in serialize(optimizer).items():
            numpy.testing.assert_array_equal(array, before[name], name)
        optimizer.update(model, X)
