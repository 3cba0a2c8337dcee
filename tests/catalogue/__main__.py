"""``python -m tests.catalogue NAME [pytest's options]`` runs all that concerns one row.

These are the tests that iterate the catalogue, as far as they have NAME in their
parameters, and the tests that a link's row names. A function is then called a thousand
times at random.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.fuzz.runner import Campaign

from . import CATALOGUE, LINKS, OPTIMIZERS

TRIALS = 1000
ROOT = Path(__file__).parents[2]
TESTS = """
tests/catalogue
tests/benchmarks/functions
tests/chainer_outcomes/test_outcomes.py
tests/devices
tests/fuzz
tests/links
tests/parallel/data/test_sharded_states.py
tests/parallel/data/test_updating_reducer.py
tests/python/core/test_meta.py
tests/python/exporters
tests/python/functions
tests/python/ops
tests/python/optimizers
tests/python/test_operations.py
""".split()


class Only:
    """Leaves out the tests whose parameters do not have the name as a word.

    Args:
        name: the name.
        whole: modules whose tests all stay.
    """

    def __init__(self, name: str, whole: list[Path]) -> None:
        self._name = re.compile(rf"\b{name}\b")
        self._whole = whole

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        def concerns(item: pytest.Item) -> bool:
            if item.path in self._whole:
                return True
            found = re.search(r"\[(.*)\]$", item.name)
            return found is not None and bool(self._name.search(found[1]))

        items[:] = [item for item in items if concerns(item)]


def main() -> int:
    name, *options = sys.argv[1:] or [""]
    if name not in {**CATALOGUE, **LINKS, **OPTIMIZERS}:
        expected = "the name of a function, operation, link or optimizer"
        print(f"expected {expected}, got {name!r}\n{__doc__}")
        return 2
    elsewhere = LINKS[name].elsewhere if name in LINKS else []
    whole = [ROOT / "tests" / path for path in elsewhere if path.endswith(".py")]
    tests = [*(ROOT / path for path in TESTS), *whole]
    failed = pytest.main([*map(str, tests), *options], [Only(name, whole)])
    if name not in CATALOGUE:
        return int(failed)
    campaign = Campaign(0, processes=1, name=name)
    campaign.run(seconds=60, trials=TRIALS)
    campaign.report()
    return int(failed or bool(campaign.faults))


sys.exit(main())
