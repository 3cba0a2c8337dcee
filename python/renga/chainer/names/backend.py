"""``chainer._backend``."""

from renga.backends.device import Device

__all__ = ["Device"]
