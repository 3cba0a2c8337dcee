"""Links with empty batches and batches of two, as ``edge_cases.py`` for functions.

The calls are those of the catalogue's rows (``edges``). ``run`` calls a link, ``steps``
calls it once for each input; both return the outputs and then the link's persistent
values. Parameters get gradients, too.
"""

from __future__ import annotations

from typing import Any

import numpy

from tests.python.functions.cases import edge_cases


def calls() -> list[str]:
    """Those of the catalogue; where renga is not installed, those recorded already."""
    try:
        from tests.catalogue import LINKS
    except ImportError:
        return list(edge_cases.recorded("edge_links"))

    return [call for row in LINKS.values() for call in row.edges]


class Inputs(edge_cases.Inputs):
    """The names in the calls."""

    def __init__(self, library: Any, n: int, dtype: str, *layout: Any) -> None:
        super().__init__(library, n, dtype, *layout)
        self.names.update(L=library.links, run=self.run, steps=self.steps)

    def run(self, link: Any, *xs: Any) -> list[Any]:
        return [link(*xs), *self.kept(link)]

    def steps(self, link: Any, *xs: Any) -> list[Any]:
        return [link(x) for x in xs] + self.kept(link)

    def kept(self, link: Any) -> list[Any]:
        self.variables += [p for _, p in sorted(link.namedparams())]
        serializer = self.library.serializers.DictionarySerializer()
        link.serialize(serializer)
        names = {path.strip("/") for path, _ in link.namedparams()}
        others = {k: v for k, v in serializer.target.items() if k not in names}
        return [numpy.asarray(v) for _, v in sorted(others.items())]
