"""Language models."""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names

if TYPE_CHECKING:
    from renga.links.model.language import bert as bert, gpt2 as gpt2, llama as llama

_suggest_names(__name__, at_first_use={"renga.links.model.language": "bert gpt2 llama"})
