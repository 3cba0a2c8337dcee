"""The extensions of ``renga.extensions``."""

from renga.extensions import *  # noqa: F403
from renga.suggestions import suggest_names as _suggest_names

_suggest_names(__name__)
