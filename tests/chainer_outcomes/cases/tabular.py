"""Tabular data sets: slices, modes, transforms, joins, converters."""

import itertools

import chainer
import chainer.dataset
import numpy as np
from chainer.dataset import tabular


class Letters(chainer.dataset.TabularDataset):
    """Six rows of three columns; tells which indices it is asked for."""

    def __init__(self, mode=tuple, n=6, keys=("a", "b", "c")):
        self._mode, self._n, self._keys, self.asked = mode, n, keys, []

    def __len__(self):
        return self._n

    @property
    def keys(self):
        return self._keys

    @property
    def mode(self):
        return self._mode

    def get_examples(self, indices, key_indices):
        self.asked.append((type(indices).__name__, type(key_indices).__name__))
        if indices is None:
            indices = slice(None)
        if key_indices is None:
            key_indices = range(len(self._keys))
        rows = np.arange(self._n) if isinstance(indices, slice) else indices
        if isinstance(indices, slice):
            rows = rows[indices]
        return tuple(10 * k + np.asarray(rows) for k in key_indices)


INDICES = {
    ":": slice(None),
    "1:5:2": slice(1, 5, 2),
    "::-1": slice(None, None, -1),
    "[3, 1]": [3, 1],
    "[-1, 0]": [-1, 0],
    "array [3, 1]": np.array([3, 1]),
    "bools": [True, False, True, False, False, True],
    "array of bools": np.array([True, False, True, False, False, True]),
    "[]": [],
    "[7]": [7],
    "short bools": [True, False],
}
KEYS = {
    "": None,
    "(0, 2)": (0, 2),
    "[2, 0]": [2, 0],
    "[-1]": [-1],
    "names": ["c", "a"],
    "a name": "b",
    "1": 1,
    "bools": [True, False, True],
    "a slice": slice(0, 2),
    "wrong name": "z",
    "5": 5,
    "[]": [],
}
MODES = {"tuple": tuple, "dict": dict, "None": None}


def everything(view, asked=None):
    """What a data set tells, and its first and all rows."""
    keys = tuple("generated" if str(key)[0] == "_" else key for key in view.keys)
    found = [len(view), keys, str(view.mode), view.fetch()]
    found.append(view[0] if len(view) else None)
    return found, asked


def sliced(indices, keys, mode):
    data = Letters(mode, keys=("a",) if mode is None else ("a", "b", "c"))
    view = data.slice[indices] if keys is None else data.slice[indices, keys]
    return everything(view, data.asked)


def twice(first, second, mode):
    data = Letters(mode)
    return everything(data.slice[first, [0, 1]].slice[second], data.asked)


def generated():
    found = {}
    for (i, indices), (k, keys), (m, mode) in itertools.product(
        INDICES.items(), KEYS.items(), MODES.items()
    ):
        if mode is None and k not in ("", "[-1]"):
            continue
        if i not in (":", "[3, 1]") and k not in ("", "(0, 2)", "names"):
            continue
        found[f"slice[{i}, {k}] of {m}"] = lambda i=indices, k=keys, m=mode: sliced(
            i, k, m
        )
    for first, second in itertools.product(
        INDICES, ("1:5:2", "[-1, 0]", "array [3, 1]")
    ):
        found[f"slice[{first}].slice[{second}]"] = (
            lambda a=INDICES[first], b=INDICES[second]: twice(a, b, tuple)
        )
    for (m, mode), (n, other) in itertools.product(MODES.items(), MODES.items()):

        def join(mode=mode, other=other):
            a = Letters(mode, keys=("a",) if mode is None else ("a", "b"))
            b = Letters(other, keys=("x",) if other is None else ("x", "y"))
            return everything(a.join(b), [a.asked, b.asked])

        def concat(mode=mode, other=other):
            a = Letters(mode, keys=("a",))
            b = Letters(other, n=3, keys=("a",))
            view = a.concat(b)
            return everything(view), view.slice[[7, 0]].fetch(), view.slice[5:8].fetch()

        found[f"join of {m} and {n}"] = join
        found[f"concat of {m} and {n}"] = concat
    return found


GENERATED = generated()

