"""Every function with one argument of another dtype than the rest, float32.

The calls are those of ``edge_cases``, with two samples. Gradients are recorded without
their dtypes: renga's always have that of their variable.
"""

import re
import sys
from pathlib import Path

import chainer
import chainer.utils
import numpy

sys.path.append(str(Path(__file__).parents[3] / "python/functions/cases"))
import edge_cases  # noqa: E402

# How many arguments are varied, at most.
ARGUMENTS = 3


class Inputs(edge_cases.Inputs):
    """The argument number ``k`` has another dtype."""

    def __init__(self, k, dtype):
        super().__init__(chainer, 2, "f")
        self.k, self.odd = k, dtype

    def variable(self, x):
        dtype = self.odd if len(self.variables) == self.k else "f"
        x = numpy.asarray(3 * x if dtype == "i" else x).astype(dtype)
        self.variables.append(chainer.Variable(x, requires_grad=dtype != "i"))
        return self.variables[-1]


def gradient(digest):
    return digest and digest[1:]


def case(call, k, dtype):
    inputs = Inputs(k, dtype)

    def run():
        ys = [y for y in edge_cases.flat(eval(call, inputs.names))]
        arrays = [y.array if isinstance(y, chainer.Variable) else y for y in ys]
        outputs = [edge_cases.digest(y) for y in arrays if hasattr(y, "dtype")]
        xs = inputs.variables
        try:
            gxs = edge_cases.gradients(chainer, ys, xs)
        except Exception as error:
            return outputs, type(error).__name__
        return outputs, [gradient(gx) for gx, x in zip(gxs, xs) if x.dtype.kind == "f"]

    return run


def generated():
    found = {}
    for call in edge_cases.recorded("edge_functions"):
        n = len(re.findall(r"\b[su]\(", call))
        for k in range(min(n, ARGUMENTS)) if "N" in call else ():
            for dtype in "edi" if n > 1 else "i":
                found[f"{call} with argument {k} of {dtype}"] = case(call, k, dtype)
    return found


GENERATED = generated()
