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


class Statistics(renga.Chain):
    """Normalization of what does not depend on the statistics of another one."""

    def __init__(self, seed=0):
        super().__init__()
        with self.init_scope():
            self.c0 = L.Convolution2D(3, 4, 3)
            self.b0 = L.BatchNormalization(4)
            self.b1 = L.BatchNormalization(3, decay=0.5, use_gamma=False)
            sizes = [4 * 6 * 6, 8, 8, 8, 8, 5]
            self.last = renga.Sequential(*map(L.Linear, sizes, sizes[1:]))
        random = np.random.RandomState(seed)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.2, param.shape)

    def forward(self, x, t):
        y = self.last(F.relu(self.b0(self.c0(x))))
        # A pass calls the same link twice.
        return F.softmax_cross_entropy(y, t) + F.mean(self.b1(x) * self.b1(x * 2 + 1))


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


class Overflowing(Residual):
    """Gradients of the first stage alone are infinite where ``factor`` is."""

    def forward(self, x, t, factor):
        return super().forward(x, t) + factor * F.sum(self.c0.W)


class Normalized(renga.Chain):
    """With batch normalization and dropout, whose masks are new in every pass."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c0, self.n0 = L.Convolution2D(3, 6, 3, pad=1), L.BatchNormalization(6)
            self.c1, self.n1 = L.Convolution2D(6, 6, 3, pad=1), L.BatchNormalization(6)
            self.d0, self.n2 = L.Linear(6 * 8 * 8, 12), L.BatchNormalization(12)
            self.d1 = L.Linear(12, 5)
        random = np.random.RandomState(3)
        for _, param in sorted(self.namedparams()):
            start = 0.0 if param.ndim > 1 else param.array  # 1 or 0
            param.array[...] = start + random.normal(0, 0.2, param.shape)

    def forward(self, x, t):
        h = F.dropout(F.relu(self.n0(self.c0(x))), 0.3)
        h = F.dropout(F.relu(self.n1(self.c1(h))) + h, 0.3)
        h = F.dropout(F.relu(self.n2(self.d0(h))), 0.5)
        return F.softmax_cross_entropy(self.d1(h), t)


class Deep(renga.Chain):
    """Sixteen layers, with connections that skip one."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.layers = renga.ChainList(*(L.Linear(6, 6) for _ in range(15)))
            self.last = L.Linear(6, 5)
        random = np.random.RandomState(4)
        for _, param in sorted(self.namedparams()):
            param.array[...] = random.normal(0, 0.4, param.shape)

    def forward(self, x, t):
        h = x
        for i, layer in enumerate(self.layers):
            h = F.tanh(layer(h)) if i % 2 else F.tanh(layer(h)) + h
        return F.softmax_cross_entropy(self.last(h), t)


def vectors(n=N_SAMPLES, seed=5, batches=4):
    """Batches of vectors and labels."""
    random = np.random.RandomState(seed)
    return [
        (random.randn(n, 6).astype("f"), random.randint(0, 5, n).astype("i"))
        for _ in range(batches)
    ]


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
