"""The extensions of the room of that name."""

from renga.extensions import *  # noqa: F403
