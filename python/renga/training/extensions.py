"""The extensions of ``renga.extensions``."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.extensions import *  # noqa: F403

_suggest_names(__name__)
