"""What is an index, and what a list of them."""

import chainer
import chainer.functions as F
import numpy as np

X = np.arange(24.0).reshape(3, 4, 2)
KEYS = """
    [[0, 1], [1, 2]]
    [0, slice(1, 3)]
    [slice(None, None, 2)]
    [slice(None), [0, 3]]
    [None, 1]
    [None]
    [Ellipsis]
    [Ellipsis, 1]
    [0, 2]
    [-1]
    []
    [[]]
    [True, False, True]
    [[True, False, True]]
    [np.array([True, False, True])]
    [np.int64(0), np.int64(2)]
    [2, np.int32(1)]
    [[0, 1]]
    [np.array([0, 1])]
    [np.array([0, 1]), np.array([1, 2])]
    [(0, 1), (1, 2), (1, 0)]
    [[0, 1], [1, 2], [1, 1]]
    [[0, 1], [1, 2], [1, 1], [0, 0]]
    [[[0, 1], [1, 2]]]
    ([0, 2], slice(None))
    ([[0, 2]],)
    [range(2)]
    range(2)
    [5]
    [0, 9]
    ["a"]
"""


def _indexed(key):
    x = chainer.Variable(X.copy())
    y = x[key]
    again = F.get_item(x, key)
    y.grad = np.arange(y.size, dtype="d").reshape(y.shape) + 1
    y.backward()
    added = F.scatter_add(X, key, np.ones(y.shape)).array
    return [y, x.grad, (again.array == y.array).all(), added]


GENERATED = {
    f"x[{key.strip()}]": lambda key=key: _indexed(eval(key.strip()))
    for key in KEYS.strip().split("\n")
}
