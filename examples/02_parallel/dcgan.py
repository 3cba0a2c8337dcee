"""DCGAN, of 32 × 32 pixels unless told (Radford et al., arXiv 1511.06434)."""

import renga
import renga.functions as F
import renga.links as L


def normal():
    return renga.initializers.Normal(0.05)


def with_classes(h, labels):
    """Adds a plane for each of ten classes, which is 1 for an image's own class.

    Shapes: (N, C, H, W), labels (N,) -> (N, C + 10, H, W); (N, C) -> (N, C + 10)
    """
    xp = renga.backend.get_array_module(labels)
    planes = xp.eye(10, dtype="f")[labels].reshape(len(h), 10, *[1] * (h.ndim - 2))
    return F.concat([h, xp.broadcast_to(planes, (len(h), 10, *h.shape[2:]))], 1)


class Generator(renga.Chain):
    """Doubles rows and columns ``doublings`` times, while halving channels.

    Shapes: (N, hidden) -> (N, colours, size, size), size a multiple of 2**doublings.
    """

    def __init__(self, width=64, hidden=100, size=32, colours=3, doublings=3):
        super().__init__()
        self.first = size >> doublings  # rows and columns
        self.layers = doublings + 1
        channels = [width << i for i in reversed(range(self.layers))]
        with self.init_scope():
            units = self.first**2 * channels[0]
            # Batch normalization takes off any bias that comes before it.
            self.l0 = L.Linear(hidden, units, nobias=True, initialW=normal())
            for i, (a, b) in enumerate(zip(channels, [*channels[1:], colours])):
                last = i == doublings
                k, s = (3, 1) if last else (4, 2)
                dc = L.Deconvolution2D(a, b, k, s, 1, not last, initialW=normal())
                setattr(self, f"dc{i}", dc)
                setattr(self, f"bn{i}", L.BatchNormalization(a))

    def forward(self, z):
        h = F.reshape(self.l0(z), (len(z), -1, self.first, self.first))
        for i in range(self.layers):
            h = getattr(self, f"dc{i}")(F.relu(getattr(self, f"bn{i}")(h)))
        return F.tanh(h)


class Discriminator(renga.Chain):
    """Halves rows and columns ``doublings`` times, while doubling channels.

    Batch normalization lets it see a batch as a whole. Images that are all alike are
    then told from real ones, and the generator has to make different ones.

    Shapes: (N, colours, size, size) -> (N, 1), size a multiple of 2**doublings.
    """

    def __init__(self, width=64, size=32, colours=3, doublings=3):
        super().__init__()
        self.layers = doublings + 1
        channels = [colours, *(width << i for i in range(self.layers))]
        with self.init_scope():
            for i, (a, b) in enumerate(zip(channels, channels[1:])):
                k, s = (3, 1) if i == 0 else (4, 2)
                conv = L.Convolution2D(a, b, k, s, 1, i > 0, initialW=normal())
                setattr(self, f"conv{i}", conv)
                if i > 0:
                    setattr(self, f"bn{i}", L.BatchNormalization(b))
            pixels = (size >> doublings) ** 2
            self.out = L.Linear(pixels * channels[-1], 1, initialW=normal())

    def forward(self, x):
        x = F.leaky_relu(self.conv0(x))
        for i in range(1, self.layers):
            x = getattr(self, f"conv{i}")(x)
            x = F.leaky_relu(getattr(self, f"bn{i}")(x))
        return self.out(x)
