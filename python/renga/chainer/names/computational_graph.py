"""Functions of ``chainer.training.extensions.computational_graph``."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


def is_return_code_zero(args: Sequence[str]) -> bool:
    """Whether a command exists and succeeds; its output is dropped."""
    try:
        done = subprocess.run(args, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def is_graphviz_available() -> bool:
    """Whether Graphviz's ``dot`` can be run."""
    return is_return_code_zero(["dot", "-V"])
