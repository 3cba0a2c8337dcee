"""Networks for texts, sounds and other sequences."""

import numpy as np

from tests.benchmarks.networks.blocks import (
    attention,
    chained,
    dense,
    join_heads,
    queries_keys_values,
    residual,
    split_heads,
)
from tests.benchmarks.networks.library import Task, network


def swapped(lib, x):
    """The last two axes are exchanged."""
    return lib.transpose(x, 0, 2, 1)


@network
def rnn(lib, batch=32, length=50, units=256, words=2000):
    """A recurrent language model as a loop (Elman, 1990)."""
    embed, last = lib.embed(words, units), lib.linear(units, words)
    of_input, of_state = lib.linear(units, units), lib.linear(units, units)
    nothing = lib.constant(np.zeros((batch, units), "f"))

    def forward(x):
        inputs, h, states = embed(x), nothing, []
        for k in range(length):
            h = lib.tanh(of_input(inputs[:, k]) + of_state(h))
            states.append(h)
        return last(lib.concat(states, 0))

    x = lib.ids(words, batch, length)
    return Task(forward, x, lib.classes(words, batch * length))


@network
def gru_attention(lib, batch=32, length=20, units=256, words=2000):
    """A decoder of gated units (Cho et al., 2014) that attends to 30 states by products
    (Luong et al., 2015)."""
    embed, last = lib.embed(words, units), lib.linear(2 * units, words)
    of_input, of_state = lib.linear(units, 3 * units), lib.linear(units, 2 * units)
    new_of_state, query = lib.linear(units, units), lib.linear(units, units)
    memory = lib.numbers(batch, 30, units)
    nothing = lib.constant(np.zeros((batch, units), "f"))

    def unit(x, h):
        y = of_input(x)
        gates = lib.sigmoid(y[:, : 2 * units] + of_state(h))
        reset, update = gates[:, :units], gates[:, units:]
        new = lib.tanh(y[:, 2 * units :] + new_of_state(reset * h))
        return update * h + (1.0 - update) * new

    def attended(h):
        scores = lib.matmul(memory, lib.reshape(query(h), batch, units, 1))
        weights = lib.softmax(lib.reshape(scores, batch, 1, 30))
        return lib.reshape(lib.matmul(weights, memory), batch, units)

    def forward(x):
        inputs, h, states = embed(x), nothing, []
        for k in range(length):
            h = unit(inputs[:, k], h)
            states.append(lib.concat([h, attended(h)]))
        return last(lib.concat(states, 0))

    x = lib.ids(words, batch, length)
    return Task(forward, x, lib.classes(words, batch * length))


