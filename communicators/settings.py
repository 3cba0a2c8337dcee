"""Settings of communicators; users set theirs by environment variables."""

from __future__ import annotations

import math
import os

from renga.core.configuration import config

# A signal that arrives just before the main thread waits does not interrupt the wait.
# So it waits for ranks that are threads in steps: between two, handlers of signals run.
SECONDS_PER_WAIT = 1.0

_DEFAULT_TIMEOUT = 1800.0
_DEBUG = "RENGA_DEBUG_COLLECTIVES"


def timeout() -> float:
    """Seconds for which a rank waits for another: ``RENGA_TIMEOUT``, 0 for no limit.

    Raises:
        ValueError: if the variable is not a number of seconds.
    """
    text = os.environ.get("RENGA_TIMEOUT")
    if not text:
        return _DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ValueError(f"RENGA_TIMEOUT: expected seconds, got {text!r}")
    return 0.0 if math.isinf(seconds) else seconds


def debug() -> bool:
    """Whether calls are recorded with the line of the program that makes them.

    ``RENGA_DEBUG_COLLECTIVES=1`` or ``config.debug`` when a communicator is made.
    """
    return bool(config.debug) or os.environ.get(_DEBUG, "0") not in ("", "0")
