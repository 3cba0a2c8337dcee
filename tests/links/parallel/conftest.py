"""The number of cases that property tests of parallel links draw.

``RENGA_HYPOTHESIS=full`` draws at least 500 in all for each kind of link.
"""

import os

from hypothesis import HealthCheck, settings

_CASES = {"few": 30, "full": 500}

settings.register_profile(
    "parallel",
    max_examples=_CASES[os.environ.get("RENGA_HYPOTHESIS", "few")],
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("parallel")
