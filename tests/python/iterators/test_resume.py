"""A resumed iterator continues exactly like an uninterrupted one."""

import types

import numpy
import pytest
from hypothesis import given, settings, strategies as st

from renga import serializers
from renga.iterators import MultithreadIterator, SerialIterator, ShuffleOrderSampler

GENERATORS = {
    "global": lambda: None,
    "RandomState": lambda: numpy.random.RandomState(1),
    "Generator": lambda: numpy.random.default_rng(1),
    "128 bits": lambda: numpy.random.Generator(numpy.random.PCG64DXSM(1)),
}


def build(kind, size, batch_size, shuffle, repeat, generator):
    if not shuffle:
        return kind(range(size), batch_size, repeat, shuffle=False)
    sampler = ShuffleOrderSampler(GENERATORS[generator]())
    return kind(range(size), batch_size, repeat, order_sampler=sampler)


def run(iterator, count):
    """The batches and states of the next steps, None where there is no batch."""
    steps = []
    for _ in range(count):
        batch = next(iterator, None)
        steps.append(
            (
                batch,
                iterator.epoch,
                iterator.is_new_epoch,
                iterator.current_position,
                iterator.epoch_detail,
                iterator.previous_epoch_detail,
            )
        )
    return steps


@given(
    st.sampled_from([SerialIterator, MultithreadIterator]),
    st.integers(1, 8),
    st.integers(1, 10),
    st.booleans(),
    st.booleans(),
    st.sampled_from(list(GENERATORS)),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_resume_anytime(kind, size, batch_size, shuffle, repeat, generator, stop):
    arguments = (kind, size, batch_size, shuffle, repeat, generator)
    numpy.random.seed(7)
    iterator = build(*arguments)
    run(iterator, stop)
    saved = serializers.DictionarySerializer()
    iterator.serialize(saved)
    want = run(iterator, 10)
    want_random = numpy.random.rand()

    numpy.random.seed(8)
    resumed = build(*arguments)
    run(resumed, 3)
    resumed.serialize(serializers.NpzDeserializer(saved.target))
    assert run(resumed, 10) == want
    if shuffle and generator == "global":
        assert numpy.random.rand() == want_random
    iterator.finalize()
    resumed.finalize()


@pytest.mark.parametrize("kind", [SerialIterator, MultithreadIterator])
@pytest.mark.parametrize("form", ["npz", "hdf5"])
def test_resume_from_a_file(tmp_path, kind, form):
    save = getattr(serializers, f"save_{form}")
    load = getattr(serializers, f"load_{form}")
    numpy.random.seed(0)
    iterator = kind(range(10), 3)
    run(iterator, 5)
    save(tmp_path / "f", iterator)
    want = run(iterator, 10)
    resumed = kind(range(10), 3)
    load(tmp_path / "f", resumed)
    assert run(resumed, 10) == want


# Chainer 7.8.1 saved this for 7 examples after one batch of 3.
CHAINER = {
    "current_position": numpy.array(3),
    "epoch": numpy.array(0),
    "is_new_epoch": numpy.array(False),
    "previous_epoch_detail": numpy.array(0.0),
}
ORDER = numpy.array([6, 2, 1, 3, 0, 5, 4])


@pytest.mark.parametrize(
    "kind, key", [(SerialIterator, "order"), (MultithreadIterator, "_order")]
)
def test_resume_from_chainers_snapshot(kind, key):
    iterator = kind(range(7), 3)
    iterator.serialize(serializers.NpzDeserializer({**CHAINER, key: ORDER}))
    assert [next(iterator), next(iterator)[0]] == [[3, 0, 5], 4]
    iterator = kind(range(7), 3, shuffle=False)
    iterator.serialize(serializers.NpzDeserializer(CHAINER))
    assert next(iterator) == [3, 4, 5]


def test_saving_writes_chainers_names():
    saved = serializers.DictionarySerializer()
    numpy.random.seed(0)
    iterator = SerialIterator(range(7), 3)
    next(iterator)
    iterator.serialize(saved)
    state = saved.target.pop("order_sampler/random_state")
    assert state.dtype.kind == "U"
    assert saved.target.keys() == {*CHAINER, "order"}
    for key, want in CHAINER.items():
        assert saved.target[key] == want


def test_another_size_of_data_set_is_refused():
    deserializer = serializers.NpzDeserializer({**CHAINER, "order": ORDER})
    with pytest.raises(ValueError, match=r"'order': expected .*\(5,\), got \(7,\)"):
        SerialIterator(range(5), 3).serialize(deserializer)


def test_a_generator_without_a_state_is_unchanged():
    backwards = types.SimpleNamespace(permutation=lambda n: numpy.arange(n)[::-1])
    saved = serializers.DictionarySerializer()
    iterator = SerialIterator(range(4), 3, order_sampler=ShuffleOrderSampler(backwards))
    iterator.serialize(saved)
    assert "order_sampler/random_state" not in saved.target
    assert next(iterator) == [3, 2, 1]
