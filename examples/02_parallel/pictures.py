"""Pictures of images, losses and times, and of shards of an image and their halos.

python pictures.py halo.svg
"""

import sys
from types import SimpleNamespace

import numpy

from renga.links.parallel.spatial.grid import SpatialGrid
from renga.links.parallel.spatial.window import SpatialWindow

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44"]
STYLES = ["-", "--", "-.", ":"]


def draw_images(ax, images, columns=8):
    """Images (n, 3, H, W) or (n, 1, H, W), from -1 to 1, side by side."""
    images = numpy.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=1)
    rows = [
        numpy.concatenate(images[i : i + columns], 2)
        for i in range(0, len(images), columns)
    ]
    picture = numpy.concatenate(rows, 1).transpose(1, 2, 0)
    picture = numpy.broadcast_to(picture, (*picture.shape[:2], 3))  # grey has one
    ax.imshow((picture + 1).clip(0, 2) / 2)
    ax.axis("off")


def draw_losses(ax, losses):
    """A line for each name; equal ones overlap. Of many steps, 100 means are drawn.

    Shapes: losses (steps,) by name
    """
    for (name, values), style, colour in zip(losses.items(), STYLES, COLOURS):
        width = max(1, len(values) // 100)
        count = len(values) // width
        means = numpy.reshape(values[: count * width], (count, width)).mean(1)
        steps = numpy.arange(count) * width + (width + 1) / 2
        ax.plot(steps, means, style, color=colour, label=name, linewidth=2)
    ax.set_xlabel("step")
    ax.set_ylabel("loss")


def legend_beside(ax):
    """Names the lines at the right of the axes, where it hides none of them."""
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)


def draw_history(figure, result):
    """The losses of both networks, and below them images of the same noise over time.

    ``result`` is what ``train_dcgan.train`` returns.
    """
    above, below = figure.subfigures(2, 1)
    ax = above.subplots()
    names = ("generator", "discriminator")
    draw_losses(ax, dict(zip(names, numpy.transpose(result["losses"]))))
    legend_beside(ax)
    images = result["images"]
    axes = below.subplots(len(images), 1, squeeze=False)[:, 0]
    for ax, (step, made) in zip(axes, images.items()):
        draw_images(ax, made[:20], columns=20)
        ax.set_title(f"step {step}", fontsize=10, loc="left")


def draw_times(ax, milliseconds):
    """A bar for each strategy."""
    bars = ax.barh(list(milliseconds), list(milliseconds.values()), color=COLOURS)
    ax.bar_label(bars, fmt="%.0f ms", padding=4)
    ax.margins(x=0.2)
    ax.invert_yaxis()
    ax.set_xlabel("milliseconds for a step")


def draw_halo(ax, extents, shape, ksize, stride=1, pad=0, dilate=1, rank=0):
    """Each rank's shard of an image, and the halo of one rank for a convolution."""
    ranks = numpy.prod(shape)
    grid = SpatialGrid(SimpleNamespace(size=ranks, rank=rank), shape)
    window = SpatialWindow.of(ksize, stride, pad, dilate)
    owned = grid.boxes(extents)
    result = grid.boxes(window.out_extents(extents))[rank]
    needed = window.inputs_of(result)
    for other, (rows, columns) in enumerate(owned):
        for i in rows:
            for j in columns:
                halo = other != rank and i in needed[0] and j in needed[1]
                cell(
                    ax,
                    i,
                    j,
                    COLOURS[other],
                    0.8 if halo or other == rank else 0.2,
                    halo,
                )
    draw_box(ax, needed)
    ax.set_xlim(min(-0.5, needed[1].start) - 0.6, max(extents[1], needed[1].stop) + 0.6)
    ax.set_ylim(max(extents[0], needed[0].stop) + 0.6, min(-0.5, needed[0].start) - 0.6)
    ax.set_aspect("equal")
    ax.axis("off")
    text = f"{ksize} x {ksize}, stride {stride}, dilation {dilate}"
    ax.set_title(f"{' x '.join(map(str, shape))} ranks: {text}", fontsize=10)


def cell(ax, row, column, colour, alpha, is_halo):
    from matplotlib.patches import Rectangle

    hatch = "////" if is_halo else None
    patch = Rectangle(
        (column, row),
        1,
        1,
        facecolor=colour,
        edgecolor="white",
        alpha=alpha,
        hatch=hatch,
    )
    ax.add_patch(patch)


def draw_box(ax, box):
    from matplotlib.patches import Rectangle

    rows, columns = box
    corner = columns.start, rows.start
    patch = Rectangle(corner, len(columns), len(rows), fill=False, lw=2, ls="--")
    ax.add_patch(patch)


def draw_halos(figure):
    """Rows with a 3 x 3 kernel, and a grid with strides, dilation and corners."""
    axes = figure.subplots(1, 3)
    draw_halo(axes[0], (12, 10), (3,), 3, pad=1, rank=1)
    draw_halo(axes[1], (12, 10), (2, 2), 3, pad=2, dilate=2, rank=0)
    draw_halo(axes[2], (11, 10), (4,), 5, stride=2, pad=2, rank=1)


def main():
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "renga"  # the same file every time
    figure = Figure((11, 4), layout="constrained")
    draw_halos(figure)
    figure.savefig(sys.argv[1], metadata={"Date": None})


if __name__ == "__main__":
    main()
