"""Asynchronous and decentralised training: no barrier, or no centre."""

from renga.parallel.asynchronous import *  # noqa: F403
from renga.parallel.asynchronous import __all__ as __all__
