"""What backward passes of a thread start from besides losses."""

from __future__ import annotations

import threading

from renga import _core
from renga.variable import Variable


class ExtraRoots(threading.local):
    """Outputs from which the next ``backward()`` or ``grad()`` of this thread starts.

    Each has the input that the pass has to reach from it. A pass takes all of them.
    """

    def __init__(self) -> None:
        self._outputs: list[Variable] = []
        self._inputs: list[Variable] = []
        self._ids: dict[str, int] = {}  # of outputs
        _core.set_extra_roots(self._outputs, self._inputs)

    def get(self, name: str) -> tuple[Variable, Variable] | None:
        """The output and its input of a name; None once a pass has taken them."""
        for pair in zip(self._outputs, self._inputs):
            if id(pair[0]) == self._ids.get(name):
                return pair
        return None

    def replace(self, name: str, output: Variable, input_: Variable) -> None:
        """Has the next pass start from ``output``, not from another one of the name."""
        for i, old in enumerate(self._outputs):
            if id(old) == self._ids.get(name):
                del self._outputs[i], self._inputs[i]
                break
        self._ids[name] = id(output)
        self._outputs.append(output)
        self._inputs.append(input_)


extra_roots = ExtraRoots()
