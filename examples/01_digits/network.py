"""A small network in the manner of VGG (Simonyan and Zisserman, arXiv 1409.1556)."""

import renga
import renga.functions as F
import renga.links as L


class Block(renga.Chain):
    """Two 3×3 convolutions, then half the height and the width.

    ELU and average pooling, where VGG has ReLU and max pooling, because they have no
    kinks: two runs that differ by rounding alone stay that close.
    """

    def __init__(self, out_channels):
        super().__init__()
        initialW = renga.initializers.HeNormal()
        with self.init_scope():
            self.conv1 = L.Convolution2D(
                None, out_channels, 3, pad=1, initialW=initialW
            )
            self.conv2 = L.Convolution2D(
                None, out_channels, 3, pad=1, initialW=initialW
            )

    def forward(self, x):
        h = F.elu(self.conv1(x))
        h = F.elu(self.conv2(h))
        return F.average_pooling_2d(h, 2)


class VGG(renga.Chain):
    """Shapes: (N, 1, 16, 16) -> (N, 10)."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.block1 = Block(32)
            self.block2 = Block(64)
            self.block3 = Block(128)
            self.fc1 = L.Linear(None, 128, initialW=renga.initializers.HeNormal())
            self.fc2 = L.Linear(128, 10)

    def forward(self, x):
        h = self.block3(self.block2(self.block1(x)))
        return self.fc2(F.elu(self.fc1(h)))
