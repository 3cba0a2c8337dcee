"""Which range of an axis each rank has."""

import numpy as np
import pytest

from renga.parallel.placement.shard_ranges import (
    describe_range,
    shard_range,
    shard_ranges,
)


@pytest.mark.parametrize("extent", [0, 1, 3, 8, 10])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 12])
def test_like_array_split(extent, size):
    expected = [part.tolist() for part in np.array_split(np.arange(extent), size)]
    assert [list(own) for own in shard_ranges(extent, size)] == expected
    assert [list(shard_range(extent, size, r)) for r in range(size)] == expected


def test_units_stay_together():
    assert shard_ranges(15, 2, unit=3) == (range(9), range(9, 15))


@pytest.mark.parametrize(("extent", "size", "unit"), [(4, 0, 1), (5, 2, 2), (-1, 2, 1)])
def test_errors(extent, size, unit):
    with pytest.raises(ValueError, match="expected a multiple of"):
        shard_ranges(extent, size, unit)


def test_description():
    assert (
        describe_range(range(4, 7), 10, 1, 3, "rows")
        == "rows 4 to 6 of 10 (rank 1 of 3)"
    )
    assert (
        describe_range(range(2, 2), 2, 3, 4, "rows") == "rows none of 2 (rank 3 of 4)"
    )
