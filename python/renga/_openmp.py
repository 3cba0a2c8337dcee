"""How idle threads of operations wait, settled before the core loads OpenMP.

By default they spin for milliseconds, which on cores that others need too makes a
step several times as long. A tenth of a millisecond costs nothing where cores are
free.
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "10000")
