"""Parameter: a link that is one trained array."""

from __future__ import annotations

from renga.core import parameter
from renga.core.link import Link
from renga.core.types import Array


class Parameter(Link):
    """Returns its parameter ``W``, which starts as ``array``."""

    W: parameter.Parameter

    def __init__(self, array: Array) -> None:
        super().__init__()
        with self.init_scope():
            self.W = parameter.Parameter(array)

    def forward(self, volatile: object = "off") -> parameter.Parameter:
        """The parameter; ``volatile`` is accepted for old scripts and ignored."""
        return self.W
