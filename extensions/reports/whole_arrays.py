"""Arrays of variables as one process has them, for statistics."""

from __future__ import annotations

import contextlib

import numpy

from renga.backends import cuda
from renga.core.parameter import Parameter
from renga.core.variable import Variable


def whole_array(operation: str, variable: Variable, name: str) -> numpy.ndarray | None:
    """The ``data`` or ``grad`` of a variable, in the host's memory.

    Of a parameter of which each rank has a shard it is that of the whole, and every
    rank calls this.

    Raises:
        RuntimeError: another stage of a pipeline has the variable.
    """
    if variable.is_meta:
        raise RuntimeError(
            f"{operation}: expected parameters that this rank has, got "
            f"{variable.name}, which is of another stage of a pipeline: use the "
            "Pipeline, which has the parameters of this rank, in the place of its links"
        )
    with contextlib.ExitStack() as scope:
        if isinstance(variable, Parameter):
            scope.enter_context(variable.seen_whole())
        array = getattr(variable, name)
        return None if array is None else cuda.to_cpu(array)
