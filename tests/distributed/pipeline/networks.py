"""Networks to cut, with the same weights wherever they are made."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L

N_SAMPLES = 8


class Residual(renga.Chain):
    """Convolutions with values that skip stages, and a second loss.

    No value is used more than twice: the order in which three gradients are added
    depends on the stages.
    """

    def __init__(self, seed=0):
        super().__init__()
        with self.init_scope():
            self.c0 = L.Convolution2D(3, 8, 3, pad=1)
            self.c1 = L.Convolution2D(8, 8, 3, pad=1)
            self.c2 = L.Convolution2D(8, 8, 3, pad=1)
            self.c3 = L.Convolution2D(8, 8, 3, pad=1)
            self.c4 = L.Convolution2D(8, 8, 1)
            self.d0 = L.Linear(8 * 4 * 4, 24)
            self.d1 = L.Linear(24, 16)
            self.d2 = L.Linear(16, 5)
        random = np.random.RandomState(seed)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.2, param.shape)

    def forward(self, x, t):
        first = F.relu(self.c0(x))
        h = F.tanh(self.c1(first))
        h = F.max_pooling_2d(F.relu(self.c2(h)) + first, 2)
        g = F.leaky_relu(self.c3(h))
        h = F.sigmoid(self.c4(g)) * h
        y = self.d2(F.elu(self.d1(F.relu(self.d0(h)))))
        self.loss = loss = F.softmax_cross_entropy(y, t) + 0.1 * F.mean(g**2)
        renga.report({"loss": loss, "accuracy": F.accuracy(y, t)}, self)
        return loss


class Tied(renga.Chain):
    """A language model whose last layer uses the first one's weights."""

    def __init__(self, seed=0):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(11, 6)
            self.l0 = L.Linear(6, 12)
            self.l1 = L.Linear(12, 12)
            self.l2 = L.Linear(12, 12)
            self.l3 = L.Linear(12, 6)
        random = np.random.RandomState(seed)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.3, param.shape)

    def forward(self, x, t):
        h = F.relu(self.l0(self.embed(x[:, 0])))
        h = self.l3(F.relu(self.l2(F.tanh(self.l1(h)))))
        return F.softmax_cross_entropy(F.linear(h, self.embed.W), t)


def images(n=N_SAMPLES, seed=1, batches=4):
    """Batches of images and labels."""
    random = np.random.RandomState(seed)
    return [
        (random.randn(n, 3, 8, 8).astype("f"), random.randint(0, 5, n).astype("i"))
        for _ in range(batches)
    ]


def words(n=N_SAMPLES, seed=2, batches=4):
    """Batches of words and the words after them."""
    random = np.random.RandomState(seed)
    return [
        (
            random.randint(0, 11, (n, 1)).astype("i"),
            random.randint(0, 11, n).astype("i"),
        )
        for _ in range(batches)
    ]
