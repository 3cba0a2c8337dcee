"""A warning for names whose interface may still change."""

from __future__ import annotations

import sys
import warnings


def experimental(api_name: str) -> None:
    """Warns that ``api_name`` may change.

    Setting ``renga.disable_experimental_feature_warning`` to True prevents that.
    """
    package = sys.modules[__name__.partition(".")[0]]
    if getattr(package, "disable_experimental_feature_warning", False):
        return
    warnings.warn(
        f"{api_name} is experimental. Its interface may change.",
        FutureWarning,
        stacklevel=3,
    )
