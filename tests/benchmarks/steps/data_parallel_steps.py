"""Data-parallel training steps."""

from typing import Any, Callable

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga import distributed
from tests.benchmarks.steps.renga_steps import VGG, Discriminator, Generator

Step = Callable[[], None]


def set_up(optimizer: Any, model: Any, decay: float, comm: Any) -> Any:
    optimizer.setup(model)
    optimizer.add_hook(renga.optimizer_hooks.WeightDecay(decay))
    if comm is None:
        return optimizer
    return distributed.create_multi_node_optimizer(optimizer, comm)


def synchronize(model: Any, comm: Any, synchronized: bool) -> Any:
    if not synchronized:
        return model
    return distributed.links.create_mnbn_model(model, comm)


def vgg(batch: int, comm: Any, synchronized: bool) -> Step:
    model = synchronize(L.Classifier(VGG()), comm, synchronized)
    model.compute_accuracy = False
    optimizer = set_up(renga.optimizers.MomentumSGD(0.05), model, 5e-4, comm)
    x = np.random.randn(batch, 3, 32, 32).astype("f")
    t = np.random.randint(0, 10, batch).astype("i")
    return lambda: optimizer.update(model, x, t)


def dcgan(batch: int, comm: Any, synchronized: bool) -> Step:
    networks = [
        synchronize(n, comm, synchronized) for n in (Generator(), Discriminator())
    ]
    generator, discriminator = networks
    optimizers = [
        set_up(renga.optimizers.Adam(2e-4, beta1=0.5), network, 1e-4, comm)
        for network in networks
    ]
    x = np.random.rand(batch, 3, 32, 32).astype("f")
    z = (np.random.rand(batch, 100) * 2 - 1).astype("f")

    def step() -> None:
        real = discriminator(renga.Variable(x))
        fake = discriminator(generator(renga.Variable(z)))
        loss = (F.sum(F.softplus(-real)) + F.sum(F.softplus(fake))) / batch
        losses = F.sum(F.softplus(-fake)) / batch, loss
        for network, loss in zip(networks, losses):
            parameters = list(network.params())
            for parameter, g in zip(parameters, renga.grad([loss], parameters)):
                parameter.grad = g.array
        for optimizer in optimizers:
            optimizer.update()

    return step


STEPS = {"vgg": vgg, "dcgan": dcgan}
