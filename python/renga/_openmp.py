"""How idle OpenMP threads wait, set before the core loads OpenMP.

By default they spin for milliseconds. Where other processes need the same cores, that
makes a training step several times as long. Spinning for 0.1 ms is as fast on idle
cores.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "10000")
