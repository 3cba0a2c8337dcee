"""Small networks of four links in a row, for each kind of data.

Two ranks have different numbers of rows, or of tokens.
"""

from __future__ import annotations

import functools

import numpy

import renga
import renga.functions as F
import renga.links as L


@functools.cache  # every cell of a row draws the same
def normal(seed, *shapes):
    """Arrays of normal numbers that one generator draws; nobody changes them."""
    random = numpy.random.RandomState(seed)
    return [random.normal(size=shape) for shape in shapes]


class Drawn(renga.initializer.Initializer):
    """Normal numbers that depend on a seed and the shape alone."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def __call__(self, array):
        (numbers,) = normal(self.seed, array.shape)
        self._fill(array, 0.4 * numbers)


class Network(renga.Chain):
    """Links ``first``, ``a``, ``b`` and ``last``; ``a`` and ``b`` have one shape.

    Args:
        seed: of the weights.
        is_lazy: whether weights get their shapes from the first input.
    """

    inputs: tuple[int, ...]  # the shape of a sample
    outputs: tuple[int, ...]

    def __init__(self, seed, is_lazy=False):
        super().__init__()
        with self.init_scope():
            for i, (name, sizes) in enumerate(self.sizes.items()):
                n_in, n_out = sizes
                link = self.link(name, None if is_lazy else n_in, n_out, 7 * seed + i)
                setattr(self, name, link)

    def forward(self, x):
        return self.call(self.last, self.middle(F.tanh(self.call(self.first, x))))

    def middle(self, h):
        h = F.tanh(self.call(self.a, h))
        return F.tanh(self.call(self.b, h))

    def call(self, link, x):
        return link(x)


class Vectors(Network):
    """Linear links."""

    inputs, outputs, width = (4,), (3,), 5
    sizes = {"first": (4, 5), "a": (5, 5), "b": (5, 5), "last": (5, 3)}

    def link(self, name, n_in, n_out, seed):
        return L.Linear(n_in, n_out, initialW=Drawn(seed), initial_bias=Drawn(seed))


class Images(Network):
    """Convolutions, of images to images."""

    inputs, outputs, width = (2, 7, 4), (3, 7, 4), 4
    sizes = {"first": (2, 4), "a": (4, 4), "b": (4, 4), "last": (4, 3)}

    def link(self, name, n_in, n_out, seed):
        size, pad = (1, 0) if name == "last" else (3, 1)
        init = dict(initialW=Drawn(seed), initial_bias=Drawn(seed))
        return L.Convolution2D(n_in, n_out, size, pad=pad, **init)


class Sequences(Vectors):
    """Linear links that are applied to each token, and attention behind them."""

    inputs, outputs, width = (7, 4), (7, 3), 6
    sizes = {"first": (4, 6), "a": (6, 6), "b": (6, 6), "last": (6, 3)}

    def __init__(self, seed, is_lazy=False):
        super().__init__(seed, is_lazy)
        with self.init_scope():
            self.attention = L.MultiHeadAttention(6, 2)
        for i, (_, param) in enumerate(sorted(self.attention.namedparams())):
            Drawn(7 * seed + 4 + i)(param.array)

    def middle(self, h):
        return super().middle(h + self.attention(h))

    def call(self, link, x):
        return link(x, n_batch_axes=2)


NETWORKS = {"vectors": Vectors, "images": Images, "sequences": Sequences}
