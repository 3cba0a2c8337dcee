"""U-Net: scores of classes for each pixel of an image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from renga.core.link import Chain
from renga.core.sequential import Sequential
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import concat, max_pooling_2d, relu
from renga.links.convolution.convolution import Convolution2D
from renga.links.convolution.deconvolution import Deconvolution2D
from renga.links.model.torch_names import State, renamed
from renga.links.model.vision.inverted_residual import convolution
from renga.utils.extents import check_counts

# Pytorch-UNet's names, and those of the parts here.
_NAMES = {
    r"^inc\.double_conv\.": "down0.",
    r"^down(\d)\.maxpool_conv\.1\.double_conv\.": r"down\1.",
    r"^up(\d)\.up\.": r"larger\1.",
    r"^up(\d)\.conv\.double_conv\.": r"up\1.",
    r"^outc\.conv\.": "last.",
}


def _twice(inputs: int, outputs: int) -> Sequential:
    first = convolution(inputs, outputs, 3, activation=relu)
    second = convolution(outputs, outputs, 3, activation=relu)
    return Sequential(*first, *second)


class UNet(Chain):
    """Convolutions of smaller and smaller images, and back to larger ones.

    Each image on the way back is joined with that of its size on the way there.
    ``load_torch_state_dict`` loads the weights of Pytorch-UNet, whose images are made
    larger by transposed convolutions.

    Args:
        num_classes: the number of classes.
        widths: the channels at each size, from the largest image to the smallest.
        in_channels: those of x.

    Shapes:
        x: (N, in_channels, H, W), H and W multiples of 2 to the number of smaller sizes
        y: (N, num_classes, H, W), before softmax

    Raises:
        TypeError: ``widths`` are no integers.

    Source: Ronneberger et al., U-Net: convolutional networks for biomedical image
    segmentation, 2015.
    """

    def __init__(
        self,
        num_classes: int,
        widths: Sequence[int] = (64, 128, 256, 512, 1024),
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        widths = check_counts("UNet", "widths", widths)
        self.depth = len(widths) - 1
        channels = in_channels
        with self.init_scope():
            for k, width in enumerate(widths):
                setattr(self, f"down{k}", _twice(channels, width))
                channels = width
            for k, width in enumerate(reversed(widths[:-1]), 1):
                setattr(self, f"larger{k}", Deconvolution2D(channels, width, 2, 2))
                setattr(self, f"up{k}", _twice(2 * width, width))
                channels = width
            self.last = Convolution2D(channels, num_classes, 1)

    def forward(self, x: ArrayLike) -> Variable:
        """The scores of each pixel's classes."""
        images = [self["down0"](x)]
        for k in range(1, self.depth + 1):
            images.append(self[f"down{k}"](max_pooling_2d(images[-1], 2)))
        h = images.pop()
        for k in range(1, self.depth + 1):
            h = self[f"up{k}"](concat((images.pop(), self[f"larger{k}"](h)), 1))
        return self.last(h)

    def torch_state(self, state: State) -> dict[str, numpy.ndarray]:
        """The arrays of Pytorch-UNet's state with the names of the parts here."""
        return renamed(state, _NAMES)
