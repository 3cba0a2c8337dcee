"""Draws the pictures of the pages.

python docs/scripts/make_pictures.py docs/images
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import pathlib
import re
import sys
from typing import Any

import matplotlib
import numpy
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import renga
import renga.functions as F
import renga.links as L
from renga import Link, Parameter, planning
from renga.communicators import local
from renga.parallel.data.buckets import assign_buckets
from renga.planning.networks import alexnet

BLUE, ORANGE, GREEN, GREY = "#cfe2f3", "#fce5cd", "#d9ead3", "#eeeeee"
DIM = "#555555"
Array = numpy.ndarray
# Told apart by colour-blind readers, too (Okabe and Ito).
STRONG = "#0072b2", "#d55e00", "#009e73"


class Picture:
    """Boxes with words in them, and arrows between them."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(width, height))
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(0, height)
        self.axes.axis("off")

    def box(self, x, y, w, h, text="", color=GREY, size=9):
        """A box whose lower left corner is (x, y); the middles of its sides."""
        shape = FancyBboxPatch(
            (x, y),
            w,
            h,
            boxstyle="round,pad=0,rounding_size=0.06",
            fc=color,
            ec="#555555",
        )
        self.axes.add_patch(shape)
        self.text(x + w / 2, y + h / 2, text, size)
        return {
            "left": (x, y + h / 2),
            "right": (x + w, y + h / 2),
            "top": (x + w / 2, y + h),
            "bottom": (x + w / 2, y),
        }

    def arrow(self, begin, end, color="#333333", style="-", bend=0.0):
        """An arrow from one point to another."""
        shape = FancyArrowPatch(
            begin,
            end,
            arrowstyle="-|>",
            mutation_scale=12,
            color=color,
            linestyle=style,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=1,
            shrinkB=1,
        )
        self.axes.add_patch(shape)

    def text(self, x, y, text, size=9, color="#111111", align="center"):
        """Words around a point."""
        self.axes.text(x, y, text, ha=align, va="center", fontsize=size, color=color)

    def save(self, path):
        """The same file every time."""
        matplotlib.rcParams["svg.hashsalt"] = "renga"
        self.figure.savefig(path, metadata={"Date": None})


def graph() -> Picture:
    """The graph of F.relu(F.linear(x, W)) and its backward pass."""
    p = Picture(8.6, 3.1)
    x = p.box(0.2, 2.0, 1.0, 0.5, "x", BLUE)
    w = p.box(0.2, 1.1, 1.0, 0.5, "W", GREEN)
    linear = p.box(2.0, 1.55, 1.5, 0.5, "linear", ORANGE)
    h = p.box(4.3, 1.55, 1.0, 0.5, "h", BLUE)
    relu = p.box(6.0, 1.55, 1.0, 0.5, "relu", ORANGE)
    y = p.box(7.5, 1.55, 0.9, 0.5, "y", BLUE)
    for begin, end in (
        (x["right"], linear["left"]),
        (w["right"], linear["left"]),
        (linear["right"], h["left"]),
        (h["right"], relu["left"]),
        (relu["right"], y["left"]),
    ):
        p.arrow(begin, end)
    back = "#b45309"
    p.arrow(y["bottom"], relu["bottom"], back, "--", -0.5)
    p.arrow(relu["bottom"], linear["bottom"], back, "--", -0.35)
    p.arrow(linear["bottom"], w["bottom"], back, "--", -0.35)
    p.text(7.2, 0.85, "gy", color=back)
    p.text(4.75, 0.6, "gy where y > 0", color=back)
    p.text(1.9, 0.55, "ghᵀ x", color=back)
    p.text(0.7, 2.75, "leaves", 8, DIM)
    p.text(2.75, 2.3, "Node: one VJP\nfor each input", 8, DIM)
    p.text(6.5, 2.3, "stores only y:\nits VJP does not need h", 8, DIM)
    p.text(4.3, 0.15, "x requires no gradient: no VJP is stored for it", 8, DIM)
    return p


def allocator() -> Picture:
    """Blocks in one training step, and in the next."""
    p = Picture(8.6, 2.9)
    for column, title in enumerate(("first step", "later steps")):
        left = 0.3 + 4.3 * column
        p.text(left + 1.8, 2.65, title, 10)
        use = p.box(left, 1.6, 3.7, 0.75, "", BLUE)
        p.text(left + 1.85, 2.2, "activations, gradients", 8)
        for x, w, size in ((0, 0.5, 3), (0.65, 0.9, 6), (1.7, 1.3, 9)):
            p.box(left + 0.15 + x, 1.68, w, 0.35, f"{size} MiB", GREY, 7)
        kept = p.box(left, 0.75, 1.75, 0.5, "free: split and coalesced", GREEN, 8)
        system = p.box(left + 2.3, 0.75, 1.4, 0.5, "system", ORANGE, 8)
        p.arrow((left + 0.6, use["bottom"][1]), (left + 0.6, kept["top"][1]))
        p.text(left + 0.3, 1.42, "freed", 7)
        if column == 0:
            p.arrow(system["top"], (system["top"][0], use["bottom"][1]))
            p.text(left + 2.45, 1.42, "mmap, huge pages", 7)
        else:
            p.arrow((left + 1.3, kept["top"][1]), (left + 1.3, use["bottom"][1]))
            p.text(left + 1.68, 1.42, "reused", 7)
    p.text(4.3, 0.3, "later steps allocate nothing from the system", 8, DIM)
    return p


