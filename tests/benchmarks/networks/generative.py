"""Networks that generate images, or change them."""

import numpy as np

from tests.benchmarks.networks.blocks import (
    chained,
    dense,
    residual,
)
from tests.benchmarks.networks.library import Task, network


@network
def autoencoder(lib, batch=256):
    """A deep autoencoder of digits (Hinton and Salakhutdinov, 2006)."""
    encoder = dense(lib, lib.sigmoid, 784, 1000, 500, 250, 30)
    decoder = dense(lib, lib.sigmoid, 30, 250, 500, 1000, 784)
    x = lib.numbers(batch, 784)
    return Task(chained(encoder, decoder), x, lib.targets(batch, 784))


@network
def vae(lib, batch=64):
    """A variational autoencoder of 32x32 images (Kingma and Welling, 2014)."""
    encoder, decoder = [], []
    for channels, filters in (3, 32), (32, 64), (64, 128):
        encoder += [lib.conv(channels, filters, 4, 2, 1), lib.leaky_relu]
        decoder = [lib.deconv(filters, channels, 4, 2, 1), lib.leaky_relu, *decoder]
    encode, decode = chained(*encoder), chained(*decoder[:-1])
    code, hidden = lib.linear(128 * 16, 2 * 64), lib.linear(64, 128 * 16)
    noise = lib.numbers(batch, 64)

    def forward(x):
        statistics = code(lib.reshape(encode(x), batch, 128 * 16))
        mean, log_variance = statistics[:, :64], statistics[:, 64:]
        variance = lib.exp(log_variance)
        z = mean + lib.exp(log_variance * 0.5) * noise
        h = lib.reshape(lib.leaky_relu(hidden(z)), batch, 128, 4, 4)
        error = decode(h) - x
        divergence = lib.mean(mean * mean + variance - log_variance - 1.0) * 0.5
        return lib.mean(error * error) + divergence

    return Task(forward, lib.images(batch, 3, 32), lib.own_loss)


@network
def diffusion(lib, batch=4, size=32, channels=64):
    """A small U-Net with attention for diffusion (Ho et al., 2020)."""

    def block(channels, filters):
        first = chained(lib.group_norm(8, channels), lib.silu)
        first = chained(first, lib.conv(channels, filters))
        second = chained(lib.group_norm(8, filters), lib.silu)
        second = chained(second, lib.conv(filters, filters))
        of_time = lib.linear(128, filters)
        is_same = channels == filters
        beside = chained() if is_same else lib.conv(channels, filters, 1)

        def forward(x, time):
            shift = lib.reshape(of_time(time), batch, filters, 1, 1)
            return beside(x) + second(first(x) + shift)

        return forward

    def attention(channels):
        norm, out = lib.group_norm(8, channels), lib.conv(channels, channels, 1)
        inputs = lib.conv(channels, 3 * channels, 1)

        def forward(x):
            *_, height, width = x.shape
            h = lib.reshape(inputs(norm(x)), batch, 3, channels, height * width)
            q, k, v = h[:, 0], h[:, 1], h[:, 2]
            scores = lib.matmul(lib.transpose(q, 0, 2, 1), k) * channels**-0.5
            weights = lib.transpose(lib.softmax(scores), 0, 2, 1)
            return x + out(lib.reshape(lib.matmul(v, weights), *x.shape))

        return forward

    embed = dense(lib, lib.silu, 64, 128, 128)
    first, half = lib.conv(3, channels), lib.conv(channels, channels, 3, 2)
    fine, coarse = block(channels, channels), block(channels, 2 * channels)
    attend, middle = attention(2 * channels), block(2 * channels, 2 * channels)
    up_coarse, up_fine = (
        block(4 * channels, 2 * channels),
        block(3 * channels, channels),
    )
    last = chained(lib.group_norm(8, channels), lib.silu, lib.conv(channels, 3))
    frequencies = np.exp(-9 * np.arange(32, dtype="f") / 32)
    angles = 100 * np.arange(batch, dtype="f")[:, None] * frequencies
    waves = lib.constant(np.concatenate([np.sin(angles), np.cos(angles)], 1))

    def forward(x):
        time = embed(waves)
        a = fine(first(x), time)
        b = attend(coarse(half(a), time))
        h = up_coarse(lib.concat([middle(b, time), b]), time)
        return last(up_fine(lib.concat([lib.twice_as_large(h), a]), time))

    x = lib.images(batch, 3, size)
    return Task(forward, x, lib.targets(batch, 3, size, size))


