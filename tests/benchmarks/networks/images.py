"""Networks that classify images, or each pixel of images and volumes."""

import numpy as np

from tests.benchmarks.networks.blocks import (
    activated,
    attention,
    chained,
    channels_last_norm,
    dense,
    mean_of_pixels,
    normalized,
    queries_keys_values,
    residual,
)
from tests.benchmarks.networks.library import Task, network


def classifier(lib, layers, x, channels, classes=100):
    """The layers, the mean of pixels, and scores of classes."""
    last = lib.linear(channels, classes)
    body = chained(*layers)

    def forward(h):
        return last(mean_of_pixels(lib, body(h)))

    return Task(forward, x, lib.classes(classes, len(x)))


@network
def lenet(lib, batch=256):
    """LeNet-5 (LeCun et al., 1998)."""
    first, second = lib.conv(1, 6, 5), lib.conv(6, 16, 5, 1, 0)
    last = dense(lib, lib.tanh, 400, 120, 84, 10)

    def forward(x):
        h = lib.average_pool(lib.tanh(first(x)), 2)
        h = lib.average_pool(lib.tanh(second(h)), 2)
        return last(lib.reshape(h, batch, 400))

    return Task(forward, lib.images(batch, 1, 28), lib.classes(10, batch))


@network
def alexnet(lib, batch=16):
    """AlexNet with two groups (Krizhevsky et al., 2012), and smaller last layers."""
    first = lib.conv(3, 96, 11, 4, 2)
    second = lib.conv(96, 256, 5, groups=2)
    third = lib.conv(256, 384)
    fourth = lib.conv(384, 384, groups=2)
    fifth = lib.conv(384, 256, groups=2)
    hidden, last = lib.linear(256 * 6 * 6, 1024), lib.linear(1024, 100)

    def forward(x):
        h = lib.max_pool(lib.relu(first(x)), 3, 2)
        h = lib.max_pool(lib.relu(second(h)), 3, 2)
        h = lib.relu(fourth(lib.relu(third(h))))
        h = lib.max_pool(lib.relu(fifth(h)), 3, 2)
        h = lib.relu(hidden(lib.reshape(h, batch, 256 * 6 * 6)))
        return last(lib.dropout(h, 0.5))

    return Task(forward, lib.images(batch, 3, 224), lib.classes(100, batch))


@network
def maxout(lib, batch=512):
    """Two layers of 240 maxima of 5 (Goodfellow et al., 2013)."""
    layers = lib.linear(784, 1200), lib.linear(240, 1200)
    last = lib.linear(240, 10)

    def forward(h):
        for layer in layers:
            h = lib.max(lib.reshape(layer(h), batch, 240, 5), 2)
        return last(h)

    return Task(forward, lib.numbers(batch, 784), lib.classes(10, batch))


@network
def inception(lib, batch=4, size=17):
    """Three blocks of Inception-v3 whose kernels have one row or column (Szegedy et
    al., 2016)."""

    def branch(*layers):
        channels, parts = 768, []
        for ksize, filters in layers:
            parts.append(activated(lib, channels, filters, ksize))
            channels = filters
        return chained(*parts)

    def block():
        row, column = (1, 7), (7, 1)
        pixel = branch((1, 192))
        once = branch((1, 128), (row, 128), (column, 192))
        twice = [(1, 128), (column, 128), (row, 128), (column, 128), (row, 192)]
        branches = pixel, once, branch(*twice)
        pooled = branch((1, 192))

        def forward(x):
            ys = [branch(x) for branch in branches]
            return lib.concat([*ys, pooled(lib.average_pool(x, 3, 1, 1))])

        return forward

    blocks = [block() for _ in range(3)]
    return classifier(lib, blocks, lib.images(batch, 768, size), 768)


