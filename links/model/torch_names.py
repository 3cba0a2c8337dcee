"""Arrays of PyTorch's states under the names of a link's parts."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy

State = Mapping[str, numpy.ndarray]
_PROJECTION = re.compile(r"(.*\.in_proj)\.([qkv])\.(\w+)")


def renamed(
    state: State, patterns: Mapping[str, str], ignored: str = r"$^"
) -> dict[str, numpy.ndarray]:
    """The arrays of which no name matches ``ignored``, under other names.

    ``patterns`` are regular expressions and what takes the place of their matches, one
    after the other.
    """
    arrays = {}
    for name, array in state.items():
        if re.search(ignored, name):
            continue
        for pattern, own in patterns.items():
            name = re.sub(pattern, own, name)
        arrays[name] = array
    return arrays


def with_joined_projections(state: State) -> dict[str, numpy.ndarray]:
    """``in_proj.q``, ``in_proj.k`` and ``in_proj.v`` joined as ``in_proj``."""
    arrays: dict[str, numpy.ndarray] = {}
    parts: dict[str, dict[str, numpy.ndarray]] = {}
    for name, array in state.items():
        match = _PROJECTION.fullmatch(name)
        if match is None:
            arrays[name] = array
        else:
            link, part, parameter = match.groups()
            parts.setdefault(f"{link}.{parameter}", {})[part] = array
    for name, found in parts.items():
        if len(found) == 3:
            arrays[name] = numpy.concatenate([found[part] for part in "qkv"])
    return arrays
