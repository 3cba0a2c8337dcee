"""The extensions of ``renga.extensions``."""

from renga.extensions import *  # noqa: F403
