"""The order of the examples of an epoch."""

from __future__ import annotations

import json
from typing import Any

import numpy

from renga.core.serializer import AbstractSerializer
from renga.core.types import Random


class OrderSampler:
    """Called at the start and whenever an epoch ends, for the order of the next."""

    def __call__(
        self, current_order: numpy.ndarray, current_position: int
    ) -> numpy.ndarray | None:
        """The indices of the next epoch, as many as in ``current_order``.

        ``current_position`` is the position in ``current_order`` at which the current
        batch began. If the first call returns None, the order is always the data set's.
        """
        raise NotImplementedError


class ShuffleOrderSampler(OrderSampler):
    """Every epoch in a new order drawn by ``random_state``.

    Without one it draws from NumPy's global generator, so ``numpy.random.seed``
    decides.
    """

    def __init__(self, random_state: Random | None = None) -> None:
        if random_state is None:
            random_state = numpy.random.random.__self__  # type: ignore[attr-defined]
        self._random = random_state

    @property
    def draws_globally(self) -> bool:
        """Whether it draws from NumPy's global generator."""
        return self._random is numpy.random.random.__self__  # type: ignore[attr-defined]

    def __call__(
        self, current_order: numpy.ndarray, current_position: int
    ) -> numpy.ndarray:
        """A permutation of the indices."""
        return self._random.permutation(len(current_order))

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Save or load the generator, so that a resumed run draws the same orders."""
        if isinstance(self._random, numpy.random.RandomState):
            state = self._random.get_state(legacy=False)
            self._random.set_state(_serialize_state(serializer, state))
        elif isinstance(self._random, numpy.random.Generator):
            bits = self._random.bit_generator
            bits.state = _serialize_state(serializer, bits.state)


def _serialize_state(serializer: Any, state: Any) -> Any:
    # The state is stored as JSON: the integers of some generators have 128 bits.
    text = json.dumps(state, default=numpy.ndarray.tolist)
    return json.loads(serializer("random_state", text))
