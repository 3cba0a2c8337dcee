"""Calls of operations, as function hooks see them."""

import numpy as np

import renga
from renga import _core
from renga.core.operations import operation_name

OPERATIONS = {operation.name: operation for operation in _core.ops.entries}


class _Calls(renga.FunctionHook):
    name = "calls"

    def __init__(self):
        self.seen = []

    def forward_postprocess(self, function, in_data):
        self.seen.append(function)


def random_arrays(case):
    """Operands of a case in float64."""
    rng = np.random.RandomState(0)
    return [np.asarray(rng.uniform(case.low, case.high, s)) for s in case.shapes]


def call_of(name, case, arrays):
    """The case's call of operation ``name``, and the arrays that the case returns."""
    with _Calls() as calls:
        ys = case.call(_core.ops, *arrays)
    (call,) = [call for call in calls.seen if operation_name(call) == name]
    return call, [y.array for y in (ys if isinstance(ys, list) else [ys])]