@network
def stylegan(lib, batch=4, size=16, channels=128):
    """Modulated convolutions of StyleGAN2 (Karras et al., 2020)."""
    latent = lib.numbers(batch, 64)

    def layer():
        w = lib.parameter(1, channels, channels, 3, 3)
        style = lib.linear(64, channels)

        def forward(h):
            size = h.shape[2]
            scales = lib.reshape(style(latent), batch, 1, channels, 1, 1)
            weights = w * scales
            squares = lib.sum(weights * weights, (2, 3, 4), keepdims=True)
            weights = weights * lib.rsqrt(squares + 1e-8)
            # Each image is a group, since it has weights of its own.
            weights = lib.reshape(weights, batch * channels, channels, 3, 3)
            h = lib.reshape(h, 1, batch * channels, size, size)
            h = lib.conv_with(h, weights, 1, groups=batch)
            return lib.leaky_relu(lib.reshape(h, batch, channels, size, size))

        return forward

    layers = [layer(), layer(), lib.twice_as_large, layer(), layer()]
    forward = chained(*layers, lib.twice_as_large, lib.conv(channels, 3, 1))
    x = lib.images(batch, channels, size)
    return Task(forward, x, lib.targets(batch, 3, 4 * size, 4 * size))


@network
def glow(lib, batch=16, size=32, channels=12):
    """Four steps of a flow: scales, a 1x1 convolution without its determinant, and a
    coupling (Kingma and Dhariwal, 2018)."""
    half = channels // 2

    def step():
        log_scale = lib.parameter(1, channels, 1, 1, value=0.05)
        shift = lib.parameter(1, channels, 1, 1, value=0.5)
        mixed = lib.conv(channels, channels, 1)
        first, second = lib.conv(half, 128), lib.conv(128, 128, 1)
        coupling = chained(first, lib.relu, second, lib.relu, lib.conv(128, channels))

        def forward(h):
            h = mixed((h + shift) * lib.exp(log_scale))
            kept, changed = h[:, :half], h[:, half:]
            y = coupling(kept)
            scale = lib.sigmoid(y[:, half:] + 2.0)
            h = lib.concat([kept, (changed + y[:, :half]) * scale])
            return h, lib.sum(lib.log(scale))

        return forward

    steps = [step() for _ in range(4)]

    def forward(h):
        log_determinant = 0.0
        for step in steps:
            h, more = step(h)
            log_determinant = log_determinant + more
        numbers = batch * channels * size * size
        return (lib.sum(h * h) * 0.5 - log_determinant) / numbers

    return Task(forward, lib.images(batch, channels, size), lib.own_loss)


@network
def pixelcnn(lib, batch=8, size=32, channels=64):
    """Gated convolutions that see earlier pixels only (van den Oord et al., 2016)."""

    def masked(channels, filters, ksize, sees_itself):
        w = lib.parameter(filters, channels, ksize, ksize)
        mask = np.ones((ksize, ksize), "f")
        middle = ksize // 2
        mask[middle + 1 :] = 0
        mask[middle, middle + sees_itself :] = 0
        mask = lib.constant(mask)
        return lambda x: lib.conv_with(x, w * mask, middle)

    def gated():
        conv = masked(channels, 2 * channels, 3, True)

        def forward(x):
            y = conv(x)
            return lib.tanh(y[:, :channels]) * lib.sigmoid(y[:, channels:])

        return forward

    layers = [masked(3, channels, 7, False)]
    layers += [residual(gated()) for _ in range(4)]
    forward = chained(*layers, lib.relu, lib.conv(channels, 32, 1))
    x = lib.images(batch, 3, size)
    return Task(forward, x, lib.targets(batch, 32, size, size))


@network
def srcnn(lib, batch=4, size=96):
    """Three convolutions for finer images, SRCNN (Dong et al., 2014)."""
    first, second = lib.conv(1, 64, 9), lib.conv(64, 32, 5)
    forward = chained(first, lib.relu, second, lib.relu, lib.conv(32, 1, 5))
    x = lib.images(batch, 1, size)
    return Task(forward, x, lib.targets(batch, 1, size, size))


