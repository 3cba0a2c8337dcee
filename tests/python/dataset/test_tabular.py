"""Tables against lists of rows."""

import itertools

import numpy
import pytest
from hypothesis import given, strategies as st

from renga.dataset import TabularDataset, tabular

KEYS = ("a", "b", "c")
TABLE = numpy.arange(15).reshape(5, 3)


class Table(TabularDataset):
    """Five rows of three columns; the second column is a list."""

    keys = KEYS

    def __init__(self, mode=tuple):
        self.read = []
        self._mode = mode

    mode = property(lambda self: self._mode)

    def __len__(self):
        return 5

    def get_examples(self, indices, key_indices):
        self.read.append((indices, key_indices))
        rows = TABLE[slice(None) if indices is None else indices]
        columns = range(3) if key_indices is None else key_indices
        return tuple(list(rows[:, k]) if k == 1 else rows[:, k] for k in columns)


def rows(dataset):
    return [tuple(dataset[i]) for i in range(len(dataset))]


def expected(indices=range(5), columns=range(3)):
    return [tuple(TABLE[i, k] for k in columns) for i in indices]


def test_rows_and_columns():
    table = Table()
    assert table[1] == (3, 4, 5) and table[-1] == (12, 13, 14)
    assert table[1:3] == [(3, 4, 5), (6, 7, 8)] == table[[1, 2]]
    with pytest.raises(IndexError):
        table[5]
    columns = table.fetch()
    assert isinstance(columns, tuple) and isinstance(columns[1], list)
    numpy.testing.assert_array_equal(columns, TABLE.T)
    arrays = table.convert(columns)
    assert all(isinstance(column, numpy.ndarray) for column in arrays)


def test_forms():
    table = Table().asdict()
    assert table[1] == {"a": 3, "b": 4, "c": 5} and table.mode is dict
    assert list(table.convert(table.fetch())) == ["a", "b", "c"]
    assert table.astuple()[1] == (3, 4, 5)


row_choices = st.one_of(
    st.slices(5),
    st.lists(st.integers(-5, 4)),
    st.lists(st.booleans(), min_size=5, max_size=5),
)


def chosen_rows(chosen, length):
    if isinstance(chosen, slice):
        return list(range(length))[chosen]
    if chosen and isinstance(chosen[0], bool):
        return [i for i in range(length) if chosen[i]]
    return [i % length for i in chosen]