def devices() -> Picture:
    """An operation, its table of kernels and the devices."""
    p = Picture(8.6, 2.9)
    call = p.box(0.2, 1.3, 1.9, 0.6, "F.matmul(a, b)", BLUE)
    p.text(1.15, 0.95, "a.device is CUDA 0", 8, DIM)
    p.text(3.65, 2.65, "KernelTable of the family", 9)
    rows = [
        p.box(2.7, 2.0 - 0.7 * i, 1.9, 0.5, text, color)
        for i, (text, color) in enumerate(
            (("row of the CPU", GREEN), ("row of CUDA", ORANGE), ("row of meta", GREY))
        )
    ]
    kernels = [
        p.box(5.3, 2.0 - 0.7 * i, 3.0, 0.5, text, GREY, 8)
        for i, text in enumerate(
            (
                "oneDNN, renga's kernels",
                "cuBLAS, renga's kernels",
                "shapes only, no memory",
            )
        )
    ]
    p.arrow(call["right"], rows[1]["left"])
    for row, kernel in zip(rows, kernels):
        p.arrow(row["right"], kernel["left"])
    p.text(4.3, 0.2, "A file of kernels adds its row when it is loaded.", 8, DIM)
    return p


def shared_segment() -> Picture:
    """All-reduce of two ranks through a shared-memory segment, chunk by chunk."""
    p = Picture(8.6, 3.2)
    arrays = []
    for rank in range(2):
        y = 2.35 - 1.9 * rank
        p.text(0.15, y + 0.25, f"rank {rank}", 9, align="left")
        arrays.append(
            [
                p.box(1.0 + 0.75 * i, y, 0.7, 0.5, f"{'ab'[rank]}{i}", BLUE, 8)
                for i in range(4)
            ]
        )
    slots = [
        p.box(1.0 + 0.85 * i, 1.4, 0.8, 0.5, text, ORANGE, 8)
        for i, text in enumerate(("a2", "b2", "sum"))
    ]
    p.text(0.15, 1.65, "segment", 9, align="left")
    p.arrow(arrays[0][2]["bottom"], slots[0]["top"])
    p.arrow(arrays[1][2]["top"], slots[1]["bottom"])
    p.text(4.3, 2.95, "1  each rank copies a chunk of 512 KiB", 8, align="left")
    p.text(
        4.3, 2.5, "2  each rank reduces its partition, in rank order", 8, align="left"
    )
    p.text(4.3, 2.05, "3  each rank copies the sums back", 8, align="left")
    p.text(
        4.3,
        1.45,
        "Chunks stay in the cache; each rank has two buffers,\n"
        "so that one is filled while the other is read.",
        8,
        align="left",
    )
    p.text(
        4.3,
        0.75,
        "A window is an array in such memory: gradient buckets\n"
        "in windows are reduced without copies.",
        8,
        align="left",
    )
    return p


def data_parallel() -> Picture:
    """A step of two ranks, whose five layers fill buckets as assign_buckets says."""
    sizes = [1, 2, 4, 6, 3]  # of the layers' gradients, the last layer's first
    layers = [Parameter(numpy.zeros(size, numpy.float32)) for size in sizes]
    buckets = assign_buckets(layers, range(len(layers)), 7 * 4)
    p = Picture(8.6, 3.0)
    ends = {}
    for rank in range(2):
        y = 2.2 - 1.75 * rank
        p.text(0.15, y + 0.2, f"rank {rank}", 9, align="left")
        x = 1.0
        p.box(x, y, 1.7, 0.4, "forward", BLUE, 8)
        x += 1.7
        for layer in range(len(sizes)):
            width = 0.75 + 0.1 * rank
            p.box(x, y, width, 0.4, f"layer {len(sizes) - layer}", GREEN, 7)
            x += width
            ends[layer] = x  # the later rank's, as buckets wait for both
        p.box(7.45, y, 0.95, 0.4, "update", ORANGE, 8)
    p.text(0.15, 1.525, "buckets", 9, align="left")
    free = 0.0
    for number, bucket in enumerate(buckets):
        begin = max(ends[bucket[-1]], free)
        free = begin + 0.12 * sum(sizes[layer] for layer in bucket)
        mean = p.box(begin, 1.325, free - begin, 0.4, str(number), GREY, 8)
        p.arrow((ends[bucket[-1]] - 0.1, 0.87), (mean["left"][0] + 0.1, 1.325))
    p.text(4.6, 2.85, "backward: a gradient is complete after each layer", 8, DIM)
    p.text(4.6, 0.15, "a full bucket is averaged while the pass goes on", 8, DIM)
    return p


