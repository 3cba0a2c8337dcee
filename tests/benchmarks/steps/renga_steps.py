"""The training steps in renga."""

import os

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from tests.benchmarks.steps import renga_networks as networks
from tests.benchmarks.steps.sizes import DISCRIMINATOR, VGG_STAGES, graph_edges

if os.environ.get("DTYPE") == "mixed":
    renga.global_config.dtype = renga.mixed_bfloat16

DEVICE = renga.get_device(os.environ.get("DEVICE", "@numpy"))
# Whether steps of classifiers are recorded as graphs of CUDA.
STATIC = os.environ.get("STATIC") == "1"


class MLP(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2 = L.Linear(784, 1000), L.Linear(1000, 1000)
            self.l3 = L.Linear(1000, 10)

    def forward(self, x):
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


class Block(renga.Chain):
    def __init__(self, channels, filters):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(channels, filters, 3, pad=1, nobias=True)
            self.bn = L.BatchNormalization(filters)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class VGG(renga.Chain):
    """VGG-16 for 32x32 images, with batch normalization and dropout."""

    def __init__(self):
        super().__init__()
        channels, blocks = 3, []
        for filters, depth, _ in VGG_STAGES:
            for _ in range(depth):
                blocks.append(Block(channels, filters))
                channels = filters
        with self.init_scope():
            self.blocks = renga.ChainList(*blocks)
            self.fc1 = L.Linear(512, 512, nobias=True)
            self.bn = L.BatchNormalization(512)
            self.fc2 = L.Linear(512, 10, nobias=True)

    def forward(self, h):
        blocks = iter(self.blocks)
        for _, depth, ratio in VGG_STAGES:
            for k in range(depth):
                h = next(blocks)(h)
                if k < depth - 1:
                    h = F.dropout(h, ratio)
            h = F.max_pooling_2d(h, 2, 2)
        h = F.relu(self.bn(self.fc1(F.dropout(h, 0.5))))
        return self.fc2(F.dropout(h, 0.5))


class Generator(renga.Chain):
    def __init__(self):
        super().__init__()
        w = renga.initializers.Normal(0.02)
        with self.init_scope():
            self.l0 = L.Linear(100, 4 * 4 * 512, initialW=w)
            self.dc1 = L.Deconvolution2D(512, 256, 4, 2, 1, initialW=w)
            self.dc2 = L.Deconvolution2D(256, 128, 4, 2, 1, initialW=w)
            self.dc3 = L.Deconvolution2D(128, 64, 4, 2, 1, initialW=w)
            self.dc4 = L.Deconvolution2D(64, 3, 3, 1, 1, initialW=w)
            self.bn0 = L.BatchNormalization(4 * 4 * 512)
            self.bn1, self.bn2 = L.BatchNormalization(256), L.BatchNormalization(128)
            self.bn3 = L.BatchNormalization(64)

    def forward(self, z):
        h = F.reshape(F.relu(self.bn0(self.l0(z))), (len(z), 512, 4, 4))
        h = F.relu(self.bn1(self.dc1(h)))
        h = F.relu(self.bn2(self.dc2(h)))
        return F.sigmoid(self.dc4(F.relu(self.bn3(self.dc3(h)))))


class Discriminator(renga.Chain):
    def __init__(self):
        super().__init__()
        w = renga.initializers.Normal(0.02)
        convs = [L.Convolution2D(*layer, 1, initialW=w) for layer in DISCRIMINATOR]
        bns = [L.BatchNormalization(c[1], use_gamma=False) for c in DISCRIMINATOR[1:]]
        with self.init_scope():
            self.convs, self.bns = renga.ChainList(*convs), renga.ChainList(*bns)
            self.l4 = L.Linear(4 * 4 * 512, 1, initialW=w)

    def forward(self, x):
        h = F.leaky_relu(self.convs[0](x))
        for conv, bn in zip(list(self.convs)[1:], self.bns):
            h = F.leaky_relu(bn(conv(h)))
        return self.l4(h)


def as_it_is(network, *inputs):
    return network


def static(network, *inputs):
    """``network`` with a forward pass that becomes a graph of CUDA."""
    kind = type(network)
    forward = renga.static_graph(kind.forward)
    network.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    return network


def synchronize():
    """Waits for the device."""
    if DEVICE.xp is not np:
        DEVICE.device.synchronize()


def classifier(network, optimizer, x, hook=None, classes=10, labels=None, **options):
    """``labels`` is the shape of the labels, by default that of one for each sample.

    The network is called with the options.
    """
    model = L.Classifier(network).to_device(DEVICE)
    model.compute_accuracy = False
    optimizer.setup(model)
    if hook is not None:
        optimizer.add_hook(hook)
    t = np.random.randint(0, classes, labels or (len(x),)).astype("i")
    x, t = DEVICE.send((x, t))
    if STATIC:
        step = renga.static_step(lambda x, t: model(x, t, **options), optimizer)
        return lambda: step(x, t)
    return lambda: optimizer.update(model, x, t, **options)


def mlp():
    x = np.random.rand(100, 784).astype("f")
    return classifier(MLP(), renga.optimizers.Adam(), x)


def vgg(batch=64, prepare=as_it_is):
    """``prepare`` gets each network with an example of its inputs, and returns one."""
    x = np.random.randn(batch, 3, 32, 32).astype("f")
    decay = renga.optimizer_hooks.WeightDecay(5e-4)
    network = prepare(VGG(), x)
    return classifier(network, renga.optimizers.MomentumSGD(0.05), x, decay)


def resnet(batch=32):
    x = np.random.randn(batch, 3, 224, 224).astype("f")
    decay = renga.optimizer_hooks.WeightDecay(1e-4)
    optimizer = renga.optimizers.MomentumSGD(0.1)
    return classifier(L.ResNet50(), optimizer, x, decay, classes=1000)


def by_adam(network, x, classes, labels=None, **options):
    adam = renga.optimizers.Adam()
    return classifier(network, adam, x, None, classes, labels, **options)


def images(batch, size):
    return np.random.randn(batch, 3, size, size).astype("f")


def resnet20(batch=64):
    return by_adam(networks.resnet20(), images(batch, 32), 10)


def densenet(batch=4):
    return by_adam(L.DenseNet121(), images(batch, 224), 1000)


def mobilenet(batch=8):
    return by_adam(L.MobileNetV2(), images(batch, 224), 1000)


def unet(batch=4):
    network = L.UNet(4, (32, 64, 128, 256))
    return by_adam(network, images(batch, 128), 4, (batch, 128, 128))


def vit(batch=16):
    """6 layers of 192 with 3 heads, on patches of 16x16."""
    network = L.VisionTransformer(224, 16, 6, 3, 192, 768)
    return by_adam(network, images(batch, 224), 1000)


def gru(batch=32):
    """40 words of each sequence."""
    x = np.random.randint(0, 5000, (batch, 40)).astype("i")
    return by_adam(networks.GRU(), x, 5000, (40 * batch,))


def resnet_3d(batch=1, frames=16, size=112):
    x = np.random.randn(batch, 3, frames, size, size).astype("f")
    return by_adam(networks.resnet_3d(), x, 400)


def wavenet(batch=2, samples=4096):
    x = np.random.randint(0, 256, (batch, samples)).astype("i")
    return by_adam(networks.WaveNet(), x, 256, x.shape)


def graph(nodes=10000):
    x = np.random.randn(nodes, 128).astype("f")
    return by_adam(networks.GraphConvolution(*graph_edges(nodes)), x, 40)


def bert(batch=4):
    """2 layers of base size; the words at 15 % of 128 places are asked for."""
    x = np.random.randint(0, 30522, (batch, 128)).astype("i")
    places = np.random.permutation(x.size)[: x.size * 15 // 100]
    network = L.BERT(context=128, num_layers=2, dropout=0.0)
    return by_adam(network, x, 30522, places.shape, places=places)


def recommender(batch=2048):
    x = np.random.rand(batch, 13).astype("f")
    network = networks.Recommender(np.random.randint(0, 10000, (batch, 26)))
    return classifier(network, renga.optimizers.SGD(0.1), x, classes=2)


def small():
    """100 operations on few numbers, forward and backward."""
    w = renga.Parameter(np.ones((4, 4), "f"))
    w.to_device(DEVICE)
    x, y = DEVICE.send((np.ones((4, 4), "f"), np.zeros((4, 4), "f")))

    def step():
        h = w
        for _ in range(50):
            h = (h + y) * x
        w.cleargrad()
        F.sum(h).backward()
        return w.grad

    return step


def dcgan(batch=64, prepare=as_it_is):
    x = np.random.rand(batch, 3, 32, 32).astype("f")
    z = (np.random.rand(batch, 100) * 2 - 1).astype("f")
    generator, discriminator = prepare(Generator(), z), prepare(Discriminator(), x)
    networks = generator, discriminator
    for network in networks:
        network.to_device(DEVICE)
    x, z = DEVICE.send((x, z))
    optimizers = []
    for network in networks:
        optimizers.append(renga.optimizers.Adam(2e-4, beta1=0.5).setup(network))
        optimizers[-1].add_hook(renga.optimizer_hooks.WeightDecay(1e-4))

    def step():
        real = discriminator(renga.Variable(x))
        fake = discriminator(generator(renga.Variable(z)))
        discriminator_loss = F.sum(F.softplus(-real)) + F.sum(F.softplus(fake))
        losses = F.sum(F.softplus(-fake)) / batch, discriminator_loss / batch
        for network, loss in zip(networks, losses):
            parameters = list(network.params())
            for parameter, g in zip(parameters, renga.grad([loss], parameters)):
                parameter.grad = g.array
        for optimizer in optimizers:
            optimizer.update()

    return step


def language_model(gpt, x, loss_of):
    optimizer = renga.optimizers.Adam(1e-4).setup(gpt)
    t = np.random.randint(0, 128, x.shape).astype("i")
    x, t = DEVICE.send((x, t))

    def loss(x, t):
        scores = gpt(x)
        rows = F.reshape(scores, (-1, scores.shape[2]))
        return loss_of(rows, t[:, : scores.shape[1]].ravel())

    if STATIC:
        step = renga.static_step(loss, optimizer)
        return lambda: step(x, t)
    return lambda: optimizer.update(loss, x, t)


def gpt(batch=8, prepare=as_it_is, loss_of=F.softmax_cross_entropy):
    """4 layers of 512 with 8 heads, 128 tokens, a vocabulary of 8192.

    ``loss_of`` takes the scores that the prepared network returns.
    """
    x = np.random.randint(0, 128, (batch, 128)).astype("i")
    gpt = L.GPT2(8192, 128, 512, 4, 8, dropout=0.0).to_device(DEVICE)
    network = prepare(gpt, x)
    return language_model(network, x, loss_of)


def long_gpt(
    batch=1,
    prepare=as_it_is,
    loss_of=F.softmax_cross_entropy,
    take=None,
    tokens=4096,
):
    """The same for 4096 tokens, a vocabulary of 256.

    ``take`` returns the tokens that the prepared network takes.
    """
    x = np.random.randint(0, 256, (batch, tokens)).astype("i")
    gpt = L.GPT2(256, tokens, 512, 4, 8, dropout=0.0).to_device(DEVICE)
    network = prepare(gpt, x)
    return language_model(network, x if take is None else take(x), loss_of)


STEPS = {"mlp": mlp, "vgg": vgg, "dcgan": dcgan, "resnet": resnet, "small": small}
STEPS |= {"gpt": gpt, "long_gpt": long_gpt, "resnet20": resnet20}
STEPS |= {"mobilenet": mobilenet, "unet": unet, "vit": vit, "gru": gru}
STEPS |= {"densenet": densenet, "resnet_3d": resnet_3d, "wavenet": wavenet}
STEPS |= {"graph": graph, "bert": bert, "recommender": recommender}
