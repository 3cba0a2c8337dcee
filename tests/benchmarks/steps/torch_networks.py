"""The networks of renga_networks.py in PyTorch."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.benchmarks.steps.sizes import (
    dilations,
    residual_3d_blocks,
    resnet20_blocks,
)

# Convolution, batch normalization and average by the number of axes.
LAYERS = {
    2: (nn.Conv2d, nn.BatchNorm2d, nn.AdaptiveAvgPool2d),
    3: (nn.Conv3d, nn.BatchNorm3d, nn.AdaptiveAvgPool3d),
}
# Expansion, filters, blocks, and the stride of the first of them.
MOBILENET = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)]
MOBILENET += [(6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def convolution(
    channels, filters, ksize=3, stride=1, groups=1, activation=nn.ReLU, axes=2
):
    """With batch normalization, as layers of a sequence."""
    conv, norm, _ = LAYERS[axes]
    sizes = channels, filters, ksize, stride, ksize // 2
    layers = [conv(*sizes, groups=groups, bias=False), norm(filters, 2e-5)]
    return layers if activation is None else [*layers, activation(inplace=True)]


class Residual(nn.Module):
    """x, or ``beside`` of it, plus ``body`` of x, and perhaps ReLU."""

    def __init__(self, body, beside=None, relu=False):
        super().__init__()
        self.body, self.beside = nn.Sequential(*body), nn.Sequential(*beside or [])
        self.relu = relu

    def forward(self, x):
        y = self.body(x) + self.beside(x)
        return F.relu(y, inplace=True) if self.relu else y


def classes_of_mean(channels, classes, axes=2):
    return [LAYERS[axes][2](1), nn.Flatten(), nn.Linear(channels, classes)]


def resnet20():
    layers = convolution(3, 16)
    for channels, filters, stride in resnet20_blocks():
        body = convolution(channels, filters, 3, stride)
        body += convolution(filters, filters, activation=None)
        beside = convolution(channels, filters, 1, stride, activation=None)
        layers.append(Residual(body, beside if stride > 1 else None, True))
    return nn.Sequential(*layers, *classes_of_mean(64, 10))


class Dense(nn.Module):
    """x and, as further channels, ``body`` of x."""

    def __init__(self, body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def activated(channels, filters, ksize):
    """Batch normalization, ReLU and a convolution, as layers of a sequence."""
    conv = nn.Conv2d(channels, filters, ksize, 1, ksize // 2, bias=False)
    return [nn.BatchNorm2d(channels), nn.ReLU(inplace=True), conv]


def densenet():
    """121 layers with a growth of 32 (Huang et al., 2017)."""
    layers, channels = [*convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for block, count in enumerate((6, 12, 24, 16)):
        if block > 0:
            layers += [*activated(channels, channels // 2, 1), nn.AvgPool2d(2)]
            channels //= 2
        for _ in range(count):
            inner = activated(channels, 128, 1) + activated(128, 32, 3)
            layers.append(Dense(inner))
            channels += 32
    layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, *classes_of_mean(channels, 1000))


def mobilenet_blocks():
    """Channels, channels within, filters and stride of each."""
    channels = 32
    for expansion, filters, count, stride in MOBILENET:
        for k in range(count):
            yield channels, expansion * channels, filters, stride if k == 0 else 1
            channels = filters


def mobilenet():
    """MobileNetV2 (Sandler et al., 2018)."""
    layers = convolution(3, 32, 3, 2, activation=nn.ReLU6)
    for channels, inner, filters, stride in mobilenet_blocks():
        body = convolution(channels, inner, 1, activation=nn.ReLU6)
        body = body if inner > channels else []
        body += convolution(inner, inner, 3, stride, inner, nn.ReLU6)
        body += convolution(inner, filters, 1, activation=None)
        is_residual = stride == 1 and channels == filters
        layers += [Residual(body)] if is_residual else body
    layers += convolution(320, 1280, 1, activation=nn.ReLU6)
    mean, rows, last = classes_of_mean(1280, 1000)
    return nn.Sequential(*layers, mean, rows, nn.Dropout(0.2), last)


class UNet(nn.Module):
    """Three levels; 32 to 256 channels, 4 classes for each pixel."""

    def __init__(self):
        super().__init__()
        widths = 32, 64, 128, 256

        def twice(channels, filters):
            layers = convolution(channels, filters) + convolution(filters, filters)
            return nn.Sequential(*layers)

        pairs = zip((3, *widths), widths)
        self.down = nn.ModuleList(twice(*pair) for pair in pairs)
        self.wider = nn.ModuleList(
            nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[:-1]
        )
        self.up = nn.ModuleList(twice(2 * w, w) for w in widths[:-1])
        self.last = nn.Conv2d(32, 4, 1)

    def forward(self, h):
        levels = []
        for link in self.down:
            levels.append(link(h))
            h = F.max_pool2d(levels[-1], 2)
        h = levels.pop()
        for k in (2, 1, 0):
            h = self.up[k](torch.cat((self.wider[k](h), levels[k]), 1))
        return self.last(h)


class GRU(nn.Module):
    """A language model of 5000 words."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(5000, 256), nn.Linear(256, 5000)
        self.gru = nn.GRU(256, 256)

    def forward(self, x):
        return self.out(self.gru(self.embed(x.t()))[0]).reshape(-1, 5000)


