"""What results are computed from, as list entries declare it, by changing operands."""

import math

import numpy as np
import pytest

from renga._core import Locality
from tests.catalogue import CASES, CATALOGUE
from tests.python.ops.called import OPERATIONS, call_of, random_arrays

# The localities that follow from one.
IMPLIED = {
    Locality.pointwise: {*Locality.__members__.values()} - {Locality.pointwise},
    Locality.planewise: {Locality.channelwise, Locality.batchwise, Locality.none},
    Locality.channelwise: {Locality.none},
    Locality.batchwise: {Locality.none},
    Locality.along_axis: {Locality.none},
    Locality.none: set(),
}
AXES = {
    Locality.none: (),
    Locality.planewise: (0, 1),
    Locality.channelwise: (1,),
    Locality.batchwise: (0,),
}


def cases_of(name):
    further = CATALOGUE[name].operands
    cases = [*CASES[name], *([further] if further else [])]
    return [case for case in cases if all(map(math.prod, case.shapes))]


def axis_of(call):
    """The argument ``axis`` of a call; None if there is none."""
    names = OPERATIONS[call.label].arguments
    return call.arguments[names.index("axis")] if "axis" in names else None


def inputs_of(call, arrays, count):
    """The indices of the arrays that are among the first ``count`` operands."""

    def position(k):
        for i, argument in enumerate(call.arguments):
            for x in argument if isinstance(argument, list) else [argument]:
                x = getattr(x, "array", x)
                if isinstance(x, np.ndarray) and np.shares_memory(x, arrays[k]):
                    return i
        return k  # converted

    return [k for k in range(len(arrays)) if count is None or position(k) < count]


def common_axes(locality, call, x, y):
    """Axes of an operand and of a result along which dependence keeps to one index.

    None where the shapes do not allow the locality.
    """
    if locality == Locality.pointwise:
        added = y.ndim - x.ndim
        return [(a, a + added) for a in range(x.ndim) if x.shape[a] > 1]
    if locality == Locality.along_axis:
        ndim, axis = max(x.ndim, y.ndim), axis_of(call)
        along = range(ndim) if axis is None else np.atleast_1d(axis) % ndim
        # Where one of x and y has fewer axes, it is without the axis.
        xs, ys = (
            [a for a in range(v.ndim) if v.ndim < ndim or a not in along]
            for v in (x, y)
        )
        return list(zip(xs, ys))
    if any(a >= min(x.ndim, y.ndim) for a in AXES[locality]):
        return None
    return [(a, a) for a in AXES[locality]]


def are_broadcast(xs, y):
    """Whether arrays broadcast to the shape of y."""
    try:
        return not xs or np.broadcast_shapes(*(x.shape for x in xs)) == y.shape
    except ValueError:
        return False


def effects(name, case, locality, count):
    """Whether changes of single elements stay inside of the locality, and their number.

    Elements of the first ``count`` operands are changed.
    """
    arrays = random_arrays(case)
    call, ys = call_of(name, case, arrays)
    rng, found = np.random.RandomState(3), 0
    inputs = inputs_of(call, arrays, count)
    if locality == Locality.pointwise and not all(
        are_broadcast([arrays[k] for k in inputs], y) for y in ys
    ):
        return False, 0
    for k in inputs:
        axes = [common_axes(locality, call, arrays[k], y) for y in ys]
        if None in axes:
            return False, 0
        for flat in rng.permutation(arrays[k].size)[:20]:
            at = np.unravel_index(flat, arrays[k].shape)
            changed = [x.copy() for x in arrays]
            changed[k][at] = rng.uniform(case.low, case.high)
            for y, new, pairs in zip(ys, call_of(name, case, changed)[1], axes):
                moved = np.argwhere(y != new)
                found += len(moved)
                if any(index[b] != at[a] for index in moved for a, b in pairs):
                    return False, found
    return True, found


def effects_of_cases(name, locality, count):
    """The effects in all cases for which the operation's locality is declared."""
    cases = cases_of(name)
    if OPERATIONS[name].locality == Locality.channelwise:
        calls = [call_of(name, case, random_arrays(case))[0] for case in cases]
        cases = [case for case, call in zip(cases, calls) if axis_of(call) is None]
    return [effects(name, case, locality, count) for case in cases]


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_as_local_as_declared(name):
    operation = OPERATIONS[name]
    found = effects_of_cases(name, operation.locality, operation.inputs)
    assert all(is_kept for is_kept, _ in found)
    assert sum(number for _, number in found) > 0


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_not_more_local_than_declared(name):
    operation = OPERATIONS[name]
    for locality, implied in IMPLIED.items():
        if operation.locality in implied and (
            locality != Locality.along_axis or "axis" in operation.arguments
        ):
            found = effects_of_cases(name, locality, operation.inputs)
            assert not all(is_kept for is_kept, _ in found), locality


@pytest.mark.parametrize("name", [o.name for o in OPERATIONS.values() if o.inputs])
def test_operands_after_the_inputs_are_parameters(name):
    found = effects_of_cases(name, OPERATIONS[name].locality, None)
    assert not all(is_kept for is_kept, _ in found)


def slices(name, case):
    """Results of slices of the operands, beside slices of the results."""
    operation, arrays = OPERATIONS[name], random_arrays(case)
    call, ys = call_of(name, case, arrays)
    if operation.inputs and axis_of(call) is not None:
        return
    inputs = inputs_of(call, arrays, operation.inputs)
    # The axes of each operand by axes of the result.
    pairs = {k: common_axes(operation.locality, call, arrays[k], ys[0]) for k in inputs}
    own = {k: {b: a for a, b in pairs[k]} for k in inputs}
    axes = {axis for each in own.values() for axis in each}
    if operation.locality == Locality.channelwise:
        own = {k: own.get(k, {1: 0}) for k in range(len(arrays))}
    elif operation.inputs:
        axes &= {0}  # parameters have other axes, but not that of samples
    for axis in axes:
        for i in range(max(y.shape[axis] for y in ys)):
            parts = [
                sliced(x, own.get(k, {}).get(axis), i) for k, x in enumerate(arrays)
            ]
            for y, part in zip(ys, call_of(name, case, parts)[1]):
                yield part, sliced(y, axis, i)


def sliced(x, axis, i):
    """Element i of an axis, which is kept; nothing behind the end."""
    if axis is None:
        return x
    return x[(slice(None),) * axis + (slice(i, i + 1),)].copy()


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, operation in OPERATIONS.items()
        if operation.locality != Locality.none
        and "seed" not in operation.arguments  # random numbers depend on the position
    ],
)
def test_slices_of_operands_give_slices_of_results(name):
    further = CATALOGUE[name].operands
    cases = [further] if further else cases_of(name)
    compared = [pair for case in cases for pair in slices(name, case)]
    assert compared
    for part, expected in compared:
        np.testing.assert_allclose(part, expected, 1e-9, 1e-12)


def test_operations_that_take_arrays():
    found = {name for name, operation in OPERATIONS.items() if operation.takes_arrays}
    assert found == {row.name for row in CATALOGUE.values() if row.takes_arrays}
