"""What the cost model counts, against what ranks send and what is counted by hand."""

import itertools

import numpy as np
import pytest

import renga
from renga.communicators import simulated
from renga.links.parallel.channel.cost_model import (
    LayerSize,
    convolution_size,
    cost_of,
    linear_size,
)
from renga.links.parallel.channel.linear import ParallelLinear
from renga.links.parallel.channel.process_grid import ProcessGrid, requestable_grids
from renga.parallel.placement import CHANNEL, LAYOUTS
from renga.parallel.redistribute.cost import Rates

SHARDED = ["replicated", "channel", "batch"]


def zeros(comm, layout, samples, channels):
    """A rank's shard of a batch."""
    samples //= comm.size if layout == "batch" else 1
    channels //= comm.size if layout == "channel" else 1
    return renga.Variable(np.zeros((samples, channels), np.float32))


@pytest.mark.parametrize("layouts", list(itertools.product(SHARDED, repeat=2)))
@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_step_sends_the_messages_and_bytes_that_are_counted(size, layouts):
    layer, rates = linear_size(16, 12, 8), Rates(alpha=1.0, beta=0.0)
    source, target = (LAYOUTS[layout] for layout in layouts)

    def act(comm):
        x = zeros(comm, layouts[0], 8, 16)
        for grid in requestable_grids(size):
            link = ParallelLinear(
                comm,
                16,
                12,
                nobias=True,
                input_layout=layouts[0],
                output_layout=layouts[1],
                algorithm=grid.name,
                pieces=1,
            )
            messages, sent = comm.traffic.messages, comm.traffic.bytes
            y = link(x)
            y.grad = np.zeros_like(y.array)
            y.backward()
            messages, sent = comm.traffic.messages - messages, comm.traffic.bytes - sent
            if layouts[0] == "batch" and not (grid.gathers_weight and source == target):
                messages -= size - 1  # in which ranks tell the others their samples
                sent -= 8 * (size - 1)
            cost = cost_of(layer, grid, rates, source, target)
            assert (messages, sent) == (cost.communication, cost.bytes), grid.name

    simulated.run(act, size)


@pytest.mark.parametrize(
    ("kernel", "stride", "dilate", "groups", "products"),
    [
        ((3, 2), (1, 1), (1, 1), 1, 6),
        ((3, 3), (1, 1), (1, 1), 1, 36 / 16),  # of 16 outputs, by Winograd's F(4, 3)
        ((3, 3), (1, 2), (1, 1), 1, 9),
        ((3, 3), (1, 1), (1, 2), 1, 9),
        ((3, 3), (1, 1), (1, 1), 2, 9 / 2),
        ((4, 4), (2, 2), (1, 1), 1, 4 * 25 / 16),  # four kernels of 2 x 2, by F(4, 2)
        ((4, 4), (1, 2), (1, 1), 1, 16),
    ],
)
def test_products_of_a_convolution(kernel, stride, dilate, groups, products):
    window = kernel, stride, dilate, groups
    W = 4 * 4 * 6 * np.prod(kernel) / groups
    for x, y in (((4, 50), (6, 40)), ((4, 40), (6, 50))):  # or a transposed one
        layer = convolution_size(x, y, *window)
        assert layer[:3] == (4 * 4 * x[1], 4 * 6 * y[1], W)
        assert layer.flops == 2 * 4 * 6 * 40 * products


def test_transforms_take_as_long_for_each_transformed_element():
    images = (4, 50), (6, 50)
    whole = convolution_size(*images, (3, 3), (1, 1), (1, 1), 1)
    halves = convolution_size(*images, (4, 4), (2, 2), (1, 1), 1)
    # F(4, 3) has tiles of 6 x 6 for 4 x 4 pixels and 3 x 3 weights. F(4, 2) has some of
    # 5 x 5 for 4 x 4 pixels of every other row and column, and four for 4 x 4 weights.
    of_weights = whole.filter_flops / (36 / 9), halves.filter_flops / (4 * 25 / 16)
    of_pixels = whole.image_flops / (36 / 16), halves.image_flops / (25 / 16)
    assert of_weights[0] == pytest.approx(of_weights[1])
    assert of_pixels[0] == pytest.approx(of_pixels[1])


@pytest.mark.parametrize(
    ("grid", "images", "filters"),
    [
        (ProcessGrid(2, 3), 1200 / 2 + 900 / 3, 720 / 6),
        (ProcessGrid(1, 6), 1200 + 900 / 6, 720 / 6),
        (ProcessGrid(1, 6, True), (1200 + 900) / 6, 720),
    ],
)
def test_three_passes_share_products_and_transform_what_a_rank_has(
    grid, images, filters
):
    layer = LayerSize(1200, 900, 720, 6e6, image_flops=5.0, filter_flops=7.0)
    cost = cost_of(layer, grid, Rates(flop=1e-3), CHANNEL, CHANNEL)
    operations = 6e6 / 6 + 5 * images + 7 * filters
    assert cost.computation == pytest.approx(3 * 1e-3 * operations)
    assert cost.total == pytest.approx(cost.communication + cost.computation)
