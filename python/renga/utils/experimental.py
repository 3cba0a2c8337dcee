"""A warning for names whose interface may still change."""

from __future__ import annotations

import warnings


def experimental(api_name: str) -> None:
    """Warns that ``api_name`` may change."""
    warnings.warn(
        f"{api_name} is experimental: its interface may change",
        FutureWarning,
        stacklevel=3,
    )
