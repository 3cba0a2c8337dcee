"""Selects the tests of communicators that this machine runs, and their ranks."""

from __future__ import annotations

import os
from typing import Any, Callable

import pytest

from tests.conftest import ALL_KINDS, kind_name, runner

# It needs 8 GiB of memory and half a minute: RENGA_TEST_LARGE=1 runs it.
collect_ignore = [] if "RENGA_TEST_LARGE" in os.environ else ["test_large_counts.py"]


@pytest.fixture(params=ALL_KINDS, ids=kind_name)
def ranks(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """The fixture of this name, on every kind of ranks: this is where they differ."""
    return runner(request.param)
