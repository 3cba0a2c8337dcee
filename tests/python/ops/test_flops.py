"""Floating-point operations of list entries, against counts in formulas of NumPy."""

import math

import numpy as np
import pytest
import scipy.special

from renga._core import Products
from renga.profiling.operation_cost import forward_flops
from tests.catalogue import CASES, CATALOGUE
from tests.catalogue.counted_number import count, elementwise
from tests.python.ops.called import OPERATIONS, call_of, random_arrays


def normalized(x, axis):
    return x / x.sum(axis, keepdims=True)


SPECIAL_FUNCTIONS = {
    "erf": elementwise("erf", math.erf),
    "expit": CATALOGUE["sigmoid"].flops,
    "logsumexp": lambda x, axis=None: np.log(np.exp(x).sum(axis)),
    "log_softmax": lambda x, axis: x - np.log(np.exp(x).sum(axis, keepdims=True)),
    "softmax": lambda x, axis: normalized(np.exp(x), axis),
}
# Operations whose references compute more: what their cases take.
TAKEN = {
    row.name: row.flops for row in CATALOGUE.values() if isinstance(row.flops, list)
}
COUNTED = [name for name in OPERATIONS if name not in TAKEN]
SUMS_OF_PRODUCTS = [
    pytest.param(name, case, id=f"{name}-{i}")
    for name in COUNTED
    if OPERATIONS[name].flops.products != Products.none
    and OPERATIONS[name].flops.per_output == 0
    for i, case in enumerate(CASES[name])
]


def declared_and_counted(name, case):
    arrays = random_arrays(case)
    call, ys = call_of(name, case, arrays)
    values, counts = count(CATALOGUE[name].flops or case.reference, *arrays)
    for y, value in zip(ys, values):
        np.testing.assert_allclose(y, value, 1e-10, 1e-10)
    return forward_flops(OPERATIONS[name], call.arguments, call.results[0]), counts


@pytest.mark.parametrize("name", COUNTED)
def test_largest_case(name, monkeypatch):
    for function, formula in SPECIAL_FUNCTIONS.items():
        monkeypatch.setattr(scipy.special, function, formula)
    case = max(CASES[name], key=lambda case: sum(map(math.prod, case.shapes)))
    declared, counts = declared_and_counted(name, case)
    flops, counted = OPERATIONS[name].flops, sum(counts.values())
    if flops.per_input or flops.per_window:
        # What is done once for a sum or window is less than one for each element.
        x = math.prod(case.shapes[0])
        elements = x if flops.per_input else declared / flops.per_window
        assert abs(declared - counted) < elements / 2
    elif flops.products == Products.none or flops.per_output:
        assert declared == counted


@pytest.mark.parametrize("name, case", SUMS_OF_PRODUCTS)
def test_sums_of_products(name, case):
    declared, counts = declared_and_counted(name, case)
    assert declared == 2 * counts["mul"]
    assert set(counts) <= {"add", "mul"}


@pytest.mark.parametrize("name", TAKEN)
def test_counted_by_hand(name):
    calls = [call_of(name, case, random_arrays(case))[0] for case in CASES[name]]
    found = [forward_flops(OPERATIONS[name], c.arguments, c.results[0]) for c in calls]
    assert found == TAKEN[name]
