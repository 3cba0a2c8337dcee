"""Further networks in renga, of several kinds of layers."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from tests.benchmarks.steps.sizes import (
    dilations,
    mobilenet_blocks,
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


def half_size(x):
    return F.average_pooling_2d(x, 2)


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


class Dense(renga.Chain):
    """x and, as further channels, ``body`` of x."""

    def __init__(self, body):
        super().__init__()
        with self.init_scope():
            self.body = renga.Sequential(*body)

    def forward(self, x):
        return F.concat([x, self.body(x)], 1)


def activated(channels, filters, ksize):
    """Batch normalization, ReLU and a convolution, as layers of a sequence."""
    conv = L.Convolution2D(channels, filters, ksize, 1, ksize // 2, nobias=True)
    return [L.BatchNormalization(channels), F.relu, conv]


def densenet():
    """40 layers with a growth of 12 (Huang et al., 2017)."""
    layers, channels = [L.Convolution2D(3, 16, 3, 1, 1, nobias=True)], 16
    for block in range(3):
        if block > 0:
            layers += activated(channels, channels, 1) + [half_size]
        for _ in range(12):
            layers.append(Dense(activated(channels, 12, 3)))
            channels += 12
    layers += [L.BatchNormalization(channels), F.relu, mean_of_pixels]
    return renga.Sequential(*layers, L.Linear(channels, 10))


def mobilenet():
    """MobileNetV2 (Sandler et al., 2018)."""
    layers = convolution(3, 32, 3, 2, activation=F.relu6)
    for channels, inner, filters, stride in mobilenet_blocks():
        body = convolution(channels, inner, 1, activation=F.relu6)
        body = body if inner > channels else []
        body += convolution(inner, inner, 3, stride, inner, F.relu6)
        body += convolution(inner, filters, 1, activation=None)
        is_residual = stride == 1 and channels == filters
        layers += [Residual(body)] if is_residual else body
    layers += convolution(320, 1280, 1, activation=F.relu6)
    return renga.Sequential(*layers, mean_of_pixels, L.Linear(1280, 1000))


class UNet(renga.Chain):
    """Three levels; 32 to 256 channels, 4 classes for each pixel."""

    def __init__(self):
        super().__init__()
        widths = 32, 64, 128, 256

        def twice(channels, filters):
            layers = convolution(channels, filters) + convolution(filters, filters)
            return renga.Sequential(*layers)

        pairs = list(zip((3, *widths), widths))
        with self.init_scope():
            self.down = renga.ChainList(*(twice(*pair) for pair in pairs))
            self.wider = renga.ChainList(
                *(L.Deconvolution2D(2 * w, w, 2, 2) for w in widths[:-1])
            )
            self.up = renga.ChainList(*(twice(2 * w, w) for w in widths[:-1]))
            self.last = L.Convolution2D(32, 4, 1)

    def forward(self, h):
        levels = []
        for link in self.down:
            levels.append(link(h))
            h = F.max_pooling_2d(levels[-1], 2, 2)
        h = levels.pop()
        for k in (2, 1, 0):
            h = self.up[k](F.concat((self.wider[k](h), levels[k])))
        return self.last(h)


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


class VisionTransformer(renga.Chain):
    """6 layers of 192 with 3 heads, on patches of 16x16 of images of 224x224."""

    def __init__(self):
        super().__init__()
        blocks = []
        for _ in range(6):
            block = renga.Chain()
            with block.init_scope():
                block.norm1 = L.LayerNormalization(192)
                block.norm2 = L.LayerNormalization(192)
                block.attention = L.MultiHeadAttention(192, 3)
                block.fc1, block.fc2 = L.Linear(192, 768), L.Linear(768, 192)
            blocks.append(block)
        with self.init_scope():
            self.patches = L.Convolution2D(3, 192, 16, 16)
            self.position = renga.Parameter(np.zeros((1, 196, 192), "f"))
            self.blocks = renga.ChainList(*blocks)
            self.norm, self.out = L.LayerNormalization(192), L.Linear(192, 1000)

    def forward(self, x):
        h = F.transpose(F.reshape(self.patches(x), (len(x), 192, 196)), (0, 2, 1))
        h = h + F.broadcast_to(self.position, h.shape)
        for block in self.blocks:
            h = h + block.attention(block.norm1(h))
            rows = F.reshape(block.norm2(h), (-1, 192))
            h = h + F.reshape(block.fc2(F.gelu(block.fc1(rows))), h.shape)
        return self.out(F.average(self.norm(h), axis=1))


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


class Encoder(renga.Chain):
    """Attention and two layers, each normalized after."""

    def __init__(self, width, heads):
        super().__init__()
        with self.init_scope():
            self.attention = L.MultiHeadAttention(width, heads)
            self.norm1 = L.LayerNormalization(width)
            self.up, self.down = L.Linear(width, 4 * width), L.Linear(4 * width, width)
            self.norm2 = L.LayerNormalization(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        h = self.down(F.gelu(self.up(x, n_batch_axes=2)), n_batch_axes=2)
        return self.norm2(x + h)


class BERT(renga.Chain):
    """2 layers of base size, and the words at some places (Devlin et al., 2019)."""

    def __init__(self, places):
        super().__init__()
        self.add_persistent("places", places)
        with self.init_scope():
            self.words = L.EmbedID(30522, 768, renga.initializers.Normal(0.02))
            self.positions = renga.Parameter(np.zeros((128, 768), "f"))
            self.norm = L.LayerNormalization(768)
            self.encoders = renga.Sequential(Encoder(768, 12), Encoder(768, 12))
            self.transform = L.Linear(768, 768)
            self.last_norm = L.LayerNormalization(768)

    def forward(self, x):
        h = self.words(x)
        h = self.norm(h + F.broadcast_to(self.positions, h.shape))
        h = F.reshape(self.encoders(h), (-1, 768))[self.places]
        return self.words.attend(self.last_norm(F.gelu(self.transform(h))))


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
