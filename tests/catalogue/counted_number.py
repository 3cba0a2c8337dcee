"""Numbers that count what is computed with them."""

import collections
import math
import operator

import numpy as np


class Number:
    """A number of which arithmetic, comparisons and functions are counted."""

    counts = collections.Counter()

    def __init__(self, value):
        self.value = value


def counting(name, function, result=Number):
    """The function, of Numbers and numbers."""

    def method(*operands):
        Number.counts[name] += 1
        return result(function(*(getattr(x, "value", x) for x in operands)))

    return method


for name in ("add", "sub", "mul", "truediv", "pow"):
    function = getattr(operator, name)
    reflected = lambda a, b, function=function: function(b, a)  # noqa: E731
    setattr(Number, f"__{name}__", counting(name, function))
    setattr(Number, f"__r{name}__", counting(name, reflected))
for name in ("lt", "le", "gt", "ge"):
    setattr(Number, f"__{name}__", counting(name, getattr(operator, name), bool))
for name in ("neg", "abs"):
    setattr(Number, f"__{name}__", counting(name, getattr(operator, name)))
for name in ("floor", "ceil"):
    setattr(Number, f"__{name}__", counting(name, getattr(math, name)))
# NumPy's functions call the methods of objects.
for name in """arccos arcsin arctan arctan2 cos cosh exp expm1 log log10 log1p log2 sin
        sinh sqrt tan tanh""".split():
    setattr(Number, name, counting(name, getattr(np, name)))


def elementwise(name, function):
    """A function of arrays of Numbers."""
    return np.vectorize(counting(name, function), otypes=[object])


def count(function, *arrays):
    """What the function returns of Numbers, and how often it computed what."""
    Number.counts.clear()
    numbers = np.vectorize(Number, otypes=[object])
    results = function(*(numbers(x) if x.size else x for x in arrays))
    counts = Number.counts.copy()
    results = results if isinstance(results, list) else [results]
    values = np.vectorize(lambda v: getattr(v, "value", v), otypes=[float])
    return [values(y) if np.size(y) else np.zeros(y.shape) for y in results], counts
