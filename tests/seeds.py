"""Random numbers that all ranks draw alike."""

import contextlib
import threading

import numpy as np

_DRAWING = threading.RLock()


@contextlib.contextmanager
def seeded(seed=0):
    """NumPy's generator with a seed; ranks on threads, which share it, take turns."""
    with _DRAWING:
        np.random.seed(seed)
        yield
