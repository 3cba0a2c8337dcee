"""Compression of gradients between nodes."""

from renga.parallel.compression import *  # noqa: F403
from renga.parallel.compression import __all__ as __all__
