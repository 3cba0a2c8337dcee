"""Functions of ``chainer.link_hooks.spectral_normalization``."""

from __future__ import annotations

from types import ModuleType

from renga import functions as F
from renga._core import Variable
from renga.core.types import Array


def l2normalize(xp: ModuleType, v: Array, eps: float) -> Array:
    """``v / (|v| + eps)``."""
    return v / (xp.linalg.norm(v) + eps)


def update_approximate_vectors(
    weight_matrix: Variable, u: Array, n_power_iteration: int, eps: float
) -> tuple[Array, Array]:
    """The first singular vectors after some power iterations from ``u``."""
    matrix, xp = weight_matrix.array, weight_matrix.xp
    for _ in range(n_power_iteration):
        v = l2normalize(xp, xp.dot(u, matrix), eps)
        u = l2normalize(xp, xp.dot(matrix, v), eps)
    return u, v


def calculate_max_singular_value(
    weight_matrix: Variable, u: Array, v: Array
) -> Variable:
    """``u^T W v``, a Variable."""
    return F.matmul(F.matmul(u, weight_matrix), v)
