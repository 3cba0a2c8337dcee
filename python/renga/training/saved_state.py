"""What snapshots have of training besides a trainer's parts: seeds, observations."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import numpy

from renga.backends import cuda
from renga.core.serializer import AbstractSerializer, Serializer
from renga.core.variable import as_array

_RANDOM_STATE, _OBSERVATION = "numpy_random_state", "observation"


def serialize_random_state(serializer: AbstractSerializer) -> None:
    """Saves or restores the state of NumPy's global generator, as JSON.

    All random seeds are drawn from it. Files without it leave it alone.
    """
    if isinstance(serializer, Serializer):
        state: Any = numpy.random.get_state(legacy=False)
        serializer(_RANDOM_STATE, json.dumps(state, default=lambda x: x.tolist()))
        return
    with contextlib.suppress(KeyError):
        text = serializer(_RANDOM_STATE, "")
        if text:
            numpy.random.set_state(json.loads(text))


def serialize_observation(
    serializer: AbstractSerializer, observation: Mapping[str, object]
) -> dict[str, object]:
    """Saves the numbers of ``observation`` as JSON, or returns those of a file.

    A pair of numbers, a value and its weight, is saved as well; a file without an
    observation has none.
    """
    numbers = {name: _plain(value) for name, value in observation.items()}
    known = {name: value for name, value in numbers.items() if value is not None}
    try:
        text = serializer(_OBSERVATION, json.dumps(known))
    except KeyError:
        return {}
    if isinstance(serializer, Serializer):
        return dict(observation)
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(text).items()
    }


def _plain(value: Any) -> Any:
    """A number or pair of numbers as Python's, exactly; None for anything else."""
    if isinstance(value, tuple):
        pair = [_plain(part) for part in value]
        return pair if len(pair) == 2 and None not in pair else None
    value = as_array(value)
    if isinstance(value, cuda.ndarray):
        value = cuda.to_cpu(value)
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    return value if isinstance(value, (bool, int, float)) else None
