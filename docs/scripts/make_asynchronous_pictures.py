"""Draws a picture of each method of the page on asynchronous training.

python docs/scripts/make_asynchronous_pictures.py docs/images/asynchronous
"""

from __future__ import annotations

import math
import pathlib
import sys

import matplotlib
from make_pictures import BLUE, DIM, GREEN, GREY, ORANGE, Picture

PUSH, PULL = "#b45309", "#1d4ed8"


def workers(p: Picture, count: int, x: float, y: float, step: float = 1.9):
    """A row of boxes for ranks."""
    return [p.box(x + step * r, y, 1.3, 0.5, f"worker {r}", BLUE) for r in range(count)]


def between(p: Picture, low, high, texts=("", "")) -> None:
    """A push up and a pull down, beside each other."""
    (x, y), (u, v) = low, high
    p.arrow((x - 0.09, y), (u - 0.09, v), PUSH)
    p.arrow((u + 0.09, v), (x + 0.09, y), PULL)
    p.text(min(x, u) - 0.2, (y + v) / 2, texts[0], 8, PUSH, "right")
    p.text(max(x, u) + 0.2, (y + v) / 2, texts[1], 8, PULL, "left")


def servers() -> Picture:
    """Workers that push gradients to servers of shards and pull parameters."""
    p = Picture(7.2, 2.7)
    shards = [
        p.box(1.2 + 2.9 * s, 1.9, 1.9, 0.55, f"server of shard {s}", ORANGE)
        for s in range(2)
    ]
    for worker in workers(p, 3, 1.0, 0.55):
        for shard in shards:
            between(p, worker["top"], shard["bottom"])
    p.text(0.95, 1.45, "push g", 9, PUSH, "right")
    p.text(6.25, 1.45, "pull x", 9, PULL, "left")
    p.text(3.6, 0.2, "no worker is more than `staleness` updates ahead", 8, DIM)
    return p


def leaves() -> Picture:
    """Workers that push as one."""
    p = Picture(7.2, 3.2)
    server = p.box(2.65, 2.5, 1.9, 0.5, "server", ORANGE)
    for leaf, left in enumerate((0.35, 3.85)):
        p.box(left, 0.45, 3.0, 1.35, "", GREY)
        first, other = (
            p.box(
                left + 0.2 + 1.45 * i, 0.65, 1.15, 0.5, f"worker {2 * leaf + i}", BLUE
            )
            for i in range(2)
        )
        p.arrow(other["left"], first["right"], PUSH)
        p.text(left + 1.5, 1.5, "mean of the gradients", 8)
        x = 2.2 if leaf == 0 else 5.0
        p.arrow((x - 0.09, 1.8), (server["bottom"][0] - 0.5 + leaf, 2.5), PUSH)
        p.arrow((server["bottom"][0] - 0.32 + leaf, 2.5), (x + 0.09, 1.8), PULL)
    p.text(2.05, 2.2, "push g", 9, PUSH, "right")
    p.text(5.25, 2.2, "pull x", 9, PULL, "left")
    p.text(3.6, 0.2, "leaf=2: to the server, two workers are one", 8, DIM)
    return p


def local_sgd() -> Picture:
    """Updates alone between two averages."""
    p = Picture(7.2, 2.6)
    averages = [p.box(x, 0.6, 0.75, 1.7, "mean", ORANGE) for x in (0.4, 3.2, 6.0)]
    for rank in range(3):
        y = 1.85 - 0.6 * rank
        for left in (1.3, 4.1):
            for i in range(3):
                p.box(left + 0.6 * i, y, 0.5, 0.4, "step", BLUE, 7)
        for average, left in zip(averages, (1.3, 4.1)):
            p.arrow((average["right"][0], y + 0.2), (left, y + 0.2))
            p.arrow((left + 1.7, y + 0.2), (left + 1.9, y + 0.2))
    p.text(3.6, 0.35, "with `outer`: the mean move is the gradient of its step", 8, DIM)
    return p


def elastic() -> Picture:
    """Ranks that a center pulls."""
    p = Picture(7.2, 2.6)
    center = p.box(2.95, 1.05, 1.3, 0.55, "center c", ORANGE)
    ranks = [
        p.box(x, y, 1.1, 0.5, f"rank {r}", BLUE)
        for r, (x, y) in enumerate(((0.4, 1.9), (5.7, 1.9), (0.4, 0.35), (5.7, 0.35)))
    ]
    for r, rank in enumerate(ranks):
        side = "right" if r % 2 == 0 else "left"
        target = center["left" if r % 2 == 0 else "right"]
        (x, y), (u, v) = rank[side], target
        v += 0.12 if r < 2 else -0.12
        middle = ((x + u) / 2, (y + v) / 2)
        p.arrow(middle, (x, y), PUSH)
        p.arrow(middle, (u, v), PUSH)
    p.text(3.6, 2.15, "x_i += α (c - x_i)", 9)
    p.text(3.6, 0.6, "c += α Σ (x_i - c)", 9)
    return p