@given(row_choices, st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
def test_slices(chosen, keys):
    columns = [KEYS.index(key) for key in keys]
    part = Table().slice[chosen, tuple(keys)]
    want = expected(chosen_rows(chosen, 5), columns)
    assert part.keys == tuple(keys) and len(part) == len(want)
    assert rows(part) == want
    assert [tuple(r) for r in zip(*part.fetch())] == want
    assert rows(part.asdict().slice[:, keys[0]].astuple()) == [r[:1] for r in want]


def test_an_empty_reversed_selection():
    assert len(Table().slice[:0].slice[::-1].fetch()[0]) == 0


@given(row_choices, st.data())
def test_slices_of_slices(first, data):
    outer = chosen_rows(first, 5)
    second = data.draw(st.slices(len(outer)))
    part = Table().slice[first].slice[second]
    assert rows(part) == expected(outer[second])
    assert [tuple(r) for r in zip(*part.fetch())] == expected(outer[second])


def test_a_slice_reads_no_more_than_it_needs():
    table = Table()
    part = table.slice[1:4, ("b", "c")].slice[::2, "c"]
    numpy.testing.assert_array_equal(part.fetch(), [5, 11])
    assert table.read == [(slice(1, 5, 2), (2,))] or table.read == [
        (slice(1, 4, 2), (2,))
    ]
    assert part.mode is None and part[0] == 5


@pytest.mark.parametrize(
    ("keys", "error"),
    [("x", KeyError), (["b"], KeyError), (3, IndexError), (("a", "x"), KeyError)],
)
def test_keys_that_are_not_there(keys, error):
    with pytest.raises(error, match="'a', 'b', 'c'"):
        Table().slice[:, keys]
    with pytest.raises(TypeError, match="got 2"):
        Table().slice[2]
    with pytest.raises(ValueError, match="5 rows, got 1"):
        Table().slice[[True]]


@given(st.lists(st.integers(-10, 9)))
def test_tables_joined_by_rows(chosen):
    both = Table().concat(Table())
    assert len(both) == 10 and both.keys == KEYS
    want = expected([i % 5 for i in chosen])
    assert [tuple(r) for r in zip(*both.slice[chosen].fetch())] == want
    numpy.testing.assert_array_equal(both.fetch(), numpy.tile(TABLE.T, 2))
    assert rows(both.slice[3:7]) == expected([3, 4, 0, 1])


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_slices_of_concatenated_tables(step):
    """Of one, two and three rows."""
    table = Table()
    whole = table.slice[:1].concat(table.slice[:2], table.slice[:3])
    order = [0, 0, 1, 0, 1, 2]
    ends = [None, *range(len(order) + 1)]
    for start, stop in itertools.product(ends, ends):
        chosen = slice(start, stop, step)
        found = [tuple(row) for row in zip(*whole.slice[chosen].fetch())]
        assert found == expected(order[chosen]), chosen


def test_tables_joined_by_columns():
    left, right = Table(), Table()
    joined = left.slice[:, ("c", "a")].join(right.slice[:, "b"])
    assert joined.keys == ("c", "a", "b") and joined.mode is tuple
    assert rows(joined) == expected(columns=(2, 0, 1))
    left.read.clear(), right.read.clear()
    numpy.testing.assert_array_equal(joined.slice[:, "b"].fetch(), TABLE[:, 1])
    assert left.read == [] and len(right.read) == 1
    with pytest.raises(ValueError, match="no key twice"):
        left.join(right)
    with pytest.raises(ValueError, match=r"\[5, 2\]"):
        left.join(right.slice[:2])
    with pytest.raises(ValueError, match="keys"):
        left.concat(right.slice[:, ("a",)])


def test_transforms():
    table = Table()
    sums = table.transform("x", lambda a, b, c: a + b)
    assert sums.mode is None and sums[1] == 7 and sums.fetch() == [1, 7, 13, 19, 25]
    pairs = table.transform(("x", "y"), lambda a, b, c: (a + b, c))
    assert pairs[1] == (7, 5) and pairs.slice[:, "y"][2] == 8
    named = table.asdict().transform(("x", "y"), lambda a, b, c: {"y": a, "x": c})
    assert named.mode is dict and named[1] == {"x": 5, "y": 3}
    by_batch = table.transform_batch(("x", "y"), lambda a, b, c: (a * 10, c))
    assert by_batch[1] == (30, 5) and by_batch.mode is tuple
    alone = table.transform_batch("x", lambda a, b, c: a)
    numpy.testing.assert_array_equal(alone.fetch(), TABLE[:, 0])
    with pytest.raises(ValueError, match=r"2 values, for \('x', 'y'\), got 3"):
        table.transform(("x", "y"), lambda *row: row)[0]


def test_own_converter():
    def converter(a, b, c):
        return sum(a) + sum(b) + sum(c)

    for table in (Table(), Table(dict)):
        own = table.with_converter(converter)
        assert own.convert(own.fetch()) == TABLE.sum()
        assert own.slice[:2].convert(own.slice[:2].fetch()) == TABLE[:2].sum()


def test_delegate():
    class Reversed(tabular.DelegateDataset):
        def get_examples(self, indices, key_indices):
            columns = self.dataset.get_examples(indices, key_indices)
            return tuple(-numpy.asarray(column) for column in columns)

    assert rows(Reversed(Table())) == [tuple(-v for v in r) for r in expected()]


def test_from_data():
    x = numpy.arange(4)
    assert tabular.from_data(x)[2] == 2 and tabular.from_data(x).mode is None
    named = tabular.from_data(("x", x))
    assert named.keys == ("x",) and named.fetch() is x
    pair = tabular.from_data((x, ("y", [5, 6, 7, 8])))
    assert pair.keys[1] == "y" and pair[1] == (1, 6)
    assert pair.slice[[3, 0]].fetch()[1] == [8, 5]
    table = tabular.from_data({"x": x, ("y", "z"): lambda i: (i * i, -i)})
    assert table[3] == {"x": 3, "y": 9, "z": -3} and len(table) == 4
    assert table.slice[::2].fetch()["y"] == [0, 4]
    computed = tabular.from_data(("y", lambda i: i + 1), size=3)
    assert computed.fetch() == [1, 2, 3] and computed[1:] == [2, 3]
    several = tabular.from_data((("y", "z"), lambda i: (i, -i)), size=3)
    assert several.mode is tuple and several[2] == (2, -2)


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        (lambda i: i, 3, "key"),
        (("x", lambda i: i), None, "size"),
        ((numpy.arange(3), numpy.arange(4)), None, r"\[3, 4\]"),
        (numpy.arange(3), 4, "length 4"),
    ],
)
def test_from_data_refuses(data, size, message):
    with pytest.raises(ValueError, match=message):
        tabular.from_data(data, size=size)
