"""Further networks in renga, of several kinds of layers."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from tests.benchmarks.steps.sizes import mobilenet_blocks, resnet20_blocks


def convolution(channels, filters, ksize=3, stride=1, groups=1, activation=F.relu):
    """With batch normalization, as layers of a sequence."""
    conv = L.Convolution2D(
        channels, filters, ksize, stride, ksize // 2, nobias=True, groups=groups
    )
    layers = [conv, L.BatchNormalization(filters)]
    return layers if activation is None else [*layers, activation]


def half_size(x):
    return F.average_pooling_2d(x, 2)


def mean_of_pixels(x):
    return F.average(x, axis=(2, 3))


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
