"""Thousands of damaged files: loaded completely or refused.

``RENGA_FUZZ_LOADERS=10000`` sets how many, ``RENGA_FUZZ_SEED`` which.
"""

import os

import pytest

from tests.python.serializers import loader_fuzz


@pytest.mark.timeout(3600)
def test_damaged_files():
    count = int(os.environ.get("RENGA_FUZZ_LOADERS", 800))
    seed = int(os.environ.get("RENGA_FUZZ_SEED", 0))
    outcomes = loader_fuzz.run(count, seed)
    assert sum(outcomes.values()) == count
    assert outcomes["refused"] > count / 2
