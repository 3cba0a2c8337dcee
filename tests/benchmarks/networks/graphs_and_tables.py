"""Networks for graphs, sets of points, and rows of tables."""

from tests.benchmarks.networks.blocks import chained, dense
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
