"""Selects the tests of communicators that this machine runs."""

import os

# It needs 8 GiB of memory and half a minute: RENGA_TEST_LARGE=1 runs it.
collect_ignore = [] if "RENGA_TEST_LARGE" in os.environ else ["test_large_counts.py"]
