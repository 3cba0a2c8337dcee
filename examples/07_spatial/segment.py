"""Find disks in images of 1024 × 1024 pixels, of which each rank has a band of rows.

renga run -n 2 segment.py

An image is noise with some brighter disks; the network tells for every pixel whether
it is in one. Each rank makes and keeps its part of the images and of all activations,
so that P ranks take images P times as large as one.
"""

import argparse
import time
from pathlib import Path

import numpy

import renga
import renga.functions as F
from renga.dataset import DatasetMixin, concat_examples
from renga.distributed import SpatialGrid, create_communicator, datasets, gather_image
from renga.distributed.functions import (
    spatial_average,
    spatial_max_pooling,
    spatial_resize_images,
)
from renga.distributed.links import SpatialBatchNormalization, SpatialConvolution2D


class Disks(DatasetMixin):
    """(image, mask) pairs, of which any part can be made without the rest."""

    def __init__(self, count, size):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def get_example(self, i):
        random = numpy.random.default_rng(i)
        centres = random.uniform(0, self.size, (12, 2))
        radii = random.uniform(0.02, 0.1, 12) * self.size
        mask = Lazy(self.size, lambda box: inside(box, centres, radii))
        return Lazy(self.size, lambda box: noisy(box, mask[box], i)), mask


class Lazy:
    """An image that is computed where it is indexed, as a file is read."""

    def __init__(self, size, function):
        self.shape, self.function = (size, size), function

    def __getitem__(self, box):
        return self.function(box[-2:])


def inside(box, centres, radii):
    """Whether pixels are in a disk, as int32."""
    rows, columns = numpy.ogrid[box]
    mask = numpy.zeros((rows.size, columns.size), bool)
    for (y, x), radius in zip(centres, radii):
        mask |= (rows - y) ** 2 + (columns - x) ** 2 < radius**2
    return mask.astype("i")


def noisy(box, mask, seed):
    """The mask under noise that is a function of the place alone."""
    rows, columns = numpy.ogrid[box]
    noise = numpy.sin((rows * 12.9898 + columns * 78.233 + seed) % 6.2832 * 43758.5453)
    return (0.5 * mask + noise).astype("f")


class Segmenter(renga.Chain):
    """Down to half the size, up again, and two numbers for every pixel.

    Shapes: (N, 1, rows, columns of this rank) -> (N, 2, rows, columns of this rank)
    """

    def __init__(self, grid, size, width):
        super().__init__()
        self.grid, self.size = grid, size
        with self.init_scope():
            self.conv1 = SpatialConvolution2D(grid, 1, width, 5, pad=2)
            self.bn1 = SpatialBatchNormalization(grid, width)
            self.conv2 = SpatialConvolution2D(grid, width, width, 5, pad=4, dilate=2)
            self.bn2 = SpatialBatchNormalization(grid, width)
            self.conv3 = SpatialConvolution2D(grid, 2 * width, 2, 3, pad=1)

    def forward(self, x):
        fine = F.relu(self.bn1(self.conv1(x)))
        coarse = spatial_max_pooling(self.grid, fine, 2)
        coarse = F.relu(self.bn2(self.conv2(coarse)))
        coarse = spatial_resize_images(self.grid, coarse, (self.size, self.size))
        return self.conv3(F.concat([fine, coarse]))


def train(size=1024, steps=20, width=16, grid=None, out=None):
    """Losses, the accuracy of the last step's pixels, and seconds of a step."""
    comm = create_communicator("mpi")
    grid = SpatialGrid(comm, grid)
    numpy.random.seed(0)
    model = Segmenter(grid, size, width)
    optimizer = renga.optimizers.Adam(0.01).setup(model)
    images = datasets.ImageShards(grid, Disks(steps, size))
    losses, right, begin = [], 0.0, time.perf_counter()
    for i in range(steps):
        x, mask = concat_examples([images[i]])
        y = model(x[:, None])
        each = F.softmax_cross_entropy(y, mask, reduce="no")
        loss = spatial_average(grid, F.expand_dims(each, 1))
        model.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
        told = (y.array.argmax(1) == mask).astype("f")
        right = float(spatial_average(grid, told[:, None]).array)
        if comm.rank == 0:
            print(f"step {i}: loss {losses[-1]:.4f}, right {right:.2%}", flush=True)
    seconds = (time.perf_counter() - begin) / steps
    if out is not None:
        parts = x[:, None], mask[:, None].astype("f"), F.softmax(y).array[:, 1:]
        save(out, comm.rank, [gather_image(grid, part).array[0, 0] for part in parts])
    return {"losses": losses, "right": right, "seconds": seconds, "rank": comm.rank}


def save(out, rank, images):
    """Writes the last image, its mask and what the network made of it."""
    if rank == 0:
        import matplotlib.image

        Path(out).mkdir(parents=True, exist_ok=True)
        low, high = images[0].min(), images[0].max()
        images[0] = (images[0] - low) / (high - low)
        name = Path(out) / "segmented.png"
        matplotlib.image.imsave(name, numpy.hstack(images), cmap="gray")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=16, help="channels")
    parser.add_argument("--grid", type=int, nargs="+", help="ranks along each axis")
    parser.add_argument("--out", default="result")
    result = train(**vars(parser.parse_args()))
    if result["rank"] == 0:
        print(f"{result['seconds']:.2f} s a step")


if __name__ == "__main__":
    main()
