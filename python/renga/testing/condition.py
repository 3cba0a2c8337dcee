"""Tests that are run several times."""

from __future__ import annotations

import functools
import unittest
from typing import Any, Callable

Test = Callable[..., Any]
Decorator = Callable[[Test], Test]


class QuietTestRunner:
    """Runs a suite without output."""

    def run(self, suite: unittest.TestSuite | unittest.TestCase) -> unittest.TestResult:
        """The result of every test of ``suite``."""
        result = unittest.TestResult()
        suite(result)
        return result


def repeat_with_success_at_least(times: int, min_success: int) -> Decorator:
    """Decorator: the test passes if ``min_success`` of at most ``times`` runs do.

    Otherwise it raises the error of the last failure.
    """
    if not times >= min_success:
        raise ValueError(
            f"repeat_with_success_at_least: expected at most {times} successes of "
            f"{times} runs, got {min_success}"
        )

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: object, **kwargs: object) -> None:
            passed = failed = 0
            while passed < min_success and passed + failed < times:
                try:
                    _fresh(args)
                    test(*args, **kwargs)
                    passed += 1
                except Exception as error:
                    failed += 1
                    if failed > times - min_success:
                        runs = passed + failed
                        raise AssertionError(
                            f"{test.__name__}: {failed} of {runs} runs failed"
                        ) from error

        return run

    return decorate


def repeat(times: int) -> Decorator:
    """Decorator: the test passes if all of ``times`` runs do."""
    return repeat_with_success_at_least(times, times)


def retry(times: int) -> Decorator:
    """Decorator: the test passes if one of ``times`` runs does."""
    return repeat_with_success_at_least(times, 1)


def _fresh(args: tuple[Any, ...]) -> None:
    """Creates a test case for each run."""
    if args and isinstance(args[0], unittest.TestCase):
        args[0].setUp()
