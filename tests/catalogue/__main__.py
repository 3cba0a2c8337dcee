"""``python -m tests.catalogue NAME [pytest's options]`` runs all that concerns a function.

These are the tests that iterate the catalogue, as far as they have NAME in their
parameters, and then a thousand random calls.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.fuzz.runner import Campaign

from . import CATALOGUE

TRIALS = 1000
ROOT = Path(__file__).parents[2]
TESTS = """
tests/catalogue
tests/benchmarks/functions
tests/fuzz
tests/python/core/test_meta.py
tests/python/exporters
tests/python/functions
tests/python/ops
tests/python/test_operations.py
""".split()


class Only:
    """Leaves out the tests whose parameters do not have the name as a word."""

    def __init__(self, name: str) -> None:
        self._name = re.compile(rf"\b{name}\b")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        def concerns(item: pytest.Item) -> bool:
            found = re.search(r"\[(.*)\]$", item.name)
            return found is not None and bool(self._name.search(found[1]))

        items[:] = [item for item in items if concerns(item)]


def main() -> int:
    name, *options = sys.argv[1:] or [""]
    if name not in CATALOGUE:
        print(f"expected the name of a function or operation, got {name!r}\n{__doc__}")
        return 2
    tests = [str(ROOT / path) for path in TESTS]
    failed = pytest.main([*tests, *options], [Only(name)])
    campaign = Campaign(0, processes=1, name=name)
    campaign.run(seconds=60, trials=TRIALS)
    campaign.report()
    return int(failed or bool(campaign.faults))


sys.exit(main())