def circle(p: Picture, count: int, x: float, y: float, radius: float):
    """Points of ranks around a circle, the first on top, each with its number."""
    points = []
    for r in range(count):
        angle = math.pi / 2 - 2 * math.pi * r / count
        u, v = x + radius * math.cos(angle), y + radius * math.sin(angle)
        p.box(u - 0.16, v - 0.16, 0.32, 0.32, str(r), BLUE, 8)
        points.append((u, v))
    return points


def towards(p: Picture, begin, end, color=PUSH, style="-") -> None:
    """An arrow between two ranks, from the edge of their boxes."""
    dx, dy = end[0] - begin[0], end[1] - begin[1]
    part = 0.24 / math.hypot(dx, dy)
    p.arrow(
        (begin[0] + part * dx, begin[1] + part * dy),
        (end[0] - part * dx, end[1] - part * dy),
        color,
        style,
    )


def dpsgd() -> Picture:
    """A ring whose ranks take the mean of themselves and two neighbours."""
    p = Picture(7.2, 2.6)
    points = circle(p, 6, 1.6, 1.3, 1.0)
    for r in range(6):
        towards(p, points[r], points[(r + 1) % 6])
        towards(p, points[(r + 1) % 6], points[r])
    p.text(3.3, 1.75, "x is sent while the gradient is computed", 9, align="left")
    p.text(3.3, 1.3, "x_i = Σ_j W_ij x_j - step(g_i)", 9, align="left")
    p.text(3.3, 0.85, "rows and columns of W sum to 1", 8, DIM, "left")
    return p


def sgp() -> Picture:
    """To whom each of eight ranks pushes, in three steps."""
    p = Picture(7.6, 2.7)
    for step in range(3):
        x = 1.3 + 2.5 * step
        points = circle(p, 8, x, 1.55, 0.9)
        for r in range(8):
            towards(p, points[r], points[(r + 2**step) % 8])
        p.text(x, 0.3, f"step {step}: to rank r + {2**step}", 9)
    return p


def adpsgd() -> Picture:
    """Two ranks that average, while the others compute."""
    p = Picture(7.2, 2.2)
    asks = p.box(0.6, 1.0, 1.4, 0.6, "rank i", BLUE)
    answers = p.box(5.2, 1.0, 1.4, 0.6, "rank j", GREEN)
    p.arrow((2.0, 1.45), (5.2, 1.45), PUSH)
    p.arrow((5.2, 1.15), (2.0, 1.15), PULL)
    p.text(3.6, 1.65, "x_i, then i computes on", 9, PUSH)
    p.text(3.6, 0.93, "x_j, after j's update", 9, PULL)
    p.text(asks["bottom"][0], 0.6, "x_i += (x_j - x_i) / 2", 8)
    p.text(answers["bottom"][0], 0.6, "x_j += (x_i - x_j) / 2", 8)
    p.text(3.6, 0.2, "j is drawn at random for each exchange", 8, DIM)
    return p


def gosgd() -> Picture:
    """A rank that sends half of its weight."""
    p = Picture(7.2, 2.2)
    p.box(0.6, 1.0, 1.4, 0.6, "rank i", BLUE)
    p.box(5.2, 1.0, 1.4, 0.6, "rank j", GREEN)
    p.arrow((2.0, 1.3), (5.2, 1.3), PUSH)
    p.text(3.6, 1.5, "x_i and the weight a = a_i / 2", 9, PUSH)
    p.text(1.3, 0.7, "a_i = a", 8)
    p.text(5.4, 0.7, "x_j = (a_j x_j + a x_i) / (a_j + a)", 8)
    p.text(5.4, 0.45, "a_j = a_j + a", 8)
    p.text(3.6, 0.15, "with some probability, after an update; no answer", 8, DIM)
    return p


def hogwild() -> Picture:
    """Ranks that add to elements of the same memory."""
    p = Picture(7.2, 2.5)
    cells = [p.box(0.9 + 0.45 * i, 1.55, 0.42, 0.45, "", ORANGE) for i in range(12)]
    p.text(3.6, 2.25, "parameters in memory that the ranks share", 9)
    for r, touched in enumerate(((0, 2, 3), (5, 6), (3, 8, 11))):
        rank = p.box(1.0 + 2.05 * r, 0.5, 1.1, 0.45, f"rank {r}", BLUE)
        for i in touched:
            p.arrow(rank["top"], cells[i]["bottom"], PUSH)
    p.text(3.6, 0.2, "x -= rate · g where g is not zero, without locks", 8, DIM)
    return p


PICTURES = (
    *(servers, leaves, local_sgd, elastic),
    *(dpsgd, sgp, adpsgd, gosgd, hogwild),
)


def main() -> None:
    """Writes every picture into the folder given."""
    matplotlib.rcParams["svg.fonttype"] = "none"
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for draw in PICTURES:
        draw().save(folder / f"{draw.__name__}.svg")


if __name__ == "__main__":
    main()
