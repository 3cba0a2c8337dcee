"""Images of ten classes."""

import numpy

import renga


def load(name="digits", size=32, rgb=True):
    """(images, labels) to train and to test with: ``cifar10``, or digits made larger.

    Shapes:
        images: (n, 3, size, size), from -1 to 1, or (n, 1, size, size) for digits
            without ``rgb``; those of CIFAR-10 have 32 × 32 pixels
        labels: (n,)
    """
    if name == "cifar10":
        sets = renga.datasets.get_cifar10()
    else:
        sets = renga.datasets.get_digits(ndim=3, rgb_format=rgb, upscale=size)
    return [
        (numpy.stack([x for x, _ in s]) * 2 - 1, numpy.array([t for _, t in s]))
        for s in sets
    ]
