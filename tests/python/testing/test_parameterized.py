"""Parameterized test cases."""

import unittest

import pytest

from renga import testing


def test_product():
    assert testing.product({"b": "xy", "a": [1, 2]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    assert testing.product({"a,b": [(1, 2), (3, 4)], "c": [5]}) == [
        {"a": 1, "b": 2, "c": 5},
        {"a": 3, "b": 4, "c": 5},
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
    for wrong in ([(1,)], [3]):
        with pytest.raises(ValueError, match="parameters a, b: expected 2 values"):
            convert("a,b", wrong)


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


def seen_by_cases_of(group):
    """What the cases of a group note when they are run in the module's order."""
    group.cls.seen.clear()
    prefix = f"{group.cls.__name__}_param_"
    for name in [name for name in globals() if name.startswith(prefix)]:
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(globals()[name]).run(result)
        assert result.wasSuccessful()
    return group.cls.seen


def test_the_cases_run():
    seen = seen_by_cases_of(TestPlain)
    assert sorted(seen) == [(n, n) for n in (1, 1, 2, 2, 3, 3)]
    assert "TestPlain_param_0_{f=abs, n=1}" in globals()
    assert seen_by_cases_of(TestStacked) == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert not isinstance(TestPlain, type)