@network
def shufflenet(lib, batch=8, size=128):
    """ShuffleNetV2 (Ma et al., 2018)."""

    def shuffled(x):
        batch, channels, *sizes = x.shape
        x = lib.reshape(x, batch, 2, channels // 2, *sizes)
        x = lib.transpose(x, 0, 2, 1, 3, 4)
        return lib.reshape(x, batch, channels, *sizes)

    def right_branch(channels, filters, stride):
        depthwise = normalized(lib, filters, filters, 3, stride, groups=filters)
        first = activated(lib, channels, filters, 1)
        return chained(first, depthwise, activated(lib, filters, filters, 1))

    def half_as_large(channels, filters):
        depthwise = normalized(lib, channels, channels, 3, 2, groups=channels)
        left = chained(depthwise, activated(lib, channels, filters, 1))
        right = right_branch(channels, filters, 2)
        return lambda x: shuffled(lib.concat([left(x), right(x)]))

    def unit(channels):
        right = right_branch(channels, channels, 1)

        def forward(x):
            return shuffled(lib.concat([x[:, :channels], right(x[:, channels:])]))

        return forward

    layers = [activated(lib, 3, 24, 3, 2), lambda x: lib.max_pool(x, 3, 2, 1)]
    channels = 24
    for filters, count in ((116, 4), (232, 8), (464, 4)):
        layers.append(half_as_large(channels, filters // 2))
        layers += [unit(filters // 2) for _ in range(count - 1)]
        channels = filters
    layers.append(activated(lib, channels, 1024, 1))
    return classifier(lib, layers, lib.images(batch, 3, size), 1024)


@network
def se_resnext(lib, batch=8, size=56):
    """Blocks of 32 groups (Xie et al., 2017) whose channels have weights of their own,
    by squeeze and excitation (Hu et al., 2018)."""

    def block(channels):
        grouped = activated(lib, channels, channels, groups=32)
        body = chained(grouped, normalized(lib, channels, channels, 1))
        scores = dense(lib, lib.relu, channels, channels // 16, channels)

        def forward(x):
            h = body(x)
            weights = lib.sigmoid(scores(mean_of_pixels(lib, h)))
            return lib.relu(x + h * lib.reshape(weights, batch, channels, 1, 1))

        return forward

    layers = [lib.conv(3, 128, 3, 2), *(block(128) for _ in range(4))]
    return classifier(lib, layers, lib.images(batch, 3, size), 128)


@network
def res2net(lib, batch=8, size=28):
    """Blocks whose quarters of channels are convolved in turn (Gao et al., 2019)."""

    def block(channels):
        width = channels // 4
        first = activated(lib, channels, channels, 1)
        convs = [activated(lib, width, width) for _ in range(3)]
        last = normalized(lib, channels, channels, 1)

        def forward(x):
            h = first(x)
            parts = [h[:, :width]]
            for k, conv in enumerate(convs, 1):
                part = h[:, k * width : (k + 1) * width]
                parts.append(conv(part if k == 1 else part + parts[-1]))
            return lib.relu(x + last(lib.concat(parts)))

        return forward

    blocks = [block(128) for _ in range(4)]
    return classifier(lib, blocks, lib.images(batch, 128, size), 128)


@network
def gn_resnet(lib, batch=8, size=64):
    """A ResNet with group normalization (Wu and He, 2018)."""

    def normalized(*sizes):
        return chained(lib.conv(*sizes, bias=False), lib.group_norm(16, sizes[1]))

    def block(channels, filters, stride):
        first = normalized(channels, filters, 3, stride)
        body = chained(first, lib.relu, normalized(filters, filters))
        beside = lib.conv(channels, filters, 1, stride) if stride > 1 else chained()
        return lambda x: lib.relu(body(x) + beside(x))

    layers = [normalized(3, 64), lib.relu, block(64, 64, 1)]
    layers += [block(width, 2 * width, 2) for width in (64, 128, 256)]
    return classifier(lib, layers, lib.images(batch, 3, size), 512)


@network
def convnext(lib, batch=4, size=96):
    """ConvNeXt with 64 to 512 channels and 10 blocks (Liu et al., 2022)."""

    def block(channels):
        scale = lib.parameter(1, channels, 1, 1, value=0.5)
        return residual(
            lib.conv(channels, channels, 7, groups=channels),
            channels_last_norm(lib, channels),
            lib.conv(channels, 4 * channels, 1),
            lib.gelu,
            lib.conv(4 * channels, channels, 1),
            lambda h: h * scale,
        )

    layers = [lib.conv(3, 64, 4, 4, 0), channels_last_norm(lib, 64)]
    for channels, count in ((64, 2), (128, 2), (256, 4), (512, 2)):
        if channels > 64:
            layers.append(channels_last_norm(lib, channels // 2))
            layers.append(lib.conv(channels // 2, channels, 2, 2, 0))
        layers += [block(channels) for _ in range(count)]
    return classifier(lib, layers, lib.images(batch, 3, size), 512)


@network
def swin(lib, batch=4, size=28, channels=192, heads=6, window=7):
    """Four blocks of attention in windows, every other shifted (Liu et al., 2021)."""
    count, pixels = size // window, window * window

    def windows(x):
        x = lib.reshape(x, batch, count, window, count, window, channels)
        x = lib.transpose(x, 0, 1, 3, 2, 4, 5)
        return lib.reshape(x, batch * count * count, pixels, channels)

    def image(x):
        x = lib.reshape(x, batch, count, count, window, window, channels)
        x = lib.transpose(x, 0, 1, 3, 2, 4, 5)
        return lib.reshape(x, batch, size, size, channels)

    def attend(shift):
        norm, out = lib.layer_norm(channels), lib.linear(channels, channels)
        inputs = lib.linear(channels, 3 * channels)
        bias = lib.parameter(heads, pixels, pixels, value=0.5)

        def forward(x):
            h = norm(x)
            h = lib.roll(h, -shift, (1, 2)) if shift else h
            heads_of = queries_keys_values(lib, inputs(windows(h)), heads)
            h = image(out(attention(lib, *heads_of, bias)))
            return x + (lib.roll(h, shift, (1, 2)) if shift else h)

        return forward

    layers = []
    for k in range(4):
        hidden = dense(lib, lib.gelu, channels, 4 * channels, channels)
        layers.append(attend(window // 2 if k % 2 else 0))
        layers.append(residual(lib.layer_norm(channels), hidden))
    last, body = lib.linear(channels, 100), chained(*layers)

    def forward(x):
        return last(lib.mean(body(x), (1, 2)))

    x = lib.numbers(batch, size, size, channels)
    return Task(forward, x, lib.classes(100, batch))


@network
def mixer(lib, batch=8, patches=196, channels=256):
    """Four blocks of MLP-Mixer (Tolstikhin et al., 2021)."""

    def swapped(x):
        return lib.transpose(x, 0, 2, 1)

    layers = []
    for _ in range(4):
        tokens = dense(lib, lib.gelu, patches, 128, patches)
        layers.append(residual(lib.layer_norm(channels), swapped, tokens, swapped))
        hidden = dense(lib, lib.gelu, channels, 4 * channels, channels)
        layers.append(residual(lib.layer_norm(channels), hidden))
    last, body = lib.linear(channels, 100), chained(*layers)

    def forward(x):
        return last(lib.mean(body(x), 1))

    return Task(forward, lib.numbers(batch, patches, channels), lib.classes(100, batch))


@network
def yolo(lib, batch=4, size=128):
    """Three levels of Darknet and a finer detector of YOLOv3 (Redmon and Farhadi,
    2018)."""

    def conv(*sizes):
        return chained(normalized(lib, *sizes), lib.leaky_relu)

    def level(channels, count):
        filters = 2 * channels
        layers = [conv(channels, filters, 3, 2)]
        for _ in range(count):
            pair = conv(filters, channels, 1), conv(channels, filters)
            layers.append(residual(*pair))
        return chained(*layers)

    fine = chained(conv(3, 32), level(32, 1), level(64, 2))
    coarse, side = level(128, 2), conv(256, 128, 1)
    last = chained(conv(256, 128, 1), conv(128, 256), lib.conv(256, 75, 1))

    def forward(x):
        h = fine(x)
        larger = lib.twice_as_large(side(coarse(h)))
        return last(lib.concat([larger, h]))

    x = lib.images(batch, 3, size)
    return Task(forward, x, lib.targets(batch, 75, size // 4, size // 4))


@network
def hourglass(lib, batch=4, size=128):
    """An hourglass of three levels with 16 maps (Newell et al., 2016)."""

    def block(channels, filters):
        width, layers = filters // 2, []
        for sizes in (channels, width, 1), (width, width, 3), (width, filters, 1):
            layers += [lib.batch_norm(sizes[0]), lib.relu, lib.conv(*sizes)]
        body = chained(*layers)
        beside = lib.conv(channels, filters, 1) if channels < filters else chained()
        return lambda x: body(x) + beside(x)

    first, last = lib.conv(3, 64, 7, 2), lib.conv(128, 16, 1)
    down = [block(64, 128), block(128, 128), block(128, 128)]
    beside = [block(128, 128) for _ in down]
    up = [block(128, 128) for _ in down]

    def forward(x):
        h, levels = lib.relu(first(x)), []
        for k in range(3):
            h = down[k](h)
            levels.append(beside[k](h))
            h = lib.max_pool(h, 2)
        for k in (2, 1, 0):
            h = lib.twice_as_large(up[k](h)) + levels[k]
        return last(h)

    x = lib.images(batch, 3, size)
    return Task(forward, x, lib.targets(batch, 16, size // 2, size // 2))


@network
def deeplab(lib, batch=2, size=33):
    """Dilated convolutions of DeepLabv3, and scores of pixels (Chen et al., 2017)."""
    branches = [activated(lib, 512, 128, 1)]
    branches += [activated(lib, 512, 128, 3, dilation=d) for d in (6, 12, 18)]
    of_mean, joined = activated(lib, 512, 128, 1), activated(lib, 640, 128, 1)
    last = lib.conv(128, 21, 1)
    pixels = 4 * size - 3

    def forward(x):
        mean = of_mean(lib.mean(x, (2, 3), keepdims=True))
        h = [*(branch(x) for branch in branches), lib.resize(mean, size)]
        return lib.resize(last(joined(lib.concat(h))), pixels)

    x = lib.images(batch, 512, size)
    return Task(forward, x, lib.classes(21, batch, pixels, pixels))


@network
def unet_3d(lib, batch=1, size=32):
    """A U-Net of three levels for volumes (Çiçek et al., 2016)."""

    def pair(channels, width, filters):
        first = activated(lib, channels, width, axes=3)
        return chained(first, activated(lib, width, filters, axes=3))

    fine, middle, coarse = pair(1, 16, 32), pair(32, 32, 64), pair(64, 64, 128)
    up_middle, up_fine = pair(192, 64, 64), pair(96, 32, 32)
    last = lib.conv(32, 3, 1, axes=3)

    def forward(x):
        a = fine(x)
        b = middle(lib.max_pool(a, 2))
        h = coarse(lib.max_pool(b, 2))
        h = up_middle(lib.concat([lib.twice_as_large(h), b]))
        return last(up_fine(lib.concat([lib.twice_as_large(h), a])))

    x = lib.volumes(batch, 1, size)
    return Task(forward, x, lib.targets(batch, 3, size, size, size))


@network
def efficientnet_v2(lib, batch=8, size=96):
    """Inverted bottlenecks, of which the first are fused (Tan and Le, 2021)."""

    def scaled(channels, inner):
        """Channels have weights of their own, by squeeze and excitation."""
        scores = chained(lib.conv(channels, inner, 1), lib.silu)
        scores = chained(scores, lib.conv(inner, channels, 1), lib.sigmoid)
        return lambda x: x * scores(lib.mean(x, (2, 3), keepdims=True))

    def fused(channels, filters, ratio, stride=1):
        wide = ratio * channels
        first = normalized(lib, channels, wide, 3, stride)
        layers = first, lib.silu, normalized(lib, wide, filters, 1)
        return (residual if channels == filters else chained)(*layers)

    def plain(channels, filters, ratio, stride=1):
        wide = ratio * channels
        layers = [normalized(lib, channels, wide, 1), lib.silu]
        layers += [normalized(lib, wide, wide, 3, stride, groups=wide), lib.silu]
        layers += [scaled(wide, channels // 4), normalized(lib, wide, filters, 1)]
        return (residual if channels == filters else chained)(*layers)

    layers = [normalized(lib, 3, 24, 3, 2), lib.silu, fused(24, 24, 1)]
    layers += [fused(24, 48, 4, 2), fused(48, 48, 4), fused(48, 64, 4, 2)]
    layers += [fused(64, 64, 4), plain(64, 128, 4, 2), plain(128, 128, 4)]
    layers += [plain(128, 160, 6), plain(160, 160, 6)]
    return classifier(lib, layers, lib.images(batch, 3, size), 160)


@network
def video_resnet(lib, batch=2, size=28):
    """Convolutions of volumes by those of planes and of lines, R(2+1)D (Tran et al.,
    2018)."""

    def conv(channels, filters, stride=1):
        width = 27 * channels * filters // (9 * channels + 3 * filters)
        planes, along = (1, stride, stride), (stride, 1, 1)
        first = normalized(lib, channels, width, (1, 3, 3), planes, axes=3)
        last = normalized(lib, width, filters, (3, 1, 1), along, axes=3)
        return chained(first, lib.relu, last)

    def block(channels, filters, stride=1):
        body = chained(
            conv(channels, filters, stride), lib.relu, conv(filters, filters)
        )
        sizes = channels, filters, 1, stride
        beside = normalized(lib, *sizes, axes=3) if stride > 1 else chained()
        return lambda x: lib.relu(beside(x) + body(x))

    layers = [conv(3, 32), lib.relu, block(32, 32), block(32, 64, 2)]
    body, last = chained(*layers, block(64, 128, 2)), lib.linear(128, 50)

    def forward(x):
        return last(lib.mean(body(x), (2, 3, 4)))

    return Task(forward, lib.volumes(batch, 3, size), lib.classes(50, batch))


@network
def capsules(lib, batch=16, channels=128):
    """Capsules of digits, three of whose rounds choose inputs (Sabour et al., 2017)."""
    first, second = lib.conv(1, channels, 9, 1, 0), lib.conv(channels, 128, 9, 2, 0)
    weights = lib.parameter(1, 10, 576, 8, 16)
    alike = lib.constant(np.zeros((batch, 10, 576, 1), "f"))

    def squashed(x):
        square = lib.sum(x * x, -1, keepdims=True)
        return x * (square * lib.rsqrt(square + 1e-7) / (1.0 + square))

    def shares(scores):
        of_outputs = lib.softmax(lib.transpose(scores, 0, 2, 3, 1))
        return lib.transpose(of_outputs, 0, 3, 1, 2)

    def forward(x):
        h = lib.reshape(second(lib.relu(first(x))), batch, 16, 8, 36)
        h = squashed(lib.transpose(h, 0, 1, 3, 2))
        h = lib.broadcast(lib.reshape(h, batch, 1, 576, 1, 8), batch, 10, 576, 1, 8)
        votes = lib.matmul(h, lib.broadcast(weights, batch, 10, 576, 8, 16))
        votes, scores = lib.reshape(votes, batch, 10, 576, 16), alike
        for _ in range(2):
            outputs = squashed(lib.sum(shares(scores) * votes, 2, keepdims=True))
            scores = scores + lib.sum(votes * outputs, 3, keepdims=True)
        outputs = squashed(lib.sum(shares(scores) * votes, 2))
        square = lib.sum(outputs * outputs, 2) + 1e-7
        return square * lib.rsqrt(square) * 10.0

    return Task(forward, lib.images(batch, 1, 28), lib.classes(10, batch))
