"""The same training steps in PyTorch, plain or with channels-last memory."""

import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.benchmarks.steps import torch_networks as networks
from tests.benchmarks.steps.sizes import DISCRIMINATOR, VGG_STAGES, graph_edges

CHANNELS_LAST = os.environ.get("CHANNELS_LAST") == "1"
MIXED = os.environ.get("DTYPE") == "mixed"
DEVICE = "cpu" if os.environ.get("DEVICE", "@numpy") == "@numpy" else "cuda"
# Whether networks of classifiers are compiled, with graphs of CUDA.
STATIC = os.environ.get("STATIC") == "1"
torch.backends.cudnn.allow_tf32 = False  # float32 is that of IEEE on both sides
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def synchronize():
    """Waits for the device."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def laid_out(x):
    """An array or a network, with channels last if it is of images or of volumes."""
    x = x.to(DEVICE)
    axes = max(p.ndim for p in getattr(x, "parameters", lambda: [x])())
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.to(memory_format=formats[axes]) if CHANNELS_LAST and axes in formats else x


def precision():
    return torch.autocast(DEVICE, torch.bfloat16, enabled=MIXED)


class Beta(nn.BatchNorm2d):
    """Batch normalization that learns a shift and no scale."""

    def __init__(self, channels):
        super().__init__(channels, 2e-5)
        del self.weight
        self.register_buffer("weight", torch.ones(channels))


def vgg_network():
    layers, channels = [], 3
    for filters, depth, ratio in VGG_STAGES:
        for k in range(depth):
            layers.append(nn.Conv2d(channels, filters, 3, 1, 1, bias=False))
            layers += [nn.BatchNorm2d(filters, 2e-5), nn.ReLU(inplace=True)]
            channels = filters
            if k < depth - 1:
                layers.append(nn.Dropout(ratio))
        layers.append(nn.MaxPool2d(2, 2))
    layers += [nn.Dropout(0.5), nn.Flatten(), nn.Linear(512, 512, bias=False)]
    layers += [nn.BatchNorm1d(512, 2e-5), nn.ReLU(inplace=True), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(512, 10, bias=False))


def generator_network():
    layers = [nn.Linear(100, 8192), nn.BatchNorm1d(8192, 2e-5), nn.ReLU()]
    layers.append(nn.Unflatten(1, (512, 4, 4)))
    for channels in (512, 256, 128):
        layers.append(nn.ConvTranspose2d(channels, channels // 2, 4, 2, 1))
        layers += [nn.BatchNorm2d(channels // 2, 2e-5), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 3, 1, 1), nn.Sigmoid())


def discriminator_network():
    layers = []
    for i, size in enumerate(DISCRIMINATOR):
        layers.append(nn.Conv2d(*size, 1))
        layers += [Beta(size[1])] * (i > 0) + [nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8192, 1))


class Bottleneck(nn.Module):
    """A residual block; it halves the image by its 3x3 convolution."""

    def __init__(self, channels, width, stride):
        super().__init__()
        sizes = [(channels, width, 1, 1, 0), (width, width, 3, stride, 1)]
        layers = []
        for size in [*sizes, (width, 4 * width, 1, 1, 0)]:
            layers += [nn.Conv2d(*size, bias=False), nn.BatchNorm2d(size[1], 2e-5)]
            layers.append(nn.ReLU(inplace=True))
        self.body, self.beside = nn.Sequential(*layers[:-1]), nn.Identity()
        if channels != 4 * width:
            conv = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.beside = nn.Sequential(conv, nn.BatchNorm2d(4 * width, 2e-5))

    def forward(self, x):
        return F.relu(self.body(x) + self.beside(x), inplace=True)


def resnet_network():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64, 2e-5)]
    layers += [nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for group, count in enumerate((3, 4, 6, 3)):
        for k in range(count):
            stride = 2 if k == 0 and group > 0 else 1
            layers.append(Bottleneck(channels, 64 << group, stride))
            channels = 256 << group
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    return nn.Sequential(*layers)


def classifier(network, make_optimizer, x, classes=10, labels=None):
    network, x = laid_out(network), laid_out(x)
    optimizer = make_optimizer(network.parameters())
    if STATIC:
        network = torch.compile(network, mode="reduce-overhead")
    t = torch.randint(0, classes, labels or (len(x),)).to(DEVICE)

    def step():
        with precision():
            loss = F.cross_entropy(network(x).float(), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def by_adam(network, x, classes, labels=None):
    def adam(p):
        return torch.optim.Adam(p, fused=True)

    return classifier(network, adam, x, classes, labels)


def mlp():
    layers = [nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(1000, 10))
    return by_adam(network, torch.rand(100, 784), 10)


def vgg():
    def sgd(p):
        return torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=5e-4, fused=True)

    return classifier(vgg_network(), sgd, torch.randn(64, 3, 32, 32))


def resnet(batch=32):
    def sgd(p):
        return torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4, fused=True)

    x = torch.randn(batch, 3, 224, 224)
    return classifier(resnet_network(), sgd, x, classes=1000)


def images(batch, size):
    return torch.randn(batch, 3, size, size)


def resnet20():
    return by_adam(networks.resnet20(), images(64, 32), 10)


def densenet():
    return by_adam(networks.densenet(), images(4, 224), 1000)


def mobilenet():
    return by_adam(networks.mobilenet(), images(8, 224), 1000)


def unet():
    return by_adam(networks.UNet(), images(4, 128), 4, (4, 128, 128))


def vit():
    return by_adam(networks.VisionTransformer(), images(16, 224), 1000)


def gru():
    return by_adam(networks.GRU(), torch.randint(0, 5000, (32, 40)), 5000, (1280,))


def gpt():
    x = torch.randint(0, 128, (8, 128))
    return by_adam(networks.GPT(), x, 128, (x.numel(),))


def resnet_3d():
    return by_adam(networks.resnet_3d(), torch.randn(1, 3, 16, 112, 112), 400)


def wavenet():
    x = torch.randint(0, 256, (2, 4096))
    return by_adam(networks.WaveNet(), x, 256, x.shape)


def graph(nodes=10000):
    network = networks.GraphConvolution(*graph_edges(nodes))
    return by_adam(network, torch.randn(nodes, 128), 40)


def bert():
    """The words at 15 % of 128 places are asked for."""
    x = torch.randint(0, 30522, (4, 128))
    places = np.random.permutation(x.numel())[: x.numel() * 15 // 100]
    return by_adam(networks.BERT(places), x, 30522, places.shape)


def recommender(batch=2048):
    def sgd(p):
        return torch.optim.SGD(p, 0.1, fused=True)

    network = networks.Recommender(np.random.randint(0, 10000, (batch, 26)))
    return classifier(network, sgd, torch.rand(batch, 13), classes=2)


def small():
    """100 operations on few numbers, forward and backward."""
    w = torch.ones(4, 4, device=DEVICE, requires_grad=True)
    x, y = torch.ones(4, 4, device=DEVICE), torch.zeros(4, 4, device=DEVICE)

    def step():
        h = w
        for _ in range(50):
            h = (h + y) * x
        w.grad = None
        h.sum().backward()

    return step


def dcgan(batch=64):
    generator = laid_out(generator_network())
    discriminator = laid_out(discriminator_network())
    networks = generator, discriminator
    parameters = [list(network.parameters()) for network in networks]
    options = dict(betas=(0.5, 0.999), weight_decay=1e-4, fused=True)
    optimizers = [torch.optim.Adam(p, 2e-4, **options) for p in parameters]
    x, z = (
        laid_out(torch.rand(batch, 3, 32, 32)),
        torch.rand(batch, 100).to(DEVICE) * 2 - 1,
    )

    def step():
        with precision():
            fake = discriminator(generator(z)).float()
            real = discriminator(x).float()
        discriminator_loss = (F.softplus(-real).sum() + F.softplus(fake).sum()) / batch
        losses = F.softplus(-fake).sum() / batch, discriminator_loss
        for ps, loss in zip(parameters, losses):
            gradients = torch.autograd.grad(loss, ps, retain_graph=loss is losses[0])
            for p, g in zip(ps, gradients):
                p.grad = g
        for optimizer in optimizers:
            optimizer.step()

    return step


STEPS = {"mlp": mlp, "vgg": vgg, "dcgan": dcgan, "resnet": resnet, "small": small}
STEPS |= {"resnet20": resnet20, "mobilenet": mobilenet, "unet": unet, "vit": vit}
STEPS |= {"gru": gru, "gpt": gpt, "densenet": densenet, "resnet_3d": resnet_3d}
STEPS |= {"wavenet": wavenet, "graph": graph, "bert": bert}
STEPS |= {"recommender": recommender}
