"""The state of NumPy's global generator, the source of all random seeds."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy

from renga.core.serializer import AbstractSerializer, Serializer

_KEY = "numpy_random_state"


def serialize_random_state(serializer: AbstractSerializer) -> None:
    """Saves or restores the state, as JSON; files without it leave it alone."""
    if isinstance(serializer, Serializer):
        state: Any = numpy.random.get_state(legacy=False)
        serializer(_KEY, json.dumps(state, default=_plain))
        return
    with contextlib.suppress(KeyError):
        text = serializer(_KEY, "")
        if text:
            numpy.random.set_state(json.loads(text))


def _plain(value: Any) -> Any:
    return value.tolist()
