"""A warning for functions whose results may differ from run to run."""

from __future__ import annotations

import warnings

from renga.core.configuration import config


def nondeterministic(f_name: str) -> None:
    """Warns of ``f_name`` where ``config.warn_nondeterministic`` is set."""
    if config.warn_nondeterministic:
        warnings.warn(
            f"{f_name}: expected determinism (config.warn_nondeterministic), but its "
            "results may differ from run to run",
            stacklevel=3,
        )
