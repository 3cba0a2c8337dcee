"""StandardUpdater: calls of the optimizer, counts and saved state."""

import types

import numpy
import pytest

from renga import backend, training
from renga.dataset import convert
from renga.iterators import SerialIterator
from renga.serializers import DictionarySerializer, NpzDeserializer


class Optimizer:
    """Records its calls."""

    def __init__(self):
        self.calls = []
        self.target = types.SimpleNamespace(
            serialize=lambda s: s("w", 1.0),
            to_device=lambda device: self.calls.append(("to_device", device)),
        )
        self.epoch = 0

    def update(self, loss_func, *args, **kwargs):
        self.calls.append((loss_func, args, kwargs))

    def new_epoch(self, auto=False):
        assert auto
        self.epoch += 1

    def set_loss_scale(self, loss_scale):
        self.loss_scale = loss_scale

    def serialize(self, serializer):
        self.epoch = serializer("epoch", self.epoch)


def make(data=tuple(range(8)), optimizer=None, batch=3, **kwargs):
    iterator = SerialIterator(list(data), batch, shuffle=False)
    optimizer = optimizer or Optimizer()
    return training.StandardUpdater(iterator, optimizer, **kwargs), optimizer


@pytest.mark.parametrize(
    "example, args, kwargs",
    [
        ((1, 2.0), [[1, 1], [2, 2]], {}),
        ({"a": 1, "b": 2}, [], {"a": [1, 1], "b": [2, 2]}),
        (numpy.ones(2), [[[1, 1], [1, 1]]], {}),
    ],
)
def test_kinds_of_examples(example, args, kwargs):
    updater, optimizer = make([example] * 2, batch=2)
    updater.update()
    [(loss_func, given, named)] = optimizer.calls
    assert loss_func is optimizer.target
    assert [x.tolist() for x in given] == args
    assert {key: x.tolist() for key, x in named.items()} == kwargs


def test_progress():
    updater, optimizer = make()
    history = [
        updater.update()
        or (
            updater.iteration,
            updater.epoch,
            updater.epoch_detail,
            updater.previous_epoch_detail,
            updater.is_new_epoch,
            optimizer.epoch,
        )
        for _ in range(4)
    ]
    assert history == [
        (1, 0, 3 / 8, 0, False, 0),
        (2, 0, 6 / 8, 3 / 8, False, 0),
        (3, 1, 9 / 8, 6 / 8, True, 1),
        (4, 1, 12 / 8, 9 / 8, False, 1),
    ]
    assert optimizer.use_auto_new_epoch


def test_without_auto_new_epoch():
    updater, optimizer = make(auto_new_epoch=False)
    for _ in range(4):
        updater.update()
    assert optimizer.epoch == 0
    assert not hasattr(optimizer, "use_auto_new_epoch")


def test_loss_func_scale_and_converter():
    calls = []

    @convert.converter()
    def converter(batch, device):
        calls.append((batch, device))
        return numpy.array(batch)

    loss_func = object()
    updater, optimizer = make(
        converter=converter, loss_func=loss_func, loss_scale=4.0, device="@numpy"
    )
    updater.update()
    assert calls == [([0, 1, 2], backend.CpuDevice())]
    assert optimizer.loss_scale == updater.loss_scale == 4.0
    assert optimizer.calls[0] == ("to_device", backend.CpuDevice())
    assert optimizer.calls[1][0] is loss_func


@pytest.mark.parametrize(
    "kwargs, device, input_device",
    [
        ({}, None, None),
        ({"device": -1}, "@numpy", "@numpy"),
        ({"input_device": "@numpy"}, None, "@numpy"),
    ],
)
def test_devices(kwargs, device, input_device):
    updater, optimizer = make(**kwargs)
    assert getattr(updater.device, "name", None) == device
    assert getattr(updater.input_device, "name", None) == input_device
    assert len(optimizer.calls) == (device is not None)


def test_dictionaries():
    iterators = {n: SerialIterator([1], 1) for n in ("main", "other")}
    optimizers = {"main": Optimizer(), "second": Optimizer()}
    updater = training.StandardUpdater(iterators, optimizers)
    assert updater.get_iterator("other") is iterators["other"]
    assert updater.get_optimizer("second") is optimizers["second"]
    assert updater.get_all_optimizers() == optimizers


def test_finalize_ends_the_iterators():
    ended = []
    iterators = {
        name: types.SimpleNamespace(finalize=lambda name=name: ended.append(name))
        for name in ("main", "other")
    }
    training.StandardUpdater(iterators, Optimizer()).finalize()
    assert ended == ["main", "other"]


def test_serialize():
    updater, _ = make()
    for _ in range(4):
        updater.update()
    saved = DictionarySerializer()
    updater.serialize(saved)
    assert {"iterator:main/epoch", "optimizer:main/epoch", "model:main/w"} <= set(
        saved.target
    )
    restored, optimizer = make()
    restored.serialize(NpzDeserializer(saved.target))
    assert (restored.iteration, restored.epoch, optimizer.epoch) == (4, 1, 1)
    assert restored.epoch_detail == 12 / 8


def test_unknown_argument():
    with pytest.raises(TypeError):
        make(devise=-1)


def test_update_core_may_be_replaced():
    class Twice(training.updaters.StandardUpdater):
        def update_core(self):
            super().update_core()
            super().update_core()

    optimizer = Optimizer()
    updater = Twice(SerialIterator([1, 2], 1), optimizer)
    updater.update()
    assert (updater.iteration, len(optimizer.calls)) == (1, 2)
    assert training.updater.StandardUpdater is training.StandardUpdater
