"""Further networks in renga, of several kinds of layers."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from tests.benchmarks.steps.sizes import (
    dilations,
    residual_3d_blocks,
    resnet20_blocks,
)


def convolution(
    channels, filters, ksize=3, stride=1, groups=1, activation=F.relu, axes=2
):
    """With batch normalization, as layers of a sequence."""
    sizes = channels, filters, ksize, stride, ksize // 2
    conv = L.ConvolutionND(axes, *sizes, nobias=True, groups=groups)
    layers = [conv, L.BatchNormalization(filters)]
    return layers if activation is None else [*layers, activation]


def mean_of_pixels(x):
    return F.average(x, axis=tuple(range(2, x.ndim)))


class Residual(renga.Chain):
    """x, or ``beside`` of it, plus ``body`` of x, and an activation."""

    def __init__(self, body, beside=None, activation=None):
        super().__init__()
        self.activation = activation
        with self.init_scope():
            self.body = renga.Sequential(*body)
            self.beside = renga.Sequential(*beside or [])

    def forward(self, x):
        y = self.body(x) + (self.beside(x) if len(self.beside) else x)
        return y if self.activation is None else self.activation(y)


def resnet20():
    layers = convolution(3, 16)
    for channels, filters, stride in resnet20_blocks():
        body = convolution(channels, filters, 3, stride)
        body += convolution(filters, filters, activation=None)
        beside = convolution(channels, filters, 1, stride, activation=None)
        layers.append(Residual(body, beside if stride > 1 else None, F.relu))
    return renga.Sequential(*layers, mean_of_pixels, L.Linear(64, 10))


class GRU(renga.Chain):
    """A language model of 5000 words."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed, self.out = L.EmbedID(5000, 256), L.Linear(256, 5000)
            self.gru = L.NStepGRU(1, 256, 256, 0.0)

    def forward(self, x):
        _, ys = self.gru(None, list(F.separate(self.embed(x), 0)))
        return self.out(F.concat(ys, 0))


def resnet_3d():
    """18 layers for clips of 16 frames of 112x112 (Hara et al., 2018)."""
    layers = convolution(3, 64, 7, (1, 2, 2), axes=3)
    layers.append(lambda x: F.max_pooling_3d(x, 3, 2, 1, cover_all=False))
    for channels, filters, stride in residual_3d_blocks():
        body = convolution(channels, filters, 3, stride, axes=3)
        body += convolution(filters, filters, activation=None, axes=3)
        beside = convolution(channels, filters, 1, stride, activation=None, axes=3)
        layers.append(Residual(body, beside if stride > 1 else None, F.relu))
    return renga.Sequential(*layers, mean_of_pixels, L.Linear(512, 400))


class WaveNet(renga.Chain):
    """20 layers of 64 channels, 256 beside them (van den Oord et al., 2016)."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(256, 64)
            self.gates = renga.ChainList(
                *(L.Convolution1D(64, 128, 2, dilate=d) for d in dilations())
            )
            self.residual = renga.ChainList(
                *(L.Convolution1D(64, 64, 1) for _ in dilations()[1:])
            )
            self.skip = renga.ChainList(
                *(L.Convolution1D(64, 256, 1) for _ in dilations())
            )
            last = L.Convolution1D(256, 256, 1), F.relu, L.Convolution1D(256, 256, 1)
            self.out = renga.Sequential(F.relu, *last)

    def forward(self, x):
        h, total = F.swapaxes(self.embed(x), 1, 2), 0
        for k, d in enumerate(dilations()):
            past = F.pad(h, ((0, 0), (0, 0), (d, 0)), "constant")
            a, b = F.split_axis(self.gates[k](past), 2, 1)
            y = F.tanh(a) * F.sigmoid(b)
            total = total + self.skip[k](y)
            if k < len(self.residual):
                h = h + self.residual[k](y)
        return self.out(total)


class GraphConvolution(renga.Chain):
    """3 layers of 256 (Kipf and Welling, 2017; sizes of Hu et al., 2020)."""

    def __init__(self, source, target, weights):
        super().__init__()
        self.add_persistent("source", source)
        self.add_persistent("target", target)
        self.add_persistent("weights", weights)
        with self.init_scope():
            self.layers = renga.ChainList(
                L.Linear(128, 256), L.Linear(256, 256), L.Linear(256, 40)
            )

    def forward(self, h):
        for k, layer in enumerate(self.layers):
            h = layer(F.relu(h) if k else h)
            nothing = self.xp.zeros(h.shape, h.dtype)
            h = F.scatter_add(nothing, self.target, h[self.source] * self.weights)
        return h


class Recommender(renga.Chain):
    """DLRM with 26 tables of 10000 (Naumov et al., 2019), for the samples' ids."""

    def __init__(self, ids):
        super().__init__()
        self.add_persistent("ids", ids)
        self.add_persistent("pairs", np.stack(np.tril_indices(27, -1)))

        def layers(*widths):
            pairs = zip(widths, widths[1:])
            return [layer for pair in pairs for layer in (L.Linear(*pair), F.relu)]

        with self.init_scope():
            w = renga.initializers.Uniform(0.01)
            self.tables = renga.ChainList(*(L.EmbedID(10000, 16, w) for _ in range(26)))
            self.bottom = renga.Sequential(*layers(13, 512, 256, 64, 16))
            self.top = renga.Sequential(*layers(367, 512, 256), L.Linear(256, 2))

    def forward(self, x):
        h = self.bottom(x)
        rows = [table(self.ids[:, k]) for k, table in enumerate(self.tables)]
        features = F.stack([h, *rows], 1)
        products = F.matmul(features, features, transb=True)
        pairs = products[:, self.pairs[0], self.pairs[1]]
        return self.top(F.concat([h, pairs], 1))
