"""Kinds of warnings."""


class PerformanceWarning(RuntimeWarning):
    """Something works, but could be faster."""
