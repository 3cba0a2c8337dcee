"""The same training steps in PyTorch, plain or with channels-last memory."""

import os

import torch
import torch.nn.functional as F
from torch import nn

VGG_STAGES = [(64, 2, 0.3), (128, 2, 0.4), (256, 3, 0.4), (512, 3, 0.4), (512, 3, 0.4)]
CHANNELS_LAST = os.environ.get("CHANNELS_LAST") == "1"
MIXED = os.environ.get("DTYPE") == "mixed"
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def laid_out(x):
    return x.to(memory_format=torch.channels_last) if CHANNELS_LAST else x


def precision():
    return torch.autocast("cpu", torch.bfloat16, enabled=MIXED)


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
    sizes = [(3, 64, 3, 1), (64, 128, 4, 2), (128, 128, 3, 1), (128, 256, 4, 2)]
    sizes += [(256, 256, 3, 1), (256, 512, 4, 2), (512, 512, 3, 1)]
    layers = []
    for i, size in enumerate(sizes):
        layers.append(nn.Conv2d(*size, 1))
        layers += [Beta(size[1])] * (i > 0) + [nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8192, 1))


def classifier(network, make_optimizer, x):
    network, x = laid_out(network), laid_out(x) if x.ndim == 4 else x
    optimizer = make_optimizer(network.parameters())
    t = torch.randint(0, 10, (len(x),))

    def step():
        with precision():
            loss = F.cross_entropy(network(x).float(), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def mlp():
    layers = [nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(1000, 10))
    return classifier(
        network, lambda p: torch.optim.Adam(p, fused=True), torch.rand(100, 784)
    )


def vgg():
    def sgd(p):
        return torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=5e-4, fused=True)

    return classifier(vgg_network(), sgd, torch.randn(64, 3, 32, 32))


def dcgan(batch=64):
    generator = laid_out(generator_network())
    discriminator = laid_out(discriminator_network())
    networks = generator, discriminator
    parameters = [list(network.parameters()) for network in networks]
    options = dict(betas=(0.5, 0.999), weight_decay=1e-4, fused=True)
    optimizers = [torch.optim.Adam(p, 2e-4, **options) for p in parameters]
    x, z = laid_out(torch.rand(batch, 3, 32, 32)), torch.rand(batch, 100) * 2 - 1

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


STEPS = {"mlp": mlp, "vgg": vgg, "dcgan": dcgan}
