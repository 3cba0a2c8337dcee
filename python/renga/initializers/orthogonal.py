"""Orthogonal: a random matrix whose rows or columns are orthonormal."""

from __future__ import annotations

import math
from typing import Any

from renga.core import backend
from renga.core.types import DTypeLike, Random
from renga.initializers.random import RandomInitializer

# The condition on a matrix of outputs × inputs in each mode.
_FITS = {
    "auto": lambda outputs, inputs: True,
    "projection": lambda outputs, inputs: outputs <= inputs,
    "embedding": lambda outputs, inputs: outputs >= inputs,
    "basis": lambda outputs, inputs: outputs == inputs,
}


class Orthogonal(RandomInitializer):
    """Fills an array, reshaped to a matrix, with ``scale`` times an orthonormal one.

    The rows are orthonormal where there are fewer outputs than inputs (a
    projection), the columns where there are more (an embedding). ``mode`` other
    than ``"auto"`` demands that the array be a projection, an embedding or both
    (a basis), and raises ValueError where it is not.

    Shapes:
        array: (outputs, *inputs)

    Source: Saxe et al., ICLR 2014.
    """

    def __init__(
        self,
        scale: float = 1.1,
        dtype: DTypeLike | None = None,
        mode: str = "auto",
        *,
        rng: Random | None = None,
    ) -> None:
        if mode not in _FITS:
            choices = ", ".join(map(repr, _FITS))
            raise ValueError(f"Orthogonal: expected a mode of {choices}, got {mode!r}")
        self.mode = mode
        super().__init__(scale, dtype, rng=rng)

    def _draw(self, array: Any, size: float) -> None:
        if array.size == 0:
            raise ValueError("Orthogonal: expected a non-empty array")
        outputs = array.shape[0] if array.ndim else 1
        inputs = math.prod(array.shape[1:])
        if not _FITS[self.mode](outputs, inputs):
            raise ValueError(
                f"Orthogonal: expected a shape for a {self.mode}, got {array.shape}: "
                f"{outputs} outputs and {inputs} inputs"
            )
        values = self._generator().normal(size=(outputs, inputs))
        tall = values if outputs >= inputs else values.T
        xp = backend.get_array_module(tall)
        q, r = xp.linalg.qr(tall)
        # Without the signs, QR does not give uniform rotations (Mezzadri, 2007).
        q *= xp.sign(xp.diag(r))
        orthonormal = q if outputs >= inputs else q.T
        self._fill(array, size * orthonormal.reshape(array.shape))
