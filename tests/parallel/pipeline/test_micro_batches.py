"""Splitting of batches, and joining of results."""

import numpy as np
import pytest

from renga.parallel.pipeline.batches import micro_batches, results
from renga.utils.type_check import InvalidType
from renga.variable import Variable


@pytest.mark.parametrize("samples", [1, 3, 7, 8])
@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_parts_are_those_of_array_split(samples, parts):
    x, t = np.arange(samples * 2).reshape(samples, 2), list(range(samples))
    found = micro_batches.split((x, t, 0.5), parts)
    expected = np.array_split(x, min(parts, samples))
    assert [size for size, _ in found] == [len(part) for part in expected]
    for (_, (x_part, t_part, scale)), part in zip(found, expected):
        np.testing.assert_array_equal(x_part, part)
        assert t_part == (part[:, 0] // 2).tolist() and scale == 0.5


def test_variables_are_split():
    x = Variable(np.arange(6.0).reshape(3, 2))
    (_, (a,)), (_, (b,)) = micro_batches.split((x,), 2)
    assert a.shape == (2, 2) and b.array.tolist() == [[4.0, 5.0]]


@pytest.mark.parametrize(
    "inputs,message",
    [
        ((np.zeros((2, 3)), np.zeros(3)), r"float64 \(2, 3\).*float64 \(3,\)"),
        ((np.zeros((0, 3)),), "empty batch"),
    ],
)
def test_inputs_that_cannot_be_split(inputs, message):
    with pytest.raises(InvalidType, match=message):
        micro_batches.split(inputs, 2)


def test_join_undoes_split_and_averages_scalars():
    x = np.arange(10.0).reshape(5, 2)
    parts = micro_batches.split((x,), 2)
    sizes = [size for size, _ in parts]
    ys = [
        {"y": part, "both": (part.sum(axis=1), np.float32(part.mean())), "n": "name"}
        for _, (part,) in parts
    ]
    y = results.join(ys, sizes)
    np.testing.assert_array_equal(y["y"], x)
    np.testing.assert_array_equal(y["both"][0], x.sum(axis=1))
    assert y["both"][1] == np.float32(x.mean()) and y["n"] == "name"
