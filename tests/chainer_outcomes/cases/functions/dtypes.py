"""Variables of unsigned integers, of objects, and of what else is no float."""

import chainer
import chainer.functions as F
import chainer.gradient_check
import numpy as np
from chainer import Variable as V

ARRAYS = {
    **{
        dtype: (np.array([1, 2, 3], dtype), np.array([2, 2, 1], dtype))
        for dtype in "HIL"
    },
    "O": (np.array([1, None, "a"], object), np.array([1, 2.5, 3], object)),
    "S": (np.array([b"a", b"bc", b""]), np.array([b"1", b"2", b"3"])),
    "F": (np.array([1, 2j, 3], "F"), np.array([2, 2, 1], "F")),
}

CALLS = """
V(x)
V(x, requires_grad=False)
V(x).array is x
(V(x).shape, V(x).ndim, V(x).size, V(x).dtype, len(V(x)))
V(x).grad
V(y[:1]).item()
repr(V(y))
str(V(y))
V(x).label
V(x).xp is np
held(x)
replaced(x)
pickled(x)
copied(x)
chainer.as_variable(x)
chainer.Variable(x, name='x').name
chainer.as_array(V(x))
V(x)[1:]
V(x)[0]
V(x)[np.array([0, 2])]
V(x)[x != x[0]]
V(x)[None, ..., ::-1]
F.get_item(V(x), -1)
F.copy(V(x), -1)
F.identity(V(x))
F.identity(x, y)
F.cast(V(y), 'f')
F.cast(V(y), 'i')
F.pad_sequence([V(x), V(y)[:2]])
F.pad_sequence([x, y[:2]], 4, x[0])
F.pad_sequence([x, y[:1]], 3, -1)
F.pad_sequence([x], 2)
F.pad_sequence([x[None], y[None]], 2)
F.sqrt(V(x))
F.relu(V(x))
F.sigmoid(V(x))
F.softmax(V(x)[None])
F.dropout(V(x))
F.linear(V(x)[None], np.ones((2, 3), 'f'))
F.mean(V(x))
F.exp(V(x))
F.select_item(np.ones((3, 5), 'f'), V(x))
"""

# Only numbers have this arithmetic.
NUMBERS = """
V(x) + V(y)
V(x) - V(y)
V(x) + 1
V(x) - 2
3 - V(x)
-V(x)
V(x) * 3
3 * V(x)
V(x) + y
y - V(x)
V(x) + np.float32(1)
V(x) + V(x.astype('f'))
V(x) + V(x.astype('i'))
V(x.astype('f')) * x
V(x.astype('f')) + V(x)
F.add(V(x), V(y), V(x))
F.reshape(V(x), (3, 1))
F.transpose(V(x)[None])
V(x).reshape(1, 3).T
F.concat([V(x), V(y)], 0)
F.stack([V(x), V(y)])
F.hstack([V(x), V(y)])
F.vstack([V(x), V(y)])
F.dstack([V(x), V(y)])
F.broadcast_to(V(x), (2, 3))
F.broadcast(V(x)[None], V(y)[:, None])
F.where(np.array([1, 0, 1], '?'), V(x), V(y))
F.tile(V(x), 2)
F.repeat(V(x), 2)
F.expand_dims(V(x), 0)
F.squeeze(V(x)[None])
F.flatten(V(x)[None])
F.flip(V(x), 0)
F.rollaxis(V(x)[None], 1)
F.swapaxes(V(x)[None], 0, 1)
F.split_axis(V(x), 3, 0)
F.separate(V(x))
F.permutate(V(x), np.array([2, 0, 1], 'i'))
F.permutate(V(y), V(np.array([2, 0, 1], 'i')), inv=True)
F.scatter_add(V(x), 0, V(y)[0])
F.bias(V(x)[None], V(y))
F.sign(V(x))
F.floor(V(x))
F.ceil(V(x))
F.transpose_sequence([V(x), V(y)])
F.cast(V(np.array([0., 1.5, 255.], 'f')), x.dtype)
F.cast(V(np.array([0., 1.5, 255.], 'e')), x.dtype)
F.cast(V(np.array([0., 1.5, 65535.], 'd')), x.dtype)
F.cast(V(np.array([-1, 3, 70000], 'l')), x.dtype)
F.cast(V(np.array([-1, 3, 70000], 'i')), x.dtype)
F.cast(V(np.array([True, False])), x.dtype)
F.cast(V(x), '?')
F.cast(V(x), 'b')
F.cast(V(x), 'e')
F.cast(V(x), 'd')
F.cast(V(extremes(x.dtype)), 'd')
F.cast(V(extremes(x.dtype)), 'f')
F.cast(V(extremes(x.dtype)), 'i')
F.cast(V(extremes(x.dtype)), 'B')
F.cast(V(extremes(x.dtype)), 'Q')
V(extremes(x.dtype)) + 1
V(extremes(x.dtype)) - V(extremes(x.dtype))[::-1]
-V(extremes(x.dtype))
F.pad_sequence([extremes(x.dtype), x[:1]])
backward(V(x))
chainer.gradient_check.check_backward(lambda a, b: a * 2, (np.ones(3), x), np.ones(3), no_grads=[False, True], dtype='d')
chainer.functions.forget(lambda a: a + a, V(x))
chainer.dataset.concat_examples([x, y])
chainer.dataset.concat_examples([x, y[:2]], padding=7)
V(np.asfortranarray(np.stack([x, y])))[1]
V(np.stack([x, y])[::-1, ::2]) + 1
V(x.astype(x.dtype.newbyteorder())) + 1
"""


def extremes(dtype):
    return np.array([0, np.iinfo(dtype).max, 1], dtype)


def held(x):
    """The variable holds the array itself."""
    v = V(x.copy())
    v.array[0] = x[1]
    return v


def replaced(x):
    v = V(np.ones(2, "f"))
    v.array = x
    found = v.dtype, v.shape, v.array is x
    v.array = np.zeros((1, 2), "d")
    return found, v


def pickled(x):
    import pickle

    return pickle.loads(pickle.dumps(V(x, name="x")))


def copied(x):
    import copy

    v = V(x)
    other = copy.deepcopy(v)
    return other, other.array is x


def backward(v):
    """Of a function whose other input needs the gradient."""
    w = V(np.ones(3, "f"))
    F.sum(w * F.cast(v, "f")).backward()
    return w.grad, v.grad


def generated():
    found = {}
    for dtype, (x, y) in ARRAYS.items():
        calls = CALLS + NUMBERS * (dtype in "HIL")
        for call in filter(None, calls.split("\n")):
            names = dict(globals(), x=x, y=y)
            found[f"{call} of {dtype}"] = lambda c=call, n=names: eval(c, n)
    return found


GENERATED = generated()