def embedding(count, width):
    """With small numbers, so that scores of words by the same weights are moderate."""
    return nn.Embedding(count, width, _weight=0.02 * torch.randn(count, width))


class Block(nn.Module):
    """Attention and two layers, each normalized before."""

    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gelu = nn.GELU("tanh" if causal else "none")

    def forward(self, x):
        heads = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.fc2(self.gelu(self.fc1(self.norm2(x))))


class VisionTransformer(nn.Module):
    """6 layers of 192 with 3 heads, on patches of 16x16 of images of 224x224."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, 192))
        self.position = nn.Parameter(torch.zeros(1, 197, 192))
        self.blocks = nn.Sequential(*(Block(192, 3) for _ in range(6)))
        self.norm, self.out = nn.LayerNorm(192), nn.Linear(192, 1000)

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.first.expand(len(h), -1, -1), h], 1) + self.position
        return self.out(self.norm(self.blocks(h)[:, 0]))


class GPT(nn.Module):
    """4 layers of 512 with 8 heads, 128 tokens, a vocabulary of 8192."""

    def __init__(self):
        super().__init__()
        self.tokens = embedding(8192, 512)
        self.positions = nn.Parameter(torch.zeros(128, 512))
        self.blocks = nn.Sequential(*(Block(512, 8, True) for _ in range(4)))
        self.norm = nn.LayerNorm(512)

    def forward(self, x):
        h = self.norm(self.blocks(self.tokens(x) + self.positions))
        return F.linear(h, self.tokens.weight).flatten(0, 1)


def generate(gpt, x, length):
    """``x`` with more tokens, drawn by their scores; keys and values are kept."""
    batch, given = x.shape
    total = given + length
    shape = (len(gpt.blocks), 2, batch, 8, total, 64)
    kept, texts, new, begin = torch.empty(shape), [x], x, 0
    for _ in range(length):
        end = begin + new.shape[1]
        h = gpt.tokens(new) + gpt.positions[begin:end]
        for block, (keys, values) in zip(gpt.blocks, kept):
            heads = block.qkv(block.norm1(h)).unflatten(2, (3, block.heads, -1))
            q, keys[:, :, begin:end], values[:, :, begin:end] = heads.permute(
                2, 0, 3, 1, 4
            )
            y = F.scaled_dot_product_attention(
                q, keys[:, :, :end], values[:, :, :end], is_causal=begin == 0
            )
            h = h + block.proj(y.transpose(1, 2).flatten(2))
            h = h + block.fc2(block.gelu(block.fc1(block.norm2(h))))
        scores = F.linear(gpt.norm(h[:, -1]), gpt.tokens.weight)
        new = torch.multinomial(F.softmax(scores, -1), 1)
        texts.append(new)
        begin = end
    return torch.cat(texts, 1)


def resnet_3d():
    """18 layers for clips of 16 frames of 112x112 (Hara et al., 2018)."""
    layers = convolution(3, 64, 7, (1, 2, 2), axes=3)
    layers.append(nn.MaxPool3d(3, 2, 1))
    for channels, filters, stride in residual_3d_blocks():
        body = convolution(channels, filters, 3, stride, axes=3)
        body += convolution(filters, filters, activation=None, axes=3)
        beside = convolution(channels, filters, 1, stride, activation=None, axes=3)
        layers.append(Residual(body, beside if stride > 1 else None, True))
    return nn.Sequential(*layers, *classes_of_mean(512, 400, 3))


class WaveNet(nn.Module):
    """20 layers of 64 channels, 256 beside them (van den Oord et al., 2016)."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 64)
        self.gates = nn.ModuleList(
            nn.Conv1d(64, 128, 2, dilation=d) for d in dilations()
        )
        self.residual = nn.ModuleList(nn.Conv1d(64, 64, 1) for _ in dilations()[1:])
        self.skip = nn.ModuleList(nn.Conv1d(64, 256, 1) for _ in dilations())
        last = nn.Conv1d(256, 256, 1), nn.ReLU(True), nn.Conv1d(256, 256, 1)
        self.out = nn.Sequential(nn.ReLU(True), *last)

    def forward(self, x):
        h, total = self.embed(x).transpose(1, 2), 0
        for k, d in enumerate(dilations()):
            a, b = self.gates[k](F.pad(h, (d, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            total = total + self.skip[k](y)
            if k < len(self.residual):
                h = h + self.residual[k](y)
        return self.out(total)


class GraphConvolution(nn.Module):
    """3 layers of 256 (Kipf and Welling, 2017; sizes of Hu et al., 2020)."""

    def __init__(self, source, target, weights):
        super().__init__()
        self.register_buffer("source", torch.from_numpy(source))
        self.register_buffer("target", torch.from_numpy(target))
        self.register_buffer("weights", torch.from_numpy(weights))
        widths = (128, 256), (256, 256), (256, 40)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in widths)

    def forward(self, h):
        for k, layer in enumerate(self.layers):
            h = layer(F.relu(h, inplace=True) if k else h)
            messages = h.index_select(0, self.source) * self.weights
            h = torch.zeros_like(h).index_add(0, self.target, messages)
        return h


class BERT(nn.Module):
    """2 layers of base size, and the words at some places (Devlin et al., 2019)."""

    def __init__(self, places):
        super().__init__()
        self.register_buffer("places", torch.from_numpy(places))
        self.words = embedding(30522, 768)
        self.positions = nn.Parameter(torch.zeros(128, 768))
        self.kinds = nn.Parameter(torch.zeros(2, 768))
        self.bias = nn.Parameter(torch.zeros(30522))
        self.norm, self.last_norm = nn.LayerNorm(768), nn.LayerNorm(768)
        encoder = nn.TransformerEncoderLayer(
            768, 12, 3072, 0.0, "gelu", batch_first=True
        )
        self.encoders = nn.TransformerEncoder(encoder, 2)
        self.transform = nn.Linear(768, 768)

    def forward(self, x):
        h = self.words(x) + self.positions + self.kinds[0]
        h = self.encoders(self.norm(h))
        h = h.flatten(0, 1).index_select(0, self.places)
        h = self.last_norm(F.gelu(self.transform(h)))
        return F.linear(h, self.words.weight, self.bias)


class Recommender(nn.Module):
    """DLRM with 26 tables of 10000 (Naumov et al., 2019), for the samples' ids."""

    def __init__(self, ids):
        super().__init__()
        self.register_buffer("ids", torch.from_numpy(ids))
        self.register_buffer(
            "pairs", torch.from_numpy(np.stack(np.tril_indices(27, -1)))
        )

        def layers(*widths):
            pairs = zip(widths, widths[1:])
            return [x for pair in pairs for x in (nn.Linear(*pair), nn.ReLU(True))]

        self.tables = nn.ModuleList(embedding(10000, 16) for _ in range(26))
        self.bottom = nn.Sequential(*layers(13, 512, 256, 64, 16))
        self.top = nn.Sequential(*layers(367, 512, 256), nn.Linear(256, 2))

    def forward(self, x):
        h = self.bottom(x)
        rows = [table(self.ids[:, k]) for k, table in enumerate(self.tables)]
        features = torch.stack([h, *rows], 1)
        products = features @ features.transpose(1, 2)
        pairs = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([h, pairs], 1))
