"""Networks for graphs, sets of points, and rows of tables."""

import numpy as np

from tests.benchmarks.networks.blocks import activated, chained, dense
from tests.benchmarks.networks.library import Task, network


@network
def gat(lib, nodes=4000, edges=40000, units=64, heads=4):
    """Two layers of attention to neighbours in a graph (Veličković et al., 2018)."""
    source, target = lib.ids(nodes, edges), lib.ids(nodes, edges)
    size = units // heads

    def layer():
        linear = lib.linear(units, units)
        of_source, of_target = (lib.parameter(1, heads, size) for _ in range(2))

        def forward(x):
            h = lib.reshape(linear(x), nodes, heads, size)
            sources = lib.rows(lib.sum(h * of_source, 2), source)
            targets = lib.rows(lib.sum(h * of_target, 2), target)
            exponents = lib.exp(lib.leaky_relu(sources + targets) * 0.1)
            totals = lib.sum_into_rows(exponents, target, nodes)
            weights = exponents / lib.rows(totals, target)
            messages = lib.rows(h, source) * lib.reshape(weights, edges, heads, 1)
            h = lib.sum_into_rows(messages, target, nodes)
            return lib.elu(lib.reshape(h, nodes, units))

        return forward

    forward = chained(layer(), layer(), lib.linear(units, 20))
    return Task(forward, lib.numbers(nodes, units), lib.classes(20, nodes))


@network
def pointnet(lib, batch=16, points=1024):
    """PointNet without its transformations (Qi et al., 2017)."""

    def layers(make, *widths):
        found = []
        for channels, filters in zip(widths, widths[1:]):
            layer = make(channels, filters)
            found += [layer, lib.batch_norm(filters), lib.relu]
        return chained(*found)

    def pointwise(channels, filters):
        return lib.conv(channels, filters, 1, axes=1)

    of_points = layers(pointwise, 3, 64, 64, 64, 128, 1024)
    of_sets = layers(lib.linear, 1024, 512, 256)
    last = lib.linear(256, 40)

    def forward(x):
        return last(of_sets(lib.max(of_points(x), 2)))

    return Task(forward, lib.numbers(batch, 3, points), lib.classes(40, batch))


@network
def deepfm(lib, batch=2048, fields=26, rows=2000, units=16):
    """A factorization machine and a deep network of the same vectors (Guo et al.,
    2017)."""
    count = fields * rows
    embed, weights = lib.embed(count, units), lib.embed(count, 1)
    deep = dense(lib, lib.relu, fields * units, 256, 128, 2)

    def forward(x):
        vectors = embed(x)
        total = lib.sum(vectors, 1)
        squares = total * total - lib.sum(vectors * vectors, 1)
        pairs = lib.sum(squares, 1, keepdims=True) * 0.5
        scores = deep(lib.reshape(vectors, batch, fields * units))
        return scores + pairs + lib.sum(weights(x), 1)

    return Task(forward, lib.ids(count, batch, fields), lib.classes(2, batch))


@network
def similarity(lib, batch=256):
    """Cosines of all pairs of rows, each of which shall find one other (Sohn, 2016)."""
    layers = dense(lib, lib.relu, 512, 512, 128)

    def forward(x):
        h = layers(x)
        h = h * lib.rsqrt(lib.sum(h * h, 1, keepdims=True) + 1e-12)
        return lib.matmul(h, lib.transpose(h, 1, 0)) * 10.0

    return Task(forward, lib.numbers(batch, 512), lib.classes(batch, batch))


@network
def gin(lib, nodes=6000, edges=60000, units=64):
    """Layers of the sums of neighbours (Xu et al., 2019)."""
    source, target = lib.ids(nodes, edges), lib.ids(nodes, edges)

    def layer():
        first = chained(lib.linear(units, units), lib.batch_norm(units), lib.relu)
        body = chained(first, lib.linear(units, units), lib.relu)

        def forward(x):
            return body(x + lib.sum_into_rows(lib.rows(x, source), target, nodes))

        return forward

    layers = layer(), layer(), layer(), lib.linear(units, 10)
    return Task(chained(*layers), lib.numbers(nodes, units), lib.classes(10, nodes))


@network
def dgcnn(lib, batch=8, points=256, neighbours=12):
    """Convolutions of edges to the nearest points (Wang et al., 2019)."""
    first_points = np.arange(batch).repeat(points * neighbours) * points
    offsets = lib.constant(first_points)

    def layer(channels, filters):
        body = activated(lib, 2 * channels, filters, 1)

        def forward(x):
            known = lib.detached(x)
            squares = lib.sum(known * known, 2, keepdims=True)
            others = lib.transpose(known, 0, 2, 1)
            near = 2.0 * lib.matmul(known, others) - lib.transpose(squares, 0, 2, 1)
            nearest = lib.reshape(lib.top(near, neighbours), offsets.shape[0])
            indices = lib.detached(nearest) + offsets
            ends = lib.rows(lib.reshape(x, batch * points, channels), indices)
            shape = batch, points, neighbours, channels
            starts = lib.reshape(x, batch, points, 1, channels)
            starts = lib.broadcast(starts, *shape)
            edges = lib.concat([starts, lib.reshape(ends, *shape) - starts], 3)
            h = body(lib.transpose(edges, 0, 3, 1, 2))
            return lib.transpose(lib.max(h, 3), 0, 2, 1)

        return forward

    first, second = layer(3, 64), layer(64, 64)
    last = dense(lib, lib.relu, 128, 256, 40)

    def forward(x):
        h = first(x)
        return last(lib.max(lib.concat([h, second(h)], 2), 1))

    return Task(forward, lib.numbers(batch, points, 3), lib.classes(40, batch))


@network
def burgers(lib, points=2000, units=64):
    """A network whose derivatives solve Burgers' equation (Raissi et al., 2019)."""
    layers = dense(lib, lib.tanh, 2, units, units, units, units, 1)

    def forward(x):
        x = lib.variable(x)
        u = layers(x)
        first = lib.gradient(lib.sum(u), x)
        of_place, of_time = first[:, :1], first[:, 1:]
        second = lib.gradient(lib.sum(of_place), x)[:, :1]
        rest = of_time + u * of_place - 0.003 * second
        return lib.mean(rest * rest)

    return Task(forward, lib.numbers(points, 2), lib.own_loss)
