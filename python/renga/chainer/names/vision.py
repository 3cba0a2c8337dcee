"""``available`` of ``chainer.links.model.vision``."""

from importlib.util import find_spec

from renga.dataset.convert import concat_examples

available = find_spec("PIL") is not None

__all__ = ["available", "concat_examples"]
