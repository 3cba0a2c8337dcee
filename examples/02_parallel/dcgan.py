"""DCGAN, of 32 × 32 pixels unless told (Radford et al., arXiv 1511.06434)."""

import renga
import renga.functions as F
import renga.links as L


def normal():
    return renga.initializers.Normal(0.05)


class Generator(renga.Chain):
    """Shapes: (N, hidden) -> (N, 3, size, size), size a multiple of 8."""

    def __init__(self, width=64, hidden=100, size=32):
        super().__init__()
        self.first = size // 8  # rows and columns
        channels = [8 * width, 4 * width, 2 * width, width]
        with self.init_scope():
            units = self.first**2 * channels[0]
            self.l0 = L.Linear(hidden, units, initialW=normal())
            for i, (a, b) in enumerate(zip(channels, [*channels[1:], 3])):
                k, s = (4, 2) if i < 3 else (3, 1)
                dc = L.Deconvolution2D(a, b, k, s, 1, initialW=normal())
                setattr(self, f"dc{i}", dc)
                setattr(self, f"bn{i}", L.BatchNormalization(a))

    def forward(self, z):
        h = F.reshape(self.l0(z), (len(z), -1, self.first, self.first))
        for i in range(4):
            h = getattr(self, f"dc{i}")(F.relu(getattr(self, f"bn{i}")(h)))
        return F.tanh(h)


class Discriminator(renga.Chain):
    """Shapes: (N, 3, size, size) -> (N, 1), size a multiple of 8.

    Without batch normalization, by which it would tell batches instead of images.
    """

    def __init__(self, width=64, size=32):
        super().__init__()
        channels = [3, width, 2 * width, 4 * width, 8 * width]
        with self.init_scope():
            for i, (a, b) in enumerate(zip(channels, channels[1:])):
                k, s = (3, 1) if i == 0 else (4, 2)
                conv = L.Convolution2D(a, b, k, s, 1, initialW=normal())
                setattr(self, f"conv{i}", conv)
            pixels = (size // 8) ** 2
            self.l4 = L.Linear(pixels * channels[-1], 1, initialW=normal())

    def forward(self, x):
        for i in range(4):
            x = F.leaky_relu(getattr(self, f"conv{i}")(x))
        return self.l4(x)