EXPRESSIONS = """
everything(Letters().as_tuple())
everything(Letters().as_dict())
everything(Letters(dict).as_tuple())
everything(Letters(None, keys=('a',)).as_tuple())
everything(Letters(None, keys=('a',)).as_dict())
Letters().convert(Letters().fetch())
Letters(dict).convert(Letters(dict).fetch())
Letters(None, keys=('a',)).convert(Letters(None, keys=('a',)).fetch())
Letters().with_converter(lambda x: 'converted').convert(Letters().fetch())
Letters().with_converter(lambda a, b, c: 'converted').convert(Letters().fetch())
Letters(dict).with_converter(lambda a, b, c: 'converted').convert(Letters(dict).fetch())
Letters().with_converter(lambda *x: 'converted').slice[:2].convert(Letters().fetch())
Letters().with_converter(lambda *x: 'converted').join(Letters(keys=('x',))).convert(())
Letters().with_converter(lambda *x: 'converted').transform(('x',), lambda a, b, c: (a,)).convert((np.arange(2),))
everything(Letters().transform(('x', 'y'), lambda a, b, c: (a + b, c)))
everything(Letters().transform(('x',), lambda a, b, c: {'x': a + b}))
everything(Letters().transform('x', lambda a, b, c: a + b))
everything(Letters(dict).transform(('x',), lambda a, b, c: (a + b,)))
everything(Letters().transform_batch(('x', 'y'), lambda a, b, c: (a + b, c)))
everything(Letters().transform_batch(('x',), lambda a, b, c: {'x': a + b}))
everything(Letters().transform_batch('x', lambda a, b, c: a + b))
everything(Letters().transform(('x', 'y'), lambda a, b, c: (a + b, c)).slice[[1, 0], 'y'])
everything(Letters().transform([(('a', 'c'), 'x', lambda a, c: a + c)]))
everything(Letters().transform_batch([(('a', 'c'), 'x', lambda a, c: a + c)]))
everything(Letters().transform(('x', 'x'), lambda a, b, c: (a, b)))
Letters().join(Letters())
Letters().join(Letters(n=3, keys=('x',)))
Letters().concat(Letters(keys=('x',)))
Letters().concat(Letters(keys=('a', 'b')))
Letters()[7]
Letters()[-1]
Letters()[1:3]
Letters()[[1, 2]]
Letters(dict)[1:3]
Letters().get_example(3)
list(Letters().fetch()[0])
everything(tabular.from_data(np.arange(3)))
everything(tabular.from_data([1, 2, 3]))
everything(tabular.from_data(('a', np.arange(3))))
everything(tabular.from_data((('a', 'b'), (np.arange(3), np.arange(3)))))
everything(tabular.from_data((np.arange(3), [4, 5, 6])))
everything(tabular.from_data({'a': np.arange(3), 'b': [4, 5, 6]}))
everything(tabular.from_data((('a', np.arange(3)), ('b', [4, 5, 6]))))
everything(tabular.from_data(((('a', 'b'), (np.arange(3), [1, 2, 3])), [4, 5, 6])))
everything(tabular.from_data(('a', lambda i: 2 * i), size=3))
everything(tabular.from_data((('a', 'b'), lambda i: (i, 2 * i)), size=3))
everything(tabular.from_data({'a': lambda i: 2 * i, 'b': np.arange(3)}))
everything(tabular.from_data({('a', 'b'): lambda i: (i, 2 * i)}, size=3))
everything(tabular.from_data(lambda i: 2 * i, size=3))
tabular.from_data(lambda i: 2 * i)
tabular.from_data(('a', lambda i: 2 * i))
tabular.from_data((np.arange(3), np.arange(4)))
tabular.from_data(5)
everything(tabular.from_data({'a': np.arange(3)}).slice[[2, 0]])
everything(tabular.from_data(('a', lambda i: 2 * i), size=4).slice[1:3])
everything(tabular.from_data([1, 2, 3]).slice[[True, False, True]])
tabular.DelegateDataset(Letters()).keys
everything(tabular.DelegateDataset(Letters()))
chainer.iterators.SerialIterator(Letters(), 2, shuffle=False).next()
chainer.iterators.SerialIterator(Letters(dict), 2, shuffle=False).next()
chainer.dataset.concat_examples(chainer.iterators.SerialIterator(Letters(), 2, shuffle=False).next())
"""