@network
def edsr(lib, batch=4, size=32, channels=64):
    """Eight residual blocks for images 4 times as large, EDSR (Lim et al., 2017)."""

    def block():
        first, second = lib.conv(channels, channels), lib.conv(channels, channels)
        return residual(first, lib.relu, second, lambda h: h * 0.1)

    def larger():
        conv = lib.conv(channels, 4 * channels)
        return lambda h: lib.depth_to_space(conv(h), 2)

    body = residual(*(block() for _ in range(8)))
    first = lib.conv(3, channels)
    forward = chained(first, body, larger(), larger(), lib.conv(channels, 3))
    x = lib.images(batch, 3, size)
    return Task(forward, x, lib.targets(batch, 3, 4 * size, 4 * size))


@network
def style_transfer(lib, batch=2, size=128):
    """A network for an artist's style (Johnson et al., 2016), with reflected borders
    and larger pixels (Dumoulin et al., 2017)."""

    def reflected(channels, filters, ksize, stride=1):
        conv = lib.conv(channels, filters, ksize, stride, 0)
        return lambda x: conv(lib.reflect(x, ksize // 2))

    def normalized(channels, filters, ksize=3, stride=1):
        """With instance normalization."""
        conv = reflected(channels, filters, ksize, stride)
        scale = lib.parameter(1, filters, 1, 1, value=0.5)
        shift = lib.parameter(1, filters, 1, 1, value=0.5)

        def forward(x):
            h = conv(x)
            h = h - lib.mean(h, (2, 3), keepdims=True)
            variance = lib.mean(h * h, (2, 3), keepdims=True)
            return h * lib.rsqrt(variance + 1e-5) * scale + shift

        return forward

    layers = []
    for sizes in (3, 32, 9), (32, 64, 3, 2), (64, 128, 3, 2):
        layers += [normalized(*sizes), lib.relu]
    for _ in range(3):
        pair = normalized(128, 128), lib.relu, normalized(128, 128)
        layers.append(residual(*pair))
    for sizes in (128, 64), (64, 32):
        layers += [lib.twice_as_large, normalized(*sizes), lib.relu]
    forward = chained(*layers, reflected(32, 3, 9), lib.tanh)
    x = lib.images(batch, 3, size)
    return Task(forward, x, lib.targets(batch, 3, size, size))


@network
def nerf(lib, points=8192):
    """A radiance field's layers for points in space (Mildenhall et al., 2020)."""
    layers = dense(lib, lib.relu, 60, *(256,) * 8, 10)

    def forward(x):
        waves = []
        for k in range(10):
            waves += [lib.sin(x * 2.0**k), lib.cos(x * 2.0**k)]
        return layers(lib.concat(waves))

    return Task(forward, lib.numbers(points, 3), lib.classes(10, points))


@network
def vq_vae(lib, batch=16, size=32, codes=256, units=64):
    """An autoencoder whose code is the nearest of some vectors (van den Oord et al.,
    2017)."""
    layers = [lib.conv(3, 64, 4, 2, 1), lib.relu, lib.conv(64, 128, 4, 2, 1), lib.relu]
    encode = chained(*layers, lib.conv(128, units, 1))
    layers = [lib.conv(units, 128), lib.relu, lib.deconv(128, 64, 4, 2, 1), lib.relu]
    decode = chained(*layers, lib.deconv(64, 3, 4, 2, 1))
    vectors, width = lib.parameter(codes, units), size // 4

    def squared(x):
        return lib.mean(x * x)

    def forward(x):
        h = lib.transpose(encode(x), 0, 2, 3, 1)
        h = lib.reshape(h, batch * width * width, units)
        known, table = lib.detached(h), lib.detached(vectors)
        products = lib.matmul(known, lib.transpose(table, 1, 0))
        nearest = lib.argmin(lib.sum(table * table, 1) - 2.0 * products)
        code = lib.rows(vectors, nearest)
        moved = h + (lib.detached(code) - known)
        moved = lib.reshape(moved, batch, width, width, units)
        error = squared(decode(lib.transpose(moved, 0, 3, 1, 2)) - x)
        return error + squared(code - known) + squared(lib.detached(code) - h) * 0.25

    return Task(forward, lib.images(batch, 3, size), lib.own_loss)
