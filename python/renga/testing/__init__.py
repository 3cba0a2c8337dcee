"""Tools for tests of functions and links."""

from __future__ import annotations

import sys

from renga.testing import (
    array,
    attr,
    backend,
    condition,
    distribution_test,
    matrix,
    parameterized,
    random,
    serializer,
    training,
    unary_math_function_test,
)
from renga.testing.array import assert_allclose
from renga.testing.backend import BackendConfig, inject_backend_tests
from renga.testing.distribution_test import distribution_unittest
from renga.testing.function_case import FunctionTestCase, FunctionTestError
from renga.testing.link_case import (
    InitializerArgument,
    LinkInitializersTestCase,
    LinkTestCase,
    LinkTestError,
)
from renga.testing.matrix import generate_matrix
from renga.testing.parameterized import (
    from_pytest_parameterize,
    parameterize,
    parameterize_pytest,
    product,
    product_dict,
)
from renga.testing.random import fix_random, generate_seed
from renga.testing.requirements import (
    assert_warns,
    patch,
    with_requires,
    without_requires,
)
from renga.testing.serializer import (
    save_and_load,
    save_and_load_hdf5,
    save_and_load_npz,
)
from renga.testing.training import get_trainer_with_mock_updater
from renga.testing.unary_math_function_test import unary_math_function_unittest

__all__ = [
    "BackendConfig",
    "FunctionTestCase",
    "FunctionTestError",
    "InitializerArgument",
    "LinkInitializersTestCase",
    "LinkTestCase",
    "LinkTestError",
    "array",
    "assert_allclose",
    "assert_warns",
    "attr",
    "backend",
    "condition",
    "distribution_test",
    "distribution_unittest",
    "fix_random",
    "from_pytest_parameterize",
    "generate_matrix",
    "generate_seed",
    "get_trainer_with_mock_updater",
    "inject_backend_tests",
    "matrix",
    "parameterize",
    "parameterize_pytest",
    "parameterized",
    "patch",
    "product",
    "product_dict",
    "random",
    "run_module",
    "save_and_load",
    "save_and_load_hdf5",
    "save_and_load_npz",
    "serializer",
    "training",
    "unary_math_function_test",
    "unary_math_function_unittest",
    "with_requires",
    "without_requires",
]


def run_module(name: str, file: str) -> None:
    """Runs pytest on ``file`` if it is the main program."""
    if name == "__main__":
        import pytest

        sys.exit(pytest.main([file, "-vvs", "-x", "--pdb"]))
