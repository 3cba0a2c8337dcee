"""What tests of functions and links share."""

from __future__ import annotations

import sys

from renga.testing import array, parameterized, training
from renga.testing.array import assert_allclose
from renga.testing.parameterized import (
    from_pytest_parameterize,
    parameterize,
    parameterize_pytest,
    product,
    product_dict,
)
from renga.testing.training import get_trainer_with_mock_updater

__all__ = [
    "array",
    "assert_allclose",
    "from_pytest_parameterize",
    "get_trainer_with_mock_updater",
    "parameterize",
    "parameterize_pytest",
    "parameterized",
    "product",
    "product_dict",
    "run_module",
    "training",
]


def run_module(name: str, file: str) -> None:
    """Runs pytest on ``file`` if it is the main program."""
    if name == "__main__":
        import pytest

        sys.exit(pytest.main([file, "-vvs", "-x", "--pdb"]))
