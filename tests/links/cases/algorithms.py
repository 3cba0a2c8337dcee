"""The algorithm that convolutions of a test run on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from renga import _core, kernels


@contextlib.contextmanager
def convolutions_by(name: str) -> Iterator[None]:
    """Has one algorithm compute all convolutions that it supports.

    ``kernels.choices()`` then has those that others compute.
    """
    _core.use_convolution_kernel(name)
    kernels.forget()
    try:
        yield
    finally:
        _core.use_convolution_kernel("auto")
