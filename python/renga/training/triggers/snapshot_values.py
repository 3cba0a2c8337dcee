"""Values of triggers in snapshots, which may not have them."""

from __future__ import annotations

import warnings
from typing import Any

from renga.core.serializer import AbstractSerializer


def save_or_restore(
    serializer: AbstractSerializer, name: str, value: Any, missing: Any, message: str
) -> Any:
    """Saves or restores a value; if it was not saved, warns and takes ``missing``."""
    try:
        return serializer(name, value)
    except KeyError:
        warnings.warn(message, stacklevel=3)
        return missing
