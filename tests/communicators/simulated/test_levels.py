"""All-reduces on described networks, against every message of them in turn."""

import heapq
import itertools
import math

import pytest

from renga.communicators.simulated import levels
from renga.communicators.simulated.levels import Level

FEW_LINKS = [Level(8, 130e9, 3e-6), Level(4, 12e9, 1e-5)]
RAIL = [Level(4, 200e9, 3e-6), Level(4, 24e9, 1e-5, 4)]
LEAVES = [Level(4, 100e9, 3e-6), Level(4, 12e9, 1e-5, 2), Level(4, 12e9, 1.2e-5, 4)]
NETWORKS = {
    "a node": [Level(8, 130e9, 3e-6)],
    "Ethernet": [Level(1, 1e12, 0.0), Level(16, 1.25e9, 2e-5)],
    "one adapter": FEW_LINKS,
    "an adapter for each": RAIL,
    "leaves with half of the links": LEAVES,
}


class Network:
    """Messages that wait for the links on their way, the first one first."""

    def __init__(self, of):
        self.levels = of
        self.free = {}  # until when each link is in use
        self.messages = []  # (source, destination, bytes, what they wait for)

    def send(self, source, destination, size, after=()):
        self.messages.append((source, destination, size, list(after)))
        return len(self.messages) - 1

    def seconds(self):
        """When the last message has arrived."""
        followers, waits = {}, []
        for i, (_, _, _, after) in enumerate(self.messages):
            waits.append(len(after))
            for other in after:
                followers.setdefault(other, []).append(i)
        ready = [(0.0, i) for i, n in enumerate(waits) if n == 0]
        heapq.heapify(ready)
        latest, end = [0.0] * len(waits), 0.0
        while ready:
            now, i = heapq.heappop(ready)
            arrival = self._transfer(now, *self.messages[i][:3])
            end = max(end, arrival)
            for other in followers.get(i, ()):
                waits[other] -= 1
                latest[other] = max(latest[other], arrival)
                if waits[other] == 0:
                    heapq.heappush(ready, (latest[other], other))
        return end

    def _transfer(self, now, source, destination, size):
        """When a message arrives, which goes through a link while it arrives there."""
        path, latency = [], 0.0
        for k, level in enumerate(self.levels):
            if source == destination:
                break
            latency = level.latency
            path.insert(k, (k, level, source, "up"))
            path.insert(k + 1, (k, level, destination, "down"))
            source, destination = source // level.size, destination // level.size
        end = now
        for k, level, child, way in path:
            links = [(k, child, way, i) for i in range(int(level.links))]
            link = min(links, key=lambda name: self.free.get(name, 0.0))
            now = max(now, self.free.get(link, 0.0))
            self.free[link] = now + size / level.bandwidth
            end = max(end, self.free[link])
        return end + latency


def ring_on(network, ranks, size, steps, before=None):
    """A ring through ``ranks``; the last messages that each of them receives."""
    last = before or {rank: [] for rank in ranks}
    for _ in range(steps):
        last = {
            b: [network.send(a, b, size / len(ranks), last[a])]
            for a, b in zip(ranks, [*ranks[1:], *ranks[:1]])
        }
    return last


def ring(network, size):
    links = max(int(level.links) for level in network.levels)
    ranks = list(range(levels.count(network.levels)))
    for _ in range(links):
        ring_on(network, ranks, size / links, 2 * (len(ranks) - 1))


def two_level(network, size, widths=None):
    widths = widths or [level.size for level in network.levels]
    ranks = range(math.prod(widths))
    last = {rank: [] for rank in ranks}
    strides = [math.prod(widths[:k]) for k in range(len(widths))]
    up = list(zip(widths, strides))
    for width, stride in up + up[::-1]:
        for first in ranks:
            if first // stride % width == 0 and width > 1:
                members = [first + i * stride for i in range(width)]
                own = {rank: last[rank] for rank in members}
                last |= ring_on(network, members, size / stride, width - 1, own)


