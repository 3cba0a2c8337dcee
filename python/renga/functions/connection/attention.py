"""Attention."""

from __future__ import annotations

from renga import _core
from renga.core.configuration import config
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_variable
from renga.functions.check import check_arrays
from renga.functions.noise.seed import draw_seed
from renga.utils.type_check import InvalidType


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Variable:
    """``softmax(scale query key^T + attn_mask) value``, without storing the scores.

    A mask of bools says which keys a query reads, one of floats is added. With
    ``is_causal`` query i reads keys 0 to i. A query that reads none gets zeros. While
    ``config.train`` is true, weights are dropped with probability ``dropout_p``. The
    default of ``scale`` is ``1 / sqrt(E)``. Gradients of masks and gradients of second
    order store the scores.

    Shapes:
        query: (N, H, L, E); N, or H and N, may be missing
        key: (N, H, S, E)
        value: (N, H, S, V)
        attn_mask: any that broadcasts to (N, H, L, S)
        y: (N, H, L, V)

    Raises:
        InvalidType: shapes or dtypes do not fit.
        ValueError: ``dropout_p`` is not in [0, 1).

    Source: Vaswani et al., Attention is all you need, 2017; Dao et al.,
    FlashAttention, 2022.
    """
    ops = _core.ops
    check_arrays("scaled_dot_product_attention", query, key, value)
    query, key, value = (as_variable(x) for x in (query, key, value))
    ndim = query.ndim
    if not 2 <= ndim <= 4 or key.ndim != ndim or value.ndim != ndim:
        raise InvalidType(
            "scaled_dot_product_attention: expected operands of one number of axes, "
            f"2 to 4, got {query.shape}, {key.shape} and {value.shape}"
        )
    added = (1,) * (4 - ndim)
    if added:
        query, key, value = (
            ops.reshape(x, added + x.shape) for x in (query, key, value)
        )
    dropout_p = dropout_p if config.train else 0.0
    seed = draw_seed(query) if dropout_p else 0
    y = ops.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, seed
    )
    return ops.reshape(y, y.shape[4 - ndim :]) if added else y
