"""Initial values of parameters that mixed precision does not halve."""

from __future__ import annotations

import copy
from typing import Any

from renga.initializers import _get_initializer


def with_dtype(initial: Any, dtype: Any) -> Any:
    """An initializer like ``initial`` that makes arrays of ``dtype``."""
    initializer = copy.copy(_get_initializer(initial))
    initializer.dtype = dtype
    return initializer
