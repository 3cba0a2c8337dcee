"""A network of levels of switches, and what all-reduces along different ways take.

A level joins children by a switch: GPUs to a node, nodes to a leaf, leaves to a spine.
A message between two ranks goes up to the first switch that both are under, and down
again. All ranks of a child share its links, which send and receive at the same time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from renga import _communicators

# Trees send this many bytes at a time, and pass parts on while others arrive.
CHUNK = 1 << 17
# A node begins so many parts of each of two trees before it has the first sum.
SLOTS = 16
# Then each further part takes as long as the one before it.
STEADY = 4 * SLOTS


class Level(NamedTuple):
    """Children of a switch.

    Args:
        size: their number.
        bandwidth: bytes per second of a link of a child to the switch, in one
            direction.
        latency: seconds of a message whose uppermost switch this is.
        links: of each child, which share its messages.
    """

    size: int
    bandwidth: float
    latency: float
    links: float = 1.0

    @property
    def capacity(self) -> float:
        """Bytes per second of all links of a child."""
        return self.bandwidth * self.links


Levels = Sequence[Level]


def count(levels: Levels) -> int:
    """The number of ranks."""
    return math.prod(level.size for level in levels)


def group(levels: Levels, ranks: int, stride: int = 1) -> list[Level]:
    """The levels as every ``stride``-th rank sees them, for ``ranks`` of them.

    All ``stride`` groups between them communicate at the same time, so that they share
    the links that they have in common.
    """
    found, sharing = [], 1
    for level in levels:
        own = min(max(1, level.size // stride), ranks)
        found.append(level._replace(size=own, links=level.links / sharing))
        sharing *= min(stride, level.size)
        stride, ranks = math.ceil(stride / level.size), math.ceil(ranks / own)
    return found


def ring(levels: Levels, size: int) -> float:
    """Each rank sends to the next one, and each switch is left and entered once.

    The links of a child have a ring each. A part waits for the links on its way, and
    the narrowest one for all parts.
    """
    ranks = count(levels)
    part = size / ranks
    rings = max(1, max(level.links for level in levels))
    below, hops = ranks, []  # of a round: what each takes, and their number
    for level in levels:
        above = below // level.size
        number = below - above if above > 1 else below * (level.size > 1)
        bandwidth = level.bandwidth * min(1, level.links)
        hops.append((level.latency + part / rings / bandwidth, number))
        below = above
    # Each sum and each part of it make 2 (ranks - 1) of the hops of two rounds.
    path = 2 * sum(seconds * number for seconds, number in hops)
    shortest = [
        seconds for seconds, number in sorted(hops) for _ in range(min(2, number))
    ]
    path -= sum(shortest[:2])
    narrowest = min(
        (own for own in levels if own.size > 1), key=lambda own: own.capacity
    )
    busy = 2 * (ranks - 1) * part / narrowest.capacity + narrowest.latency
    return max(path, busy)


def tree(levels: Levels, size: int) -> float:
    """Sums go up a binomial tree as a whole, and down again: few, large messages."""
    return sum(
        2 * math.ceil(math.log2(level.size)) * (level.latency + size / level.bandwidth)
        for level in levels
    )


def two_level(levels: Levels, size: int) -> float:
    """Reduce-scatter within each switch, the same between switches, and back.

    A rank has a part of its own on the way up. Where ranks share links, one sends while
    the message of another one is on its way.
    """
    seconds, waits, below = 0.0, 0.0, 1
    for level in levels:
        if level.size > 1:
            part = size / level.size
            alone = level.latency + part / below / level.bandwidth
            busy = part / level.capacity
            if below > level.links:
                waits = max(waits, min(alone, busy))
            seconds += 2 * (level.size - 1) * max(alone, busy)
        below *= level.size
    return seconds + waits


def two_dimensional(levels: Levels, size: int) -> float:
    """Reduce-scatter in rows, then in columns of the top's children, and back."""
    top = levels[-1]
    rows = next(n for n in range(math.isqrt(top.size), 0, -1) if top.size % n == 0)
    row = top._replace(size=top.size // rows)
    # The children of a row have a column each, and their own links for it.
    column = top._replace(size=rows, links=top.links * row.size)
    return two_level([*levels[:-1], row, column], size)


def double_tree(levels: Levels, size: int) -> float:
    """A half each along two binary trees of nodes; an inner node of one is a leaf of
    the other. Within a node, ranks pass parts on in a chain.

    Every message is sent in turn, as a link has waiting messages of both trees in both
    directions; of more parts than :data:`STEADY`, as many as take the same time again.

    Source: Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast,
    reduction and scan, 2009.
    """
    chunks = max(1, math.ceil(size / 2 / CHUNK))
    part, links = size / 2 / chunks, tuple(map(_whole_links, levels))
    seconds = _double_tree(links, part, min(chunks, STEADY))
    if chunks > STEADY:
        before = _double_tree(links, part, STEADY // 2)
        seconds += (chunks - STEADY) * (seconds - before) / (STEADY - STEADY // 2)
    return seconds


def _whole_links(level: Level) -> Level:
    """A part of a link is a slower one."""
    links = max(1, math.floor(level.links))
    return level._replace(bandwidth=level.capacity / links, links=links)


@functools.lru_cache(maxsize=4096)
def _double_tree(levels: tuple[Level, ...], part: float, chunks: int) -> float:
    seconds: float = _communicators.double_tree_seconds(levels, part, chunks, SLOTS)
    return seconds


def leaders(levels: Levels, size: int) -> float:
    """Sums go along a chain to the first rank of a node, which have a ring, and back.

    Source: ChainerMN, hierarchical_communicator.py, 2017.
    """
    node, *outer = levels
    part = min(CHUNK, size)
    chain = (node.size - 1) * (node.latency + part / node.bandwidth)
    chain += (node.size > 1) * (size - part) / node.bandwidth
    # A rank sends by one link at a time.
    outer = [own._replace(links=min(1, own.links)) for own in outer if own.size > 1]
    return 2 * chain + (ring(outer, size) if outer else 0.0)


def in_network(levels: Levels, size: int) -> float:
    """Switches between nodes add up what the links of their children bring.

    Ranks of a node share the work; a switch of a single node adds up itself.
    """
    node, *outer = levels
    outer = [level for level in outer if level.size > 1]
    if not outer:
        return 2 * node.latency + size / node.capacity
    seconds = two_level([node], size) + 2 * sum(level.latency for level in outer)
    return seconds + size / min(level.capacity for level in outer)


ALL_REDUCES: dict[str, Callable[[Levels, int], float]] = {
    "ring": ring,
    "tree": tree,
    "two-level": two_level,
    "two-dimensional": two_dimensional,
    "double tree": double_tree,
    "leaders": leaders,
    "in-network": in_network,
}


def all_reduce(
    levels: Levels, size: int, names: Sequence[str] = ("ring", "double tree")
) -> tuple[float, str]:
    """The seconds of the way that a library takes for ``size`` bytes, and its name.

    It is the fastest one; but a double tree is taken only where it would be faster
    with 0.45 of the bandwidth, also between two nodes, as NCCL does.
    """
    if count(levels) == 1:
        return 0.0, "none"
    times = {name: ALL_REDUCES[name](levels, size) for name in names}
    estimates = dict(times)
    if "double tree" in times:
        narrowest = min(own.capacity for own in levels if own.size > 1)
        least = size / 0.45 / narrowest + double_tree(levels, 1)
        estimates["double tree"] = max(times["double tree"], least)
    name = min(estimates, key=estimates.__getitem__)
    return times[name], name