def save_plan(path: pathlib.Path) -> None:
    """The simulated step of a plan for AlexNet on four ranks."""
    matplotlib.rcParams["svg.hashsalt"] = "renga"
    cluster = planning.Cluster.describe("1 node × 4 ranks, in nodes: 20 GB/s, 5 µs")
    costs = planning.Costs(planning.P100)
    found = planning.search(alexnet(), None, cluster, costs, seed=0, proposals=3000)
    found.draw(path)


def save_speed(path: pathlib.Path) -> None:
    """The table of the page on performance as bars, one thread."""
    page = pathlib.Path(__file__).parents[1] / "performance.md"
    rows = []
    for line in page.read_text(encoding="utf-8").splitlines():
        ratio = re.search(r"([\d.]+) \(([\d.]+)–([\d.]+)\)", line)
        if line.startswith("| ") and ratio:
            rows.append((line.split("|")[1].strip(), *map(float, ratio.groups())))
    rows.sort(key=lambda row: row[1])
    names, ratios, least, most = zip(*rows)
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    errors = (numpy.subtract(ratios, least), numpy.subtract(most, ratios))
    axes.barh(names, ratios, xerr=errors, color=STRONG[0], ecolor="#111111")
    for y, ratio in enumerate(ratios):
        axes.text(0.05, y, f"{ratio:.2f}", va="center", color="white", fontsize=8)
    axes.axvline(1, color="#111111", linewidth=1)
    axes.set_xlabel("time of PyTorch 2.13 / time of renga, one thread (1: equal)")
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def train(
    start: Link, images: Array, labels: Array, way: str = "", comm: Any = None
) -> list[tuple[float, Array]]:
    """The loss of each update, and what the model computes after it."""
    layers = copy.deepcopy(start)
    optimizer = renga.optimizers.MomentumSGD(0.01)
    x, t = images, labels
    if way == "data":
        optimizer = renga.distributed.create_multi_node_optimizer(optimizer, comm)
        x, t = (numpy.array_split(a, comm.size)[comm.rank] for a in (x, t))
    elif way:
        layers = renga.distributed.parallelize(layers, comm, way, x)
    model = L.Classifier(layers)
    optimizer.setup(model)
    found = []
    for _ in range(30):
        optimizer.update(model, x, t)
        scores = layers(images)
        loss = F.softmax_cross_entropy(scores, labels)
        found.append((float(loss.array), numpy.array(scores.array)))
    return found


def save_exactness(path: pathlib.Path) -> None:
    """The same training in one process and on four ranks, divided in three ways."""
    numpy.random.seed(0)
    images = numpy.random.normal(size=(32, 3, 8, 8)).astype("f")
    labels = (images.mean((1, 2, 3)) > 0).astype("i")
    layers = L.Convolution2D(3, 8, 3, pad=1), F.elu, L.Convolution2D(8, 8, 3, pad=1)
    start = renga.Sequential(*layers, F.elu, L.Linear(512, 2))
    work = functools.partial(train, start, images, labels)
    serial = work()
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    losses, differences = figure.subplots(1, 2)
    losses.plot([loss for loss, _ in serial], color="#bbbbbb", lw=7)
    losses.text(8, serial[6][0], "line: one process; marks: four ranks", fontsize=8)
    names = ("data", "channel", "spatial")
    for first, (name, color, mark) in enumerate(zip(names, STRONG, "o^s")):
        run = functools.partial(work, name)
        with contextlib.redirect_stdout(io.StringIO()):
            found = local.run(run, ranks=4)[0]
        curve = [loss for loss, _ in found]
        losses.plot(curve, mark, color=color, ms=4, markevery=(first, 3))
        apart = [abs(a - b).max() for (_, a), (_, b) in zip(found, serial)]
        differences.semilogy(
            apart, color=color, marker=mark, ms=3, label=f"{name}-parallel"
        )
    differences.set_ylim(1e-8, 1)
    differences.legend(title="four ranks", fontsize=8, title_fontsize=8)
    losses.set_ylabel("loss of all samples")
    differences.set_ylabel("largest difference of scores")
    for axes in (losses, differences):
        axes.set_xlabel("updates")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


PICTURES = {
    "graph": graph,
    "allocator": allocator,
    "data_parallel": data_parallel,
    "devices": devices,
    "shared_segment": shared_segment,
}


def main() -> None:
    """Writes every picture into the folder given."""
    for name, draw in PICTURES.items():
        draw().save(pathlib.Path(sys.argv[1]) / f"{name}.svg")
    for name, save in (("plan", save_plan), ("speed", save_speed)):
        save(pathlib.Path(sys.argv[1]) / f"{name}.svg")
    save_exactness(pathlib.Path(sys.argv[1]) / "exactness.svg")


if __name__ == "__main__":
    main()
