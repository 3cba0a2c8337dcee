"""DaliIterator, for pipelines of NVIDIA DALI."""

from __future__ import annotations

from renga.dataset import Iterator


class DaliIterator(Iterator):
    """Not available: batches of NVIDIA DALI are CuPy's, on GPUs.

    ``MultiprocessIterator`` and ``MultithreadIterator`` read ahead on CPUs. The
    constructor raises RuntimeError.
    """

    def __init__(self, pipeline: object, repeat: bool = True) -> None:
        raise RuntimeError(
            "DaliIterator: not available; use MultiprocessIterator or "
            "MultithreadIterator"
        )
