"""Data augmentation of NumPy batches of images.

A transform is called with images (N, C, H, W) and gives new ones; it draws from NumPy's
global generator, for each image anew. :func:`converter` puts transforms between
an iterator and an updater.
"""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.transforms.color import ColorJitter as ColorJitter, Normalize as Normalize
from renga.transforms.compose import Compose as Compose, converter as converter
from renga.transforms.geometry import (
    CenterCrop as CenterCrop,
    RandomCrop as RandomCrop,
    RandomErasing as RandomErasing,
    RandomHorizontalFlip as RandomHorizontalFlip,
    RandomResizedCrop as RandomResizedCrop,
)
from renga.transforms.mixup import Mixup as Mixup

_suggest_names(__name__)
