"""Data augmentation of NumPy batches of images.

A transform is called with images (N, C, H, W) and gives new ones; it draws from NumPy's
global generator, for each image anew. :func:`converter` puts transforms between
an iterator and an updater.
"""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.transforms.color import ColorJitter, Normalize
from renga.transforms.compose import Compose, converter
from renga.transforms.geometry import (
    CenterCrop,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
)
from renga.transforms.mixup import Mixup

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "Mixup",
    "Normalize",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "converter",
]

_suggest_names(__name__)
