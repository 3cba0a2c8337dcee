"""Parts that several networks have."""


def chained(*functions):
    """The functions, each of the result of the one before."""

    def forward(h):
        for function in functions:
            h = function(h)
        return h

    return forward


def residual(*functions):
    """The same, added to the argument."""
    body = chained(*functions)
    return lambda x: x + body(x)


def normalized(lib, *sizes, **options):
    """A convolution and batch normalization; ``sizes`` are those of a convolution."""
    conv = lib.conv(*sizes, bias=False, **options)
    return chained(conv, lib.batch_norm(sizes[1]))


def activated(lib, *sizes, **options):
    """A convolution, batch normalization and ReLU."""
    return chained(normalized(lib, *sizes, **options), lib.relu)


def mean_of_pixels(lib, x):
    return lib.mean(x, (2, 3))


def dense(lib, activation, *sizes):
    """Linear layers with an activation between them."""
    layers = []
    for size, units in zip(sizes, sizes[1:]):
        layers += [lib.linear(size, units), activation]
    return chained(*layers[:-1])


def channels_last_norm(lib, channels):
    """Layer normalization of the channels of each pixel."""
    norm = lib.layer_norm(channels)
    return lambda x: lib.transpose(norm(lib.transpose(x, 0, 2, 3, 1)), 0, 3, 1, 2)


def split_heads(lib, x, heads):
    """From (batch, length, channels) to (batch, heads, length, channels of a head)."""
    batch, length, channels = x.shape
    x = lib.reshape(x, batch, length, heads, channels // heads)
    return lib.transpose(x, 0, 2, 1, 3)


def queries_keys_values(lib, x, heads):
    """Those of each head, of the outputs of one layer for all three."""
    batch, length, channels = x.shape
    x = lib.reshape(x, batch, length, 3, heads, channels // 3 // heads)
    x = lib.transpose(x, 2, 0, 3, 1, 4)
    return x[0], x[1], x[2]


def join_heads(lib, x):
    """The inverse of split_heads."""
    batch, heads, length, channels = x.shape
    return lib.reshape(lib.transpose(x, 0, 2, 1, 3), batch, length, heads * channels)


def attention(lib, q, k, v, bias=None):
    """The heads' values by softmax of products, with their heads joined."""
    scores = lib.matmul(q, lib.transpose(k, 0, 1, 3, 2)) * q.shape[-1] ** -0.5
    scores = scores if bias is None else scores + bias
    return join_heads(lib, lib.matmul(lib.softmax(scores), v))
