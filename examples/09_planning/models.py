"""The models that plan.py knows, with an example of what each is called with."""

import numpy

import renga
import renga.functions as F
import renga.links as L

WORDS = 1000


class Small(renga.Chain):
    """Two convolutions, whose images are large, and linear layers with many weights."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 32, 5, pad=2)
            self.conv2 = L.Convolution2D(32, 64, 5, pad=2)
            self.fc1 = L.Linear(64 * 8 * 8, 1024)
            self.fc2 = L.Linear(1024, 10)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.conv1(x)), 2)
        h = F.max_pooling_2d(F.relu(self.conv2(h)), 2)
        return self.fc2(F.relu(self.fc1(h)))


class VGG(renga.Chain):
    """VGG-16 for images of 32 × 32 pixels.

    Source: Simonyan and Zisserman, Very deep convolutional networks, 2014.
    """

    def __init__(self):
        super().__init__()
        channels = [3]
        with self.init_scope():
            self.convolutions = renga.ChainList()
            for size, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
                for _ in range(count):
                    self.convolutions.append(
                        L.Convolution2D(channels[-1], size, 3, pad=1)
                    )
                    channels.append(size)
            self.fc1 = L.Linear(512, 512)
            self.fc2 = L.Linear(512, 10)

    def forward(self, x):
        for i, convolution in enumerate(self.convolutions):
            x = F.relu(convolution(x))
            if i in (1, 3, 6, 9, 12):
                x = F.max_pooling_2d(x, 2)
        return self.fc2(F.relu(self.fc1(x)))


class ResNet50(renga.Chain):
    """ResNet-50 without its softmax."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.base = L.ResNet50Layers(pretrained_model=None)

    def forward(self, x):
        return self.base(x, layers=["fc6"])["fc6"]


class GoogLeNet(renga.Chain):
    """GoogLeNet without its softmax and its auxiliary classifiers."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.base = L.GoogLeNet(pretrained_model=None)

    def forward(self, x):
        return self.base(x, layers=["loss3_fc"])["loss3_fc"]


class LanguageModel(renga.Chain):
    """Two LSTM layers; predicts each next word."""

    def __init__(self, size=256):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(WORDS, size)
            self.layer1 = L.LSTM(size, size)
            self.layer2 = L.LSTM(size, size)
            self.output = L.Linear(size, WORDS)

    def forward(self, words):
        self.layer1.reset_state()
        self.layer2.reset_state()
        ys = []
        for t in range(words.shape[1]):
            h = self.layer2(self.layer1(self.embed(words[:, t])))
            ys.append(self.output(h))
        return F.concat(ys, axis=0)


class Seq2seq(renga.Chain):
    """An encoder of one sentence and a decoder of another one."""

    def __init__(self, size=256):
        super().__init__()
        with self.init_scope():
            self.embed_source = L.EmbedID(WORDS, size)
            self.embed_target = L.EmbedID(WORDS, size)
            self.encoder = L.LSTM(size, size)
            self.decoder = L.LSTM(size, size)
            self.output = L.Linear(size, WORDS)

    def forward(self, source, target):
        self.encoder.reset_state()
        for t in range(source.shape[1]):
            self.encoder(self.embed_source(source[:, t]))
        self.decoder.set_state(self.encoder.c, self.encoder.h)
        ys = []
        for t in range(target.shape[1]):
            ys.append(self.output(self.decoder(self.embed_target(target[:, t]))))
        return F.concat(ys, axis=0)


def images(batch, size):
    """A batch of images."""
    return (numpy.random.randn(batch, 3, size, size).astype(numpy.float32),)


def sentences(batch, count):
    """A batch of sentences of ten words, ``count`` times."""
    shape = batch, 10
    return tuple(
        numpy.random.randint(0, WORDS, shape).astype(numpy.int32) for _ in range(count)
    )


MODELS = {
    "small": (Small, lambda batch: images(batch, 32)),
    "VGG-16": (VGG, lambda batch: images(batch, 32)),
    "ResNet-50": (ResNet50, lambda batch: images(batch, 224)),
    "GoogLeNet": (GoogLeNet, lambda batch: images(batch, 224)),
    "LSTM": (LanguageModel, lambda batch: sentences(batch, 1)),
    "seq2seq": (Seq2seq, lambda batch: sentences(batch, 2)),
}
