"""Test cases of distributions, against SciPy's."""

from __future__ import annotations

import collections.abc
import functools
import unittest
from typing import Any, Callable

import numpy

from renga.backends import cuda
from renga.core.distribution import Distribution
from renga.core.variable import as_variable
from renga.testing import attr
from renga.testing.array import assert_allclose

# SciPy's names where they differ from ours.
_SCIPY = {
    "cdf": "cdf",
    "entropy": "entropy",
    "icdf": "ppf",
    "log_cdf": "logcdf",
    "log_survival_function": "logsf",
    "mean": "mean",
    "stddev": "std",
    "survival_function": "sf",
    "variance": "var",
}


class distribution_unittest(unittest.TestCase):
    """Compares a distribution with SciPy's of the same parameters.

    ``setUp_configure`` sets ``dist`` and ``scipy_dist``, the two classes; ``params``
    and ``scipy_params``, their arrays; ``test_targets``, the names to compare; and
    ``support``, ``event_shape`` and ``continuous`` where they are not ``"real"``,
    ``()`` and True. ``sample_for_test`` gives points to compare at. ``shape`` is the
    batch's and ``sample_shape`` that of points before it. With ``scipy_onebyone``
    SciPy's distributions are made one for each of the batch.
    """

    scipy_onebyone = False
    shape: tuple[int, ...] = (2, 3)
    sample_shape: tuple[int, ...] = (4,)
    is_variable = False
    event_shape: tuple[int, ...] = ()
    continuous = True
    support: str = "real"
    test_targets: Any = frozenset()
    dist: Any
    scipy_dist: Any
    params: dict[str, Any]
    scipy_params: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _mark_tests_on_gpus()

    def setUp(self) -> None:
        self.setUp_configure()

    def setUp_configure(self) -> None:
        """Sets the classes and parameters to compare."""
        raise NotImplementedError("setUp_configure() is not implemented")

    def sample_for_test(self) -> numpy.ndarray:
        """Points to compare at: normal numbers unless redefined."""
        size = self.sample_shape + self.shape + self.event_shape
        return numpy.random.normal(size=size).astype(numpy.float32)

    @property
    def cpu_dist(self) -> Distribution:
        """The distribution under test."""
        make = as_variable if self.is_variable else numpy.asarray
        return self.dist(**{name: make(value) for name, value in self.params.items()})

    @property
    def gpu_dist(self) -> Any:
        """The distribution on a GPU."""
        cuda.check_cuda_available()

    def scipy_onebyone_params_iter(self) -> collections.abc.Iterator[dict[str, object]]:
        """SciPy's parameters for each distribution of the batch."""
        for index in numpy.ndindex(self.shape):
            yield {name: value[index] for name, value in self.scipy_params.items()}

    def check_sample(self, is_gpu: bool) -> None:
        """Samples have the requested shape, and vary."""
        drawn = self._dist(is_gpu).sample(self.sample_shape)
        self.assertEqual(drawn.shape, self.sample_shape + self.shape + self.event_shape)

    def check_log_prob(self, is_gpu: bool) -> None:
        """``log_prob`` at the points of ``sample_for_test``."""
        name = "logpdf" if self.continuous else "logpmf"
        points = self.sample_for_test()
        self._compare(self._dist(is_gpu).log_prob(points), name, points)

    def check_prob(self, is_gpu: bool) -> None:
        """``prob`` at the points of ``sample_for_test``."""
        name = "pdf" if self.continuous else "pmf"
        points = self.sample_for_test()
        self._compare(self._dist(is_gpu).prob(points), name, points)

    def _dist(self, is_gpu: bool) -> Any:
        return self.gpu_dist if is_gpu else self.cpu_dist

    def _compare(self, found: Any, name: str, *points: Any) -> None:
        if not self.scipy_onebyone:
            expected = getattr(self.scipy_dist, name)(*points, **self.scipy_params)
        else:
            expected = self._one_by_one(name, *points)
        assert_allclose(found, expected, atol=1e-4, rtol=1e-4)

    def _one_by_one(self, name: str, *points: Any) -> numpy.ndarray:
        """SciPy's function at each point of each distribution."""
        function = getattr(self.scipy_dist, name)
        parameters = list(self.scipy_onebyone_params_iter())
        if not points:
            values = [function(**each) for each in parameters]
            return numpy.reshape(values, self.shape + numpy.shape(values[0]))
        flat = points[0].reshape(-1, len(parameters), *self.event_shape)
        values = [
            [function(x, **each) for x, each in zip(row, parameters)] for row in flat
        ]
        return numpy.reshape(values, self.sample_shape + self.shape)


def _check(name: str) -> Callable[[Any, bool], None]:
    def check(self: Any, is_gpu: bool) -> None:
        value = getattr(self._dist(is_gpu), name)
        if callable(value):
            points = self.sample_for_test()
            if name == "icdf":
                inside = numpy.random.uniform(0.05, 0.95, points.shape)
                points = numpy.asarray(inside, points.dtype)
            self._compare(value(points), _SCIPY[name], points)
        elif name in ("batch_shape", "event_shape", "support"):
            expected = self.shape if name == "batch_shape" else getattr(self, name)
            self.assertEqual(value, expected)
        else:
            self._compare(value, _SCIPY[name])

    return check


def _test(name: str, check: str, is_gpu: bool) -> Callable[[Any], None]:
    def test(self: Any) -> None:
        if name not in self.test_targets and name != "sample":
            self.skipTest(f"{name} is not among test_targets")
        getattr(self, check)(is_gpu)

    return test


@functools.cache
def _mark_tests_on_gpus() -> None:
    # Not before there is a case: marks import pytest, which takes as long as renga.
    for name, test in vars(distribution_unittest).items():
        if name.startswith("test_") and name.endswith("_gpu"):
            attr.gpu(test)


def _add_tests() -> None:
    """``check_mean``, ``test_mean_cpu`` and so on, for every name."""
    short = {"survival_function": "survival", "log_survival_function": "log_survival"}
    for name in ("batch_shape", "event_shape", "support", *_SCIPY):
        stem = short.get(name, name)
        setattr(distribution_unittest, f"check_{stem}", _check(name))
    names = ("log_prob", "prob", "sample", "batch_shape", "event_shape", "support")
    for name in (*names, *_SCIPY):
        stem = short.get(name, name)
        for is_gpu, device in ((False, "cpu"), (True, "gpu")):
            test = _test(name, f"check_{stem}", is_gpu)
            setattr(distribution_unittest, f"test_{stem}_{device}", test)


_add_tests()
