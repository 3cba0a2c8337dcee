"""What tests of clients set and read: mocked updaters, assigned inputs, early links."""

import unittest.mock
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import testing

X = np.ones((2, 2), "f")


def case_mocked_updater():
    trainer = testing.get_trainer_with_mock_updater((3, "iteration"), iter_per_epoch=2)
    updater, found = trainer.updater, []

    def state():
        names = "iteration epoch epoch_detail is_new_epoch previous_epoch_detail"
        found.append([getattr(updater, name) for name in names.split()])

    state()
    trainer.extend(lambda trainer: state(), trigger=(1, "iteration"), name="state")
    trainer.run()
    counts = [updater.update_core.call_count, updater.finalize.call_count]
    assert updater.get_optimizer("main").lr is not None
    updater.connect_trainer.assert_called_once_with(trainer)
    updater.anything.return_value = 3
    return [found, counts, updater.get_all_optimizers(), updater.anything(1)]


class Identity(chainer.FunctionNode):
    def forward(self, inputs):
        return inputs

    def backward(self, indexes, gys):
        return gys


def case_assigned_inputs():
    function, x = Identity(), chainer.Variable(X)
    before = function.inputs
    function.inputs = (1, 2)
    assigned = function.inputs
    (y,) = function.apply((x,))
    applied = function.inputs[0] is x.node
    function.inputs = None
    return [before, assigned, applied, function.inputs, y.shape]


class Early(chainer.ChainList):
    def __init__(self):
        self.first = L.Linear(2, 2)
        super().__init__(self.first, L.Linear(2, 3))


class EarlyChain(chainer.Chain):
    def __init__(self):
        self.first = L.Linear(2, 2)
        super().__init__(second=self.first)


def case_links_set_early():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        links = Early(), EarlyChain()
    return [[name for name, _ in link.namedparams()] for link in links]


def case_creators_of_recurrent_layers():
    found = []
    for name in ("NStepLSTM", "NStepBiLSTM", "NStepGRU", "NStepRNNTanh"):
        link = getattr(L, name)(1, 2, 3, 0.0)
        states = (None, None) if "LSTM" in name else (None,)
        *last, ys = link(*states, [X, X[:1]])
        for y in (*last, *ys):
            found.append(isinstance(y.creator, chainer.FunctionNode))
    return found


def case_creators_of_functions():
    x = chainer.Variable(X)
    ys = F.separate(x), F.stack([x, x]), F.layer_normalization(x, X[0], X[0]), x @ x
    flat = [y for part in ys for y in (part if isinstance(part, tuple) else (part,))]
    return [isinstance(y.creator, chainer.FunctionNode) for y in flat]


def case_optimizers_of_mocked_updaters():
    updater = testing.get_trainer_with_mock_updater().updater
    updater.get_optimizer.return_value = 3
    return updater.get_optimizer(), updater.get_optimizer("main")
