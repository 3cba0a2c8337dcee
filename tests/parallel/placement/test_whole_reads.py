"""Functions of a program that read the sharded parameters of links."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.parallel.parallelize import parallelize
from tests.links.parallel.differentiate import in_float64

random = np.random.RandomState(0)
X = random.normal(size=(3, 5))
W1, W2 = random.normal(size=(4, 5)), random.normal(size=(6, 4))


class Net(renga.Chain):
    """Its own code reads a weight of a link."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(5, 4, initialW=W1)
            self.b = L.Linear(4, 6, initialW=W2)

    def forward(self, x):
        y = self.b(F.tanh(self.a(x)))
        return y + F.sqrt(F.sum(self.b.W**2)) + F.matmul(self.a(x), self.a.W)[:, :1]


def weighted(model):
    """A loss with terms that are no sums over elements, so ranks cannot share them."""
    return F.max(abs(model.a.W)) * F.mean(model.b.W**2) + model.a.b[1] + model.b.W[4, 1]


def train(model):
    optimizer = renga.optimizers.MomentumSGD(0.01).setup(model)
    losses = []
    for _ in range(3):
        loss = F.mean(model(X) ** 2) + weighted(model)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    return losses


@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
def test_parameters_that_are_used_beside_their_links(ranks, has_example):
    with renga.using_config("dtype", np.float64):
        expected = train(Net())

    @in_float64
    def act(comm):
        example = [X] if has_example else []
        return train(parallelize(Net(), comm, "channel", *example))

    for losses in ranks(act):
        np.testing.assert_allclose(losses, expected, 1e-9)


def test_gradients_of_second_order(several_ranks):
    images, filters = random.normal(size=(2, 3, 5, 4)), random.normal(size=(4, 3, 3, 3))

    def penalty(conv):
        y = F.sum(conv(images) ** 2) * F.sum(F.tanh(conv.W) ** 2)
        (gW,) = renga.grad([y], [conv.W], enable_double_backprop=True)
        loss = F.sum(conv.W**3) + y
        loss.backward()
        return gW, loss

    with renga.using_config("dtype", np.float64):
        conv = L.Convolution2D(3, 4, 3, initialW=filters)
        gW, loss = penalty(conv)
        (ggW,) = renga.grad([F.sum(gW**2)], [conv.W])

    @in_float64
    def act(comm):
        own = ParallelConvolution2D(comm, 3, 4, 3, initialW=filters)
        gW, value = penalty(own)
        (ggW,) = renga.grad([F.sum(gW**2)], [own.W])
        return gW.array, ggW.array, own.W.whole(own.W.grad), value.array

    for found in several_ranks(act):
        for value, expected in zip(found, (gW, ggW, conv.W.grad_var, loss)):
            np.testing.assert_allclose(value, expected.array, 1e-9)


def test_links_and_optimizers_use_the_ranks_own_blocks():
    def act(comm):
        model = parallelize(Net(), comm, "channel")
        assert model.b.W.size + model.a.W.size <= (W1.size + W2.size) // 2 + 6
        return F.identity(model.b.W).shape, model.b.W.shape

    for whole, block in local.run(act, ranks=2):
        assert whole == W2.shape and block != whole


WITH_0 = "constant"
READERS = {
    "methods": lambda w: w.T.reshape(2, -1)[1].transpose(),
    "operators": lambda w: 2 ** abs(-w) / (1 + w**2) + W2 * w,
    "slices": lambda w: w[-1] + w[5] + w[:5][4],
    "products": lambda w: F.einsum("ij,kj->ik", w @ W2.T @ w, W2),
    "iteration": lambda w: F.stack(list(w))[::2],
    "NumPy's where": lambda w: np.where(W2 > 0.5, w, 0),
    "NumPy's others": lambda w: np.mean(np.concatenate([w, W2]), axis=0),
    "shapes": lambda w: (
        F.tile(F.flip(w, 0), 2) + F.pad(w, ((0, 0), (4, 0)), "constant")
    ),
    "distributions": lambda w: renga.distributions.Normal(w, W2**2).log_prob(W2),
    "categories": lambda w: renga.distributions.Categorical(logit=w).log_prob(
        np.arange(6) % 4
    ),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_functions_of_a_shard_are_those_of_the_whole(reader):
    with renga.using_config("dtype", np.float64):
        param = Net().b.W
        param.cleargrad()
        loss = F.sum(reader(param) ** 2)
        loss.backward()

    @in_float64
    def act(comm):
        w = parallelize(Net(), comm, "channel").b.W
        found = F.sum(reader(w) ** 2)
        w.cleargrad()
        found.backward()
        return found.array, w.whole(w.grad)

    for value, gradient in local.run(act, ranks=2):
        np.testing.assert_allclose(value, loss.array, 1e-9)
        np.testing.assert_allclose(gradient, param.grad, 1e-9, 1e-12)
