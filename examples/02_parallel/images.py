"""Images of 32 × 32 pixels with three colours and ten classes."""

import numpy

import renga


def load(name="digits"):
    """(images, labels) to train and to test with: ``cifar10``, or digits made larger.

    Shapes:
        images: (n, 3, 32, 32), from -1 to 1
        labels: (n,)
    """
    if name == "cifar10":
        sets = renga.datasets.get_cifar10()
    else:
        sets = renga.datasets.get_digits(ndim=3, rgb_format=True, upscale=32)
    return [
        (numpy.stack([x for x, _ in s]) * 2 - 1, numpy.array([t for _, t in s]))
        for s in sets
    ]
