"""Parameterized test cases."""

import unittest

from renga import testing


def test_product():
    assert testing.product({"a": [1, 2], "b": "xy"}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    parts = [[{"a": 1}, {"a": 2}], [{"b": 3}]]
    merged = [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    assert testing.product_dict(*parts) == testing.product(parts) == merged


def test_from_pytest_parameterize():
    convert = testing.from_pytest_parameterize
    assert convert("a", [1, 2]) == [{"a": 1}, {"a": 2}]
    assert (
        convert("a, b", [(1, 2)]) == convert(["a", "b"], [(1, 2)]) == [{"a": 1, "b": 2}]
    )


@testing.parameterize(*testing.product({"n": [1, 2, 3], "f": [abs, lambda n: -n]}))
class TestPlain(unittest.TestCase):
    seen = []

    def test_parameters_are_attributes(self):
        self.seen.append((self.n, self.f(-self.n)))


@testing.parameterize({"a": 1}, {"a": 2})
@testing.parameterize_pytest("b", [3, 4])
class TestStacked(unittest.TestCase):
    seen = []

    def test_every_pair(self):
        self.seen.append((self.a, self.b))


def test_the_cases_ran():
    assert TestPlain.cls.seen == [(1, 1), (1, 1), (2, 2), (2, 2), (3, 3), (3, 3)]
    assert TestStacked.cls.seen == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert not isinstance(TestPlain, type)
