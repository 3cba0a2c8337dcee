"""Complete networks: the Classifier, image models and language models."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names

if TYPE_CHECKING:
    from renga.links.model import language as language, vision as vision

_suggest_names(__name__, at_first_use={"renga.links.model": "language vision"})
