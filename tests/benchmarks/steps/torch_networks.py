"""The networks of renga_networks.py in PyTorch."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.benchmarks.steps.sizes import mobilenet_blocks, resnet20_blocks


def convolution(channels, filters, ksize=3, stride=1, groups=1, activation=nn.ReLU):
    """With batch normalization, as layers of a sequence."""
    conv = nn.Conv2d(
        channels, filters, ksize, stride, ksize // 2, groups=groups, bias=False
    )
    layers = [conv, nn.BatchNorm2d(filters, 2e-5)]
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


def classes_of_mean(channels, classes):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


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
    return [nn.BatchNorm2d(channels, 2e-5), nn.ReLU(inplace=True), conv]


def densenet():
    """40 layers with a growth of 12 (Huang et al., 2017)."""
    layers, channels = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
    for block in range(3):
        if block > 0:
            layers += activated(channels, channels, 1) + [nn.AvgPool2d(2)]
        for _ in range(12):
            layers.append(Dense(activated(channels, 12, 3)))
            channels += 12
    layers += [nn.BatchNorm2d(channels, 2e-5), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, *classes_of_mean(channels, 10))


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
    return nn.Sequential(*layers, *classes_of_mean(1280, 1000))


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


class Block(nn.Module):
    """Attention with 3 heads and two layers, on 192 channels."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(192), nn.LayerNorm(192)
        self.qkv, self.proj = nn.Linear(192, 576), nn.Linear(192, 192)
        self.fc1, self.fc2 = nn.Linear(192, 768), nn.Linear(768, 192)

    def forward(self, x):
        n, tokens, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(n, tokens, 3, 3, 64)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + self.proj(y.reshape(n, tokens, 192))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class VisionTransformer(nn.Module):
    """6 layers of 192 with 3 heads, on patches of 16x16 of images of 224x224."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, 16)
        self.position = nn.Parameter(torch.zeros(1, 196, 192))
        self.blocks = nn.Sequential(*(Block() for _ in range(6)))
        self.norm, self.out = nn.LayerNorm(192), nn.Linear(192, 1000)

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.out(self.norm(self.blocks(h)).mean(1))
