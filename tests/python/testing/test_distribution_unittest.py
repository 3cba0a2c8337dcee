"""distribution_unittest passes correct distributions and detects wrong ones."""

import unittest

import numpy
import pytest
import scipy.stats

from renga import distributions, testing

ALL = {
    "batch_shape",
    "cdf",
    "entropy",
    "event_shape",
    "icdf",
    "log_cdf",
    "log_prob",
    "log_survival_function",
    "mean",
    "prob",
    "stddev",
    "support",
    "survival_function",
    "variance",
}


class NormalCase(testing.distribution_unittest):
    __test__ = False  # run by the tests below
    wrong = 0

    def setUp_configure(self):
        self.dist, self.scipy_dist = distributions.Normal, scipy.stats.norm
        self.test_targets = ALL
        loc = numpy.random.uniform(-1, 1, self.shape).astype("f4")
        scale = numpy.random.uniform(0.5, 2, self.shape).astype("f4")
        self.params = {"loc": loc, "scale": scale}
        self.scipy_params = {"loc": loc, "scale": scale + self.wrong}


class DirichletCase(testing.distribution_unittest):
    __test__ = False
    scipy_onebyone = True

    def setUp_configure(self):
        self.dist, self.scipy_dist = distributions.Dirichlet, scipy.stats.dirichlet
        self.test_targets = {"entropy", "log_prob", "mean", "variance", "event_shape"}
        self.event_shape = (3,)
        alpha = numpy.random.uniform(0.5, 3, (*self.shape, 3))
        self.params = self.scipy_params = {"alpha": alpha}

    def sample_for_test(self):
        return self.cpu_dist.sample(self.sample_shape).array


def run(cls, **attributes):
    case = type("Case", (cls,), attributes)
    names = [
        name
        for name in unittest.defaultTestLoader.getTestCaseNames(case)
        if name.endswith("_cpu")
    ]
    result = unittest.TestResult()
    unittest.TestSuite(map(case, names))(result)
    return result, {test._testMethodName for test, _ in result.failures}


@pytest.mark.parametrize("is_variable", [True, False])
@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_a_correct_distribution_passes(shape, is_variable):
    result, failed = run(NormalCase, shape=shape, is_variable=is_variable)
    assert failed == set() and result.errors == [] and result.skipped == []
    assert result.testsRun == 15


def test_a_wrong_distribution_is_detected():
    _, failed = run(NormalCase, wrong=0.5)
    kept = {"batch_shape", "event_shape", "support", "sample", "mean"}
    assert not failed & {f"test_{name}_cpu" for name in kept}
    assert len(failed) == 10


def test_distributions_one_by_one():
    result, failed = run(DirichletCase)
    assert failed == set() and result.errors == []
    assert len(result.skipped) == 9
