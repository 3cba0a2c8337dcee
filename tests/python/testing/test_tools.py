"""Repetition, seeds, matrices, requirements and round trips."""

import unittest
import warnings

import numpy
import pytest

import renga.links as L
from renga import testing
from renga.testing import attr, condition


def failing(pattern):
    """A test that fails where the pattern says F."""
    calls = iter(pattern)

    def test():
        assert next(calls) == "."

    return test


@pytest.mark.parametrize(
    ("decorator", "pattern", "passes"),
    [
        (condition.repeat(3), "...", True),
        (condition.repeat(3), ".F", False),
        (condition.retry(3), "FF.", True),
        (condition.retry(3), "FFF", False),
        (condition.repeat_with_success_at_least(4, 2), "FF..", True),
        (condition.repeat_with_success_at_least(4, 2), "..", True),
        (condition.repeat_with_success_at_least(4, 2), "FF.F", False),
    ],
)
def test_repetition(decorator, pattern, passes):
    test = decorator(failing(pattern))
    if passes:
        test()
    else:
        with pytest.raises(AssertionError, match="runs failed"):
            test()


def test_a_case_is_set_up_for_each_run():
    class Case(unittest.TestCase):
        def setUp(self):
            self.count = 0

        @condition.repeat(2)
        def test(self):
            assert self.count == 0
            self.count += 1

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case)(result)
    assert result.wasSuccessful()


def test_more_successes_than_runs():
    with pytest.raises(ValueError, match="at most 2 successes of 2 runs, got 3"):
        condition.repeat_with_success_at_least(2, 3)


def test_seeds():
    with pytest.raises(RuntimeError, match="fix_random"):
        testing.generate_seed()

    @testing.fix_random()
    def draw():
        return numpy.random.uniform(), testing.generate_seed()

    numpy.random.seed(5)
    first = draw()
    after = numpy.random.uniform()
    assert draw() == first
    numpy.random.seed(5)
    assert numpy.random.uniform() == after

    @testing.fix_random()
    class Case(unittest.TestCase):
        drawn = []

        def test_a(self):
            self.drawn.append(numpy.random.uniform())

        test_b = test_a

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case)(result)
    assert result.testsRun == 2 and len(set(Case.drawn)) == 1


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3, 5)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_matrices(shape, dtype):
    values = [3.0, 0.5, 0.1][: min(shape[-2:])]
    made = testing.generate_matrix(shape, dtype, singular_values=values)
    assert made.shape == shape and made.dtype == dtype
    found = numpy.linalg.svd(made, compute_uv=False)
    numpy.testing.assert_allclose(
        found, numpy.broadcast_to(values, found.shape), rtol=1e-5
    )


def test_matrices_that_cannot_be():
    with pytest.raises(TypeError, match="singular_values"):
        testing.generate_matrix((2, 2))
    with pytest.raises(ValueError, match="axes"):
        testing.generate_matrix((2,), singular_values=1)
    with pytest.raises(ValueError, match="int64"):
        testing.generate_matrix((2, 2), "i8", singular_values=1)


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        ("numpy", True),
        ("numpy>=1.0", True),
        ("numpy>=1.0,<1.1", False),
        ("numpy!=0.1", True),
        ("numpy==0.1", False),
        ("numpy>=999", False),
        ("no-such-package", False),
    ],
)
def test_requirements(requirement, met):
    for decorator, skips in (
        (testing.with_requires, not met),
        (testing.without_requires, met),
    ):

        @decorator(requirement)
        class Case(unittest.TestCase):
            def test(self):
                pass

        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(Case)(result)
        assert bool(result.skipped) == skips
    with pytest.raises(ValueError, match="got 'a b'"):
        testing.with_requires("a b")


def test_warnings():
    with testing.assert_warns(DeprecationWarning):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    with pytest.raises(AssertionError, match="UserWarning"):
        with testing.assert_warns(UserWarning):
            pass


def test_patch_calls_what_it_replaces():
    with testing.patch("numpy.linalg.norm") as norm:
        assert numpy.linalg.norm(numpy.array([3.0, 4.0])) == 5
        norm.assert_called_once()
    with testing.patch("numpy.linalg.norm", return_value=1, side_effect=None) as norm:
        assert numpy.linalg.norm(0) == 1


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_round_trips(kind):
    if kind == "hdf5":
        pytest.importorskip("h5py")
    src, dst = L.Linear(2, 3), L.Linear(2, 3)
    getattr(testing, f"save_and_load_{kind}")(src, dst)
    numpy.testing.assert_array_equal(src.W.array, dst.W.array)


def test_marks():
    attr.check_available()
    assert attr.is_available() and attr.get_error() is None

    @attr.gpu
    @attr.slow
    def test():
        pass

    assert {mark.name for mark in test.pytestmark} == {"gpu", "slow"}
