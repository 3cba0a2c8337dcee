"""Attention and blocks of transformers."""

from __future__ import annotations

import numpy

import renga.links as L

from .row import Case, link

rng = numpy.random.default_rng(0)
X, MEMORY = rng.normal(size=(2, 5, 6)), rng.normal(size=(2, 4, 6))


def rotated(x, base=10000.0):
    """By complex numbers."""
    half = x.shape[-1] // 2
    pairs = x[..., :half] + 1j * x[..., half:]
    rates = base ** (-numpy.arange(half) / half)
    pairs = pairs * numpy.exp(1j * numpy.arange(x.shape[-2])[:, None] * rates)
    return numpy.concatenate([pairs.real, pairs.imag], -1)


def softmax(x):
    terms = numpy.exp(x - x.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)


def attention(p, x, memory=None, heads=2, causal=False, rotary=False):
    memory = x if memory is None else memory
    W, b = p["/in_proj/W"], p.get("/in_proj/b", numpy.zeros(18))
    q, k, v = (
        (y @ W[i : i + 6].T + b[i : i + 6])
        .reshape(len(y), -1, heads, 6 // heads)
        .transpose(0, 2, 1, 3)
        for i, y in ((0, x), (6, memory), (12, memory))
    )
    if rotary:
        q, k = rotated(q), rotated(k)
    scores = q @ k.swapaxes(2, 3) / numpy.sqrt(6 // heads)
    if causal:
        scores = numpy.where(numpy.tri(*scores.shape[2:]) > 0, scores, -numpy.inf)
    y = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
    return y @ p["/out_proj/W"].T + p.get("/out_proj/b", 0)


link(
    "MultiHeadAttention",
    cases={
        "": Case(lambda: L.MultiHeadAttention(6, 2), (X,), attention),
        "of a memory": Case(
            lambda: L.MultiHeadAttention(6, 3),
            (X, MEMORY),
            lambda p, x, m: attention(p, x, m, 3),
        ),
        "without biases": Case(
            lambda: L.MultiHeadAttention(6, 2, nobias=True), (X,), attention
        ),
        "causal": Case(
            lambda: L.MultiHeadAttention(6, 2),
            (X,),
            lambda p, x: attention(p, x, causal=True),
            call=lambda link, x: link(x, is_causal=True),
        ),
        "rotary": Case(
            lambda: L.MultiHeadAttention(6, 1, rotary=True),
            (X,),
            lambda p, x: attention(p, x, heads=1, rotary=True),
        ),
    },
)


link("KeyValueCache", elsewhere="links/attention/test_attention.py")
link("TransformerBlock", elsewhere="links/attention/test_attention.py")
