"""Global random generators of the process, one set for each virtual rank."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
from numpy.random import mtrand

_STATE_BYTES = 625 * 4  # of NumPy's Mersenne Twister: 624 words and a position


class RandomStates:
    """The global generators of NumPy and of ``random`` as one rank sees them."""

    def __init__(self, seed: int) -> None:
        seeded = np.random.MT19937()
        seeded._legacy_seeding(seed)  # as numpy.random.seed does
        self._bits: Any = seeded
        self._with_gauss: dict[str, Any] | None = None
        self._installed = b""
        self._python = random.Random(seed).getstate()

    @classmethod
    def installed(cls) -> RandomStates:
        """Those of the process as they are now."""
        states = cls(0)
        states.save()
        return states

    def install(self) -> None:
        """Makes them the process's generators."""
        mtrand.set_bit_generator(self._bits)
        if self._with_gauss is not None:
            np.random.set_state(self._with_gauss)
        self._installed = _memory(self._bits)
        random.setstate(self._python)

    def save(self) -> None:
        """Takes them from the process before another rank's are installed."""
        self._bits = mtrand.get_bit_generator()
        # NumPy keeps every second normal number outside of the bit generator. It takes
        # 50 us to read, so that is done only if numbers may have been drawn.
        memory = _memory(self._bits)
        if self._with_gauss is not None or not memory or memory != self._installed:
            state: Any = np.random.get_state(legacy=False)
            self._with_gauss = state if state["has_gauss"] else None
        self._python = random.getstate()


def _memory(bits: Any) -> bytes:
    """The state of a bit generator, to compare it; nothing for unusual kinds."""
    if type(bits) is not np.random.MT19937:
        return b""
    return ctypes.string_at(bits.ctypes.state_address, _STATE_BYTES)