@network
def llama(lib, batch=4, length=128, units=256, heads=8, words=4096):
    """Four blocks of LLaMA (Touvron et al., 2023)."""
    size = units // heads
    frequencies = 10000.0 ** (-np.arange(0, size, 2) / size)
    angles = (np.arange(length)[:, None] * frequencies).astype("f")
    cos, sin = lib.constant(np.cos(angles)), lib.constant(np.sin(angles))
    later = lib.constant(np.triu(np.full((length, length), -1e9, "f"), 1))

    def linear(size, units):
        return lib.linear(size, units, bias=False)

    def norm():
        """By the root of the mean square."""
        scale = lib.parameter(units, value=0.5)

        def forward(x):
            mean = lib.mean(x * x, -1, keepdims=True)
            return x * lib.rsqrt(mean + 1e-6) * scale

        return forward

    def rotated(x):
        a, b = x[..., : size // 2], x[..., size // 2 :]
        return lib.concat([a * cos - b * sin, a * sin + b * cos], -1)

    def attend():
        query, key, value, out = (linear(units, units) for _ in range(4))

        def forward(x):
            q, k, v = (split_heads(lib, f(x), heads) for f in (query, key, value))
            return out(attention(lib, rotated(q), rotated(k), v, later))

        return forward

    def gated():
        gate, value, out = linear(units, 704), linear(units, 704), linear(704, units)
        return lambda x: out(lib.silu(gate(x)) * value(x))

    layers = [lib.embed(words, units)]
    for _ in range(4):
        layers += [residual(norm(), attend()), residual(norm(), gated())]
    body = chained(*layers, norm(), linear(units, words))

    def forward(x):
        return lib.reshape(body(x), batch * length, words)

    x = lib.ids(words, batch, length)
    return Task(forward, x, lib.classes(words, batch * length))


def classifier(lib, layers, batch, length, units):
    """Scores of 100 classes, of the mean over a sequence."""
    last, body = lib.linear(units, 100), chained(*layers)

    def forward(x):
        return last(lib.mean(body(x), 1))

    return Task(forward, lib.numbers(batch, length, units), lib.classes(100, batch))


@network
def linear_attention(lib, batch=4, length=512, units=192, heads=6):
    """Attention in linear time (Katharopoulos et al., 2020)."""

    def attend():
        inputs, out = lib.linear(units, 3 * units), lib.linear(units, units)

        def forward(x):
            q, k, v = queries_keys_values(lib, inputs(x), heads)
            q, k = lib.elu(q) + 1.0, lib.elu(k) + 1.0
            products = lib.matmul(lib.transpose(k, 0, 1, 3, 2), v)
            keys = lib.reshape(lib.sum(k, 2), batch, heads, units // heads, 1)
            total = lib.matmul(q, keys) + 1e-6
            return out(join_heads(lib, lib.matmul(q, products) / total))

        return forward

    layers = []
    for _ in range(3):
        layers.append(residual(lib.layer_norm(units), attend()))
        hidden = dense(lib, lib.gelu, units, 4 * units, units)
        layers.append(residual(lib.layer_norm(units), hidden))
    return classifier(lib, layers, batch, length, units)


@network
def conformer(lib, batch=8, length=128, units=144, heads=4):
    """Three blocks of Conformer (Gulati et al., 2020)."""

    def half_step():
        first, second = lib.linear(units, 4 * units), lib.linear(4 * units, units)

        def dropped(h):
            return lib.dropout(lib.silu(h), 0.1)

        layers = lib.layer_norm(units), first, dropped, second
        return residual(*layers, lambda h: h * 0.5)

    def attend():
        norm, inputs = lib.layer_norm(units), lib.linear(units, 3 * units)
        out = lib.linear(units, units)

        def forward(x):
            heads_of = queries_keys_values(lib, inputs(norm(x)), heads)
            return x + out(attention(lib, *heads_of))

        return forward

    def convolve():
        norm, first = lib.layer_norm(units), lib.conv(units, 2 * units, 1, axes=1)
        depthwise = lib.conv(units, units, 31, groups=units, axes=1)
        batch_norm, last = lib.batch_norm(units), lib.conv(units, units, 1, axes=1)

        def forward(x):
            h = first(swapped(lib, norm(x)))
            h = h[:, :units] * lib.sigmoid(h[:, units:])
            h = last(lib.silu(batch_norm(depthwise(h))))
            return x + swapped(lib, h)

        return forward

    layers = []
    for _ in range(3):
        layers += [half_step(), attend(), convolve(), half_step()]
        layers.append(lib.layer_norm(units))
    return classifier(lib, layers, batch, length, units)


@network
def tcn(lib, batch=8, length=1024, channels=64):
    """Dilated convolutions of sequences (Bai et al., 2018), which see both ways."""

    def block(dilation):
        layers = []
        for _ in range(2):
            conv = lib.conv(channels, channels, 5, dilation=dilation, axes=1)
            layers += [conv, lib.relu, lambda h: lib.dropout(h, 0.2)]
        return chained(residual(*layers), lib.relu)

    body = chained(*(block(2**k) for k in range(6)))
    last = lib.linear(channels, 20)

    def forward(x):
        return last(lib.mean(body(x), 2))

    return Task(forward, lib.numbers(batch, channels, length), lib.classes(20, batch))


@network
def wav2vec(lib, batch=4, length=16000):
    """Convolutions of a second of sound, wav2vec (Schneider et al., 2019)."""

    def layer(channels, ksize, stride, pad=0):
        conv = lib.conv(channels, 128, ksize, stride, pad, axes=1)
        return chained(conv, lib.group_norm(1, 128), lib.relu)

    layers = [layer(1, 10, 5), layer(128, 8, 4)]
    layers += [layer(128, 4, 2) for _ in range(3)]
    layers += [residual(layer(128, 3, 1, 1)) for _ in range(4)]
    body, last = chained(*layers), lib.linear(128, 40)

    def forward(x):
        return last(lib.mean(body(x), 2))

    return Task(forward, lib.numbers(batch, 1, length), lib.classes(40, batch))


@network
def character_cnn(lib, batch=32, length=256):
    """The most of convolutions of three widths (Kim, 2014), over characters (Zhang et
    al., 2015)."""
    embed = lib.embed(70, 64)
    convs = [lib.conv(64, 128, ksize, axes=1) for ksize in (3, 5, 7)]
    hidden, last = lib.linear(384, 256), lib.linear(256, 20)

    def forward(x):
        h = swapped(lib, embed(x))
        h = lib.concat([lib.max(lib.relu(conv(h)), 2) for conv in convs])
        return last(lib.dropout(lib.relu(hidden(h)), 0.5))

    return Task(forward, lib.ids(70, batch, length), lib.classes(20, batch))


@network
def skipgram(lib, batch=4096, words=20000, units=128, negatives=5):
    """Words' vectors by negative sampling (Mikolov et al., 2013)."""
    embed, context = lib.embed(words, units), lib.embed(words, units)
    positive, negative = lib.ids(words, batch), lib.ids(words, batch, negatives)

    def forward(x):
        h = embed(x)
        near = lib.sum(h * context(positive), 1)
        far = lib.sum(lib.reshape(h, batch, 1, units) * context(negative), 2)
        noise = lib.mean(lib.sum(lib.log_sigmoid(-far), 1))
        return -lib.mean(lib.log_sigmoid(near)) - noise

    return Task(forward, lib.ids(words, batch), lib.own_loss)


@network
def conv_lstm(lib, batch=8, length=8, size=16, channels=32):
    """A convolutional LSTM that foresees radar images (Shi et al., 2015)."""
    of_both, last = lib.conv(1 + channels, 4 * channels), lib.conv(channels, 1, 1)
    nothing = lib.constant(np.zeros((batch, channels, size, size), "f"))

    def forward(x):
        h, cell, images = nothing, nothing, []
        for k in range(length):
            y = of_both(lib.concat([x[:, k : k + 1], h]))
            gates = lib.sigmoid(y[:, : 3 * channels])
            new = lib.tanh(y[:, 3 * channels :])
            kept = gates[:, :channels] * cell
            cell = kept + gates[:, channels : 2 * channels] * new
            h = gates[:, 2 * channels :] * lib.tanh(cell)
            images.append(last(h))
        return lib.concat(images)

    x = lib.images(batch, length, size)
    return Task(forward, x, lib.targets(batch, length, size, size))


@network
def mamba(lib, batch=8, length=64, units=128, states=8):
    """Two layers of selective states, step by step (Gu and Dao, 2023)."""
    width = 2 * units

    def layer():
        inputs, out = lib.linear(units, 2 * width, False), lib.linear(width, units)
        conv = lib.conv(width, width, 4, 1, 3, groups=width, axes=1)
        of_steps, of_states = lib.linear(width, width), lib.linear(width, 2 * states)
        rates = lib.parameter(width, states, value=0.5)

        def scanned(x):
            steps = -lib.log_sigmoid(-of_steps(x))
            both = lib.reshape(of_states(x), batch, length, 1, 2 * states)
            kept = lib.exp(-lib.reshape(steps, batch, length, width, 1) * rates)
            new = lib.reshape(steps * x, batch, length, width, 1) * both[..., :states]
            h, ys = new[:, 0], []
            for k in range(length):
                h = kept[:, k] * h + new[:, k] if k else h
                ys.append(lib.sum(h * both[:, k, :, states:], 2))
            return lib.transpose(lib.stack(ys), 1, 0, 2)

        def forward(x):
            y = inputs(x)
            h = swapped(lib, conv(swapped(lib, y[..., :width]))[..., :length])
            return out(scanned(lib.silu(h)) * lib.silu(y[..., width:]))

        return residual(lib.layer_norm(units), forward)

    layers = lib.embed(100, units), layer(), layer(), lib.linear(units, 100)
    body = chained(*layers)

    def forward(x):
        return lib.reshape(body(x), batch * length, 100)

    x = lib.ids(100, batch, length)
    return Task(forward, x, lib.classes(100, batch * length))


@network
def crf(lib, batch=32, length=40, units=128, tags=20):
    """The sum over all paths of a linear chain (Lafferty et al., 2001), whose scores
    convolutions give."""
    embed, first = lib.embed(2000, units), lib.conv(units, units, axes=1)
    last, moves = lib.conv(units, tags, axes=1), lib.parameter(tags, tags)

    def forward(x):
        scores = last(lib.relu(first(swapped(lib, embed(x)))))
        h = scores[:, :, 0]
        for k in range(1, length):
            paths = lib.reshape(h, batch, tags, 1) + moves
            most = lib.max(paths, 1)
            others = lib.exp(paths - lib.reshape(most, batch, 1, tags))
            h = most + lib.log(lib.sum(others, 1)) + scores[:, :, k]
        return lib.mean(h)

    return Task(forward, lib.ids(2000, batch, length), lib.own_loss)