def two_dimensional(network, size):
    *below, top = [level.size for level in network.levels]
    rows = max(n for n in range(1, math.isqrt(top) + 1) if top % n == 0)
    two_level(network, size, [*below, top // rows, rows])


def tree(network, size):
    last, stride, down = {}, 1, []
    for level in network.levels:
        ranks = range(0, levels.count(network.levels), stride)
        for step in range(math.ceil(math.log2(level.size))):
            for rank in ranks:
                place = rank // stride % level.size
                other = rank - (stride << step)
                if place % (2 << step) == 1 << step:
                    after = last.get(rank, []) + last.get(other, [])[-1:]
                    arrived = network.send(rank, other, size, after)
                    last[other] = last.get(other, []) + [arrived]
                    down.append((other, rank))
        stride *= level.size
    reached = {0: last[0]}
    for source, destination in reversed(down):
        arrived = network.send(source, destination, size, reached[source][-1:])
        reached[source], reached[destination] = [arrived], [arrived]
    # A rank sends to one other at a time: its next message waits for the last one.


def double_tree(network, size):
    node, *outer = [level.size for level in network.levels]
    nodes = math.prod(outer)
    # In-order binary trees; in the second one every node has moved by one.
    parents = [None] * nodes
    for i in range(nodes):
        step = (i + 1) & -(i + 1)
        up = (i + 1 - step) | (2 * step)
        parents[i] = up - 1 if up <= nodes else (i + 1 - step - 1)
    parents = [None if p == i or p < 0 else p for i, p in enumerate(parents)]
    chunks = max(1, math.ceil(size / 2 / levels.CHUNK))
    part = size / 2 / chunks
    done = {}  # the message with which a rank has all of a chunk

    def send(chunk, shift):
        place = [((i + shift) % nodes) * node for i in range(nodes)]
        children = {
            i: [j for j in range(nodes) if parents[j] == i] for i in range(nodes)
        }
        # A rank has buffers for some chunks, and frees them in order.
        before = chunk - levels.SLOTS
        chain = [done.get((before, shift, first + node - 1), []) for first in place]
        for i in range(nodes):  # from the last rank of a node to its first
            for rank in range(place[i] + node - 1, place[i], -1):
                chain[i] = [network.send(rank, rank - 1, part, chain[i])]

        def up(i):
            arrived = chain[i] + [m for child in children[i] for m in up(child)]
            if parents[i] is None:
                return arrived
            return [network.send(place[i], place[parents[i]], part, arrived)]

        def down(i, after):
            for child in children[i]:
                down(child, [network.send(place[i], place[child], part, after)])
            for rank in range(place[i], place[i] + node - 1):
                after = [network.send(rank, rank + 1, part, after)]
            done[chunk, shift, place[i] + node - 1] = after

        root = parents.index(None)
        down(root, up(root))

    for chunk, shift in itertools.product(range(chunks), (0, 1)):
        send(chunk, shift)


def leaders(network, size):
    width, *outer = [level.size for level in network.levels]
    firsts = range(0, math.prod(outer) * width, width)
    last = {first: [] for first in firsts}
    chunks = math.ceil(size / levels.CHUNK)
    for first, _ in itertools.product(firsts, range(chunks)):
        after = []
        for rank in range(first + width - 1, first, -1):
            after = [network.send(rank, rank - 1, size / chunks, after)]
        last[first] += after
    if len(firsts) > 1:
        last = ring_on(network, list(firsts), size, 2 * (len(firsts) - 1), last)
    for first, _ in itertools.product(firsts, range(chunks)):
        after = last[first]
        for rank in range(first, first + width - 1):
            after = [network.send(rank, rank + 1, size / chunks, after)]


SCHEDULES = {
    "ring": ring,
    "tree": tree,
    "two-level": two_level,
    "two-dimensional": two_dimensional,
    "double tree": double_tree,
    "leaders": leaders,
}


@pytest.mark.parametrize("size", [1 << 10, 1 << 22])
@pytest.mark.parametrize("way", SCHEDULES)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_model_of_an_all_reduce_is_that_of_its_messages(name, way, size):
    network = Network(NETWORKS[name])
    SCHEDULES[way](network, size)
    expected = levels.ALL_REDUCES[way](network.levels, size)
    assert network.seconds() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("size", [1 << 18, 3 << 19, 3 << 23])
@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_double_trees_of_any_number_of_parts_and_nodes(nodes, size):
    """One part of each tree, six, and half as many again as are sent one by one."""
    network = Network([Level(4, 200e9, 3e-6), Level(nodes, 24e9, 1e-5, 2)])
    double_tree(network, size)
    expected = levels.double_tree(network.levels, size)
    assert network.seconds() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("size", [1 << 10, 1 << 22])
@pytest.mark.parametrize("name", NETWORKS)
def test_switches_that_add_up_send_every_byte_once(name, size, packets=64):
    """A switch passes on a packet when all its children have sent theirs, at once."""
    node, *outer = NETWORKS[name]
    within = Network([node])
    if outer:  # each rank has a part of the node's sum, and gathers the others after it
        ring_on(within, list(range(node.size)), size, node.size - 1)
    inside = within.seconds()
    times = [inside] * packets
    for level in [*(outer or [node]), *reversed(outer or [node])]:
        free = 0.0
        for i, ready in enumerate(times):
            free = max(free, ready) + size / packets / level.capacity
            times[i] = free + level.latency
    found = times[-1] + inside
    expected = levels.in_network(NETWORKS[name], size)
    assert found == pytest.approx(expected, rel=0.05)


def test_small_sums_take_trees_and_large_ones_rings():
    found = [levels.all_reduce(RAIL, size)[1] for size in (1 << 10, 1 << 30)]
    assert found == ["double tree", "ring"]


def test_groups_share_the_links_between_nodes():
    # The groups have every 8th, 2nd and 16th rank of 4 nodes of 8 ranks.
    assert [level.size for level in levels.group(FEW_LINKS, 4, 8)] == [1, 4]
    assert levels.group(FEW_LINKS, 4, 8)[1].capacity == 12e9 / 8
    assert [level.size for level in levels.group(FEW_LINKS, 16, 2)] == [4, 4]
    assert levels.group(FEW_LINKS, 16, 2)[1].capacity == 12e9 / 2
    assert [level.size for level in levels.group(FEW_LINKS, 2, 16)] == [1, 2]


def oversubscription(topology, i):
    """The ratio of what the ranks below a child can send to its links."""
    below = topology[i - 1].size * topology[i - 1].capacity
    return below / topology[i].capacity


def test_oversubscription_of_each_level():
    # 4 adapters of 24 GB/s for 200 GB/s of each of 4 ranks; 4 nodes at a leaf.
    assert [oversubscription(RAIL, 1), oversubscription(LEAVES, 2)] == [800 / 96, 2]
