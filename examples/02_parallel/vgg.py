"""VGG-16 for small images, with batch normalization (arXiv 1409.1556, 1502.03167)."""

import renga
import renga.functions as F
import renga.links as L

# Channels of the 3 × 3 convolutions in units of `width`; 0 halves rows and columns.
LAYERS = [1, 1, 0, 2, 2, 0, 4, 4, 4, 0, 8, 8, 8, 0, 8, 8, 8, 0]


class VGG16(renga.Chain):
    """Shapes: (N, 3, 32 h, 32 w) -> (N, classes); ``width`` channels at first."""

    def __init__(self, width=64, classes=10):
        super().__init__()
        self.layers = []
        channels = 3
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
            self.fc1 = L.Linear(channels, channels, nobias=True)
            self.bn_fc1 = L.BatchNormalization(channels)
            self.fc2 = L.Linear(channels, classes)

    def forward(self, x):
        for i, units in enumerate(LAYERS):
            if units:
                conv, bn = getattr(self, f"conv{i}"), getattr(self, f"bn{i}")
                x = F.relu(bn(conv(x)))
            else:
                x = F.max_pooling_2d(x, 2)
        x = F.average(x, axis=(2, 3))  # of one pixel, for images of 32 × 32
        return self.fc2(F.relu(self.bn_fc1(self.fc1(x))))
