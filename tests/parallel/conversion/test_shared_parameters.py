"""Parameters that a model has under several names train as one, as in one process."""

import copy

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizer_hooks, serializers
from renga.communicators import local
from renga.parallel.parallelize import parallelize


class Words(renga.Chain):
    """The scores of words are products with their vectors."""

    batch_axes = 1

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(7, 4)
            self.hidden = L.Linear(4, 4)
            self.scores = L.Linear(4, 7)
            self.scores.W = self.embed.W

    def forward(self, x):
        h = F.tanh(self.hidden(self.embed(x), n_batch_axes=self.batch_axes))
        return self.scores(h, n_batch_axes=self.batch_axes)


class Texts(Words):
    batch_axes = 2


class Images(renga.Chain):
    """Filters, scales and biases are shared, one of them with the chain itself."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Convolution2D(3, 4, 3, pad=1, nobias=True)
            self.bn = L.BatchNormalization(4)
            self.second = L.Convolution2D(4, 4, 3, pad=1)
            self.third = L.Convolution2D(4, 4, 3, pad=2, dilate=2)
            self.other = L.BatchNormalization(4)
            self.other.gamma = self.bn.gamma
            self.third.W = self.second.W
            self.shift = self.third.b
            self.again = self.first

    def forward(self, x):
        h = F.tanh(self.other(self.second(F.relu(self.bn(self.again(x))))))
        return F.average(self.third(h), (2, 3))


class Nested(renga.Chain):
    """Shared by children of children, and by a link that is called twice."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.blocks = renga.ChainList(
                renga.Sequential(L.Linear(4, 4), F.tanh),
                renga.Sequential(L.Linear(4, 4, nobias=True), F.tanh),
            )
            self.last = L.Linear(4, 3)
        with self.blocks[1][0].init_scope():
            self.blocks[1][0].W = self.blocks[0][0].W

    def forward(self, x):
        for block in (*self.blocks, *self.blocks):
            x = block(x)
        return self.last(x)


def train(model, x):
    """Everything that is saved after three steps."""
    optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
    optimizer.add_hook(optimizer_hooks.WeightDecay(0.01))
    optimizer.add_hook(optimizer_hooks.GradientClipping(0.4))
    for _ in range(3):
        loss = F.mean((model(x) - 0.3) ** 2)
        model.cleargrads()
        loss.backward()
        optimizer.update()
    saved = {}
    serializers.DictionarySerializer(saved, "model/").save(model)
    serializers.DictionarySerializer(saved, "optimizer/").save(optimizer)
    return {name: np.array(value) for name, value in saved.items()}


def numbers(*shape):
    return np.random.RandomState(1).normal(size=shape)


CASES = {
    "words by channel": (Words, np.arange(6, dtype="i"), "channel"),
    "texts by channel": (Texts, np.arange(12, dtype="i").reshape(2, 6) % 7, "channel"),
    "texts": (Texts, np.arange(12, dtype="i").reshape(2, 6) % 7, "sequence"),
    "images by channel": (Images, numbers(4, 3, 6, 5), "channel"),
    "images": (Images, numbers(4, 3, 6, 5), "spatial"),
    "nested": (Nested, numbers(4, 4), "channel"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
def test_shared_parameters_train_as_in_one_process(case, size, has_example):
    make, x, strategy = CASES[case]
    with renga.using_config("dtype", np.float64):
        np.random.seed(0)
        serial = make()
        expected = train(copy.deepcopy(serial), x)

    def act(comm):
        renga.config.dtype = np.float64
        example = [x] if has_example else []
        model = parallelize(serial, comm, strategy, *example)
        assert len(list(model.params())) == len(list(serial.params()))
        return train(model, x)

    for found in local.run(act, ranks=size):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-9, 1e-11, err_msg=name)


def test_the_report_says_what_links_share(capsys):
    local.run(lambda comm: parallelize(Words(), comm, "channel"), ranks=2)
    text = capsys.readouterr().out
    assert "/embed   EmbedID kept: its W is the parameter /scores/W, too" in text
    assert "/scores  Linear kept: its W is the parameter /embed/W, too" in text
