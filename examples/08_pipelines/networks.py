"""Networks of as many layers as a pipeline may have stages."""

import numpy

import renga
import renga.functions as F
import renga.links as L

# Channels of the 3 × 3 convolutions in units of `width`; 0 halves rows and columns.
LAYERS = [1, 1, 0, 2, 2, 0, 4, 4, 0]


class VGG(renga.Chain):
    """VGG's blocks (arXiv 1409.1556) for images of 16 × 16 pixels.

    Shapes: (N, 1, 16, 16) -> (N, 10)
    """

    def __init__(self, width=16):
        super().__init__()
        channels = 1
        with self.init_scope():
            for i, units in enumerate(LAYERS):
                if units:
                    conv = L.Convolution2D(
                        channels,
                        units * width,
                        3,
                        pad=1,
                        nobias=True,
                        initialW=renga.initializers.HeNormal(),
                    )
                    channels = units * width
                    setattr(self, f"conv{i}", conv)
                    setattr(self, f"bn{i}", L.BatchNormalization(channels))
            self.fc1 = L.Linear(4 * channels, 4 * channels)
            self.fc2 = L.Linear(4 * channels, 10)

    def forward(self, x):
        for i, units in enumerate(LAYERS):
            if units:
                x = F.relu(self[f"bn{i}"](self[f"conv{i}"](x)))
            else:
                x = F.max_pooling_2d(x, 2)
        return self.fc2(F.relu(self.fc1(x)))


class LanguageModel(renga.Chain):
    """LSTMs that tell the next word; each adds to what the one before it says.

    Shapes: words (N, T) -> scores of the words that may follow (N, words, T)
    """

    def __init__(self, words, units=64, layers=2):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, units)
            self.lstms = renga.ChainList(
                *(L.NStepLSTM(1, units, units, 0.0) for _ in range(layers))
            )
            self.out = L.Linear(units, words)
        for param in self.params():
            param.array[...] = numpy.random.uniform(-0.1, 0.1, param.shape)

    def forward(self, x):
        h = self.embed(x)
        for lstm in self.lstms:
            _, _, steps = lstm(None, None, list(h))
            h = h + F.stack(steps)
        return F.swapaxes(self.out(h, n_batch_axes=2), 1, 2)
