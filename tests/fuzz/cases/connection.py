"""Products with filters and weights."""

import numpy as np
import scipy.special as sp

from ..draw import Draw
from ..table import call, case
from . import oracles


def some(g: Draw, axes, *choices):
    """One number for all axes, or one for each."""
    return g.pick(*choices) if g.chance(0.5) else tuple(g.pick(*choices) for _ in range(axes))


def window(g: Draw, axes):
    """Filter extents, stride, padding, dilation and an image that they fit."""
    k = [g.pick(1, 1, 2, 3, 3, 4) for _ in range(axes)]
    stride, pad = some(g, axes, 1, 1, 2, 3), some(g, axes, 0, 1, 2)
    dilate = some(g, axes, 1, 1, 1, 2)
    low = [max(1, d * (n - 1) + 1 - 2 * p) for n, d, p in zip(k, oracles.each(dilate, axes), oracles.each(pad, axes))]
    size = [n + g.integer(0, 4) for n in low]
    return k, stride, pad, dilate, size


def channels(g: Draw):
    groups = g.pick(1, 1, 1, 2, 3)
    c = g.pick(1, 2, 3, 4, 16) if g.chance(0.9) else 33
    return groups, c, g.pick(1, 2, 3, 8)


def convolution(g: Draw, axes):
    k, stride, pad, dilate, size = window(g, axes)
    groups, c, f = channels(g)
    x, W = (g.extent(), groups * c, *size), (groups * f, c, *k)
    b = g.x(groups * f) if g.chance(0.5) else None
    return call(g.x(*x), g.x(*W), b, stride=stride, pad=pad, cover_all=g.chance(0.2), dilate=dilate, groups=groups)


def deconvolution(g: Draw, axes):
    k, stride, pad, dilate, _ = window(g, axes)
    groups, c, f = channels(g)
    stretch = zip(k, oracles.each(dilate, axes), oracles.each(pad, axes), oracles.each(stride, axes))
    size = [max(1, -(-(2 * p - d * (n - 1)) // s) + 1) + g.integer(0, 3) for n, d, p, s in stretch]
    x, W = (g.extent(), groups * c, *size), (groups * c, f, *k)
    b = g.x(groups * f) if g.chance(0.5) else None
    return call(g.x(*x), g.x(*W), b, stride=stride, pad=pad, dilate=dilate, groups=groups)


def deconvolved(x, W, b, outsize=None, **options):
    return oracles.deconvolution(x, W, b, out=outsize, **options)


case("convolution_2d", lambda g: convolution(g, 2), oracles.convolution, weight=4, within=2)
case("deconvolution_2d", lambda g: deconvolution(g, 2), deconvolved, weight=3, within=2)
for axes in (1, 3):
    case(f"convolution_{axes}d convolution_nd", lambda g, n=axes: convolution(g, n), oracles.convolution, within=2)
    case(f"deconvolution_{axes}d deconvolution_nd", lambda g, n=axes: deconvolution(g, n), deconvolved, within=2)


def core(draw, axes):
    """The same call with the core's window."""

    def drawn(g: Draw):
        (x, W, b), o = draw(g, axes)
        values = [oracles.each(o[name], axes) for name in ("stride", "pad", "dilate")]
        return call(x, W, b, (*values, o["groups"]))

    return drawn


def of_window(function):
    def oracle(x, W, b, window):
        stride, pad, dilate, groups = window
        return function(x, W, b, stride=stride, pad=pad, dilate=dilate, groups=groups)

    return oracle


case("ops.convolution_2d", core(convolution, 2), of_window(oracles.convolution), within=2)
case("ops.deconvolution_2d", core(deconvolution, 2), of_window(oracles.deconvolution), within=2)
for axes in (1, 2, 3):
    case("ops.convolution_nd", core(convolution, axes), of_window(oracles.convolution), within=2)
    case("ops.deconvolution_nd", core(deconvolution, axes), of_window(oracles.deconvolution), within=2)


def part(g: Draw):
    """A part of an image, its filters, and how many outputs are wanted."""
    (x, W, b), o = convolution(g, 2)
    stride, pad, dilate = values = [oracles.each(o[name], 2) for name in ("stride", "pad", "dilate")]
    reach = [d * (k - 1) + 1 for k, d in zip(W.value.shape[2:], dilate)]
    # Windows start in the image or before it, and may reach over its end.
    free = [n + p - r for n, p, r in zip(x.value.shape[2:], pad, reach)]
    outs = tuple(max(f // s, 0) + g.integer(1, 2) for f, s in zip(free, stride))
    return x, W, b, (*values, o["groups"]), outs


def part_input_grad(g: Draw):
    x, W, _, win, outs = part(g)
    return call(g.x(x.value.shape[0], W.value.shape[0], *outs), W, None, win, x.value.shape[2:])


def part_weight_grad(g: Draw):
    x, W, _, win, outs = part(g)
    return call(g.x(x.value.shape[0], W.value.shape[0], *outs), x, win, W.value.shape[2:])


def block_convolution(x, W, b, window, outs):
    stride, pad, dilate, groups = window
    after = [n * s + d * k for n, s, d, k in zip(outs, stride, dilate, W.shape[2:])]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad, after)])
    y = oracles.convolution(x, W, b, stride, 0, dilate=dilate, groups=groups)
    return y[:, :, : outs[0], : outs[1]]


case("ops.block_convolution", lambda g: call(*part(g)), block_convolution, within=2, dtypes="fd")
case("ops.block_convolution_input_grad", part_input_grad, within=2, dtypes="fd")
case("ops.block_convolution_weight_grad", part_weight_grad, within=2, dtypes="fd")


def dilated(g: Draw):
    (x, W, b), o = convolution(g, 2)
    W.value = W.value[: max(1, len(W.value) // o["groups"])]
    b = None if b is None else g.x(len(W.value))
    x.value = x.value[:, : W.value.shape[1]].copy()
    return call(x, W, b, stride=o["stride"], pad=o["pad"], dilate=o["dilate"])


def depthwise(g: Draw):
    k, stride, pad, _, size = window(g, 2)
    size = [max(n, m) for n, m in zip(size, k)]
    c, m = g.integer(1, 5), g.integer(1, 3)
    b = g.x(c * m) if g.chance(0.5) else None
    return call(g.x(g.extent(), c, *size), g.x(m, c, *k), b, stride=stride, pad=pad)


def depthwise_convolution(x, W, b, stride, pad):
    m, c, *k = W.shape
    W = W.transpose(1, 0, 2, 3).reshape(c * m, 1, *k)
    return oracles.convolution(x, W, b, stride, pad, groups=c)


case("dilated_convolution_2d", dilated, oracles.convolution, within=2)
case("depthwise_convolution_2d", depthwise, depthwise_convolution, within=2)


def local(g: Draw):
    k, stride, _, _, size = window(g, 2)
    size = [max(n, m) for n, m in zip(size, k)]
    outs = [oracles.outsize(n, m, s, 0) for n, m, s in zip(size, k, oracles.each(stride, 2))]
    c, f = g.integer(1, 3), g.integer(1, 3)
    b = g.x(f, *outs) if g.chance(0.5) else None
    return call(g.x(g.extent(), c, *size), g.x(f, *outs, c, *k), b, stride=stride)


def local_convolution(x, W, b, stride):
    f, h, w, c, *k = W.shape
    y = np.zeros((len(x), f, h, w))
    step = oracles.each(stride, 2)
    for i, j in np.ndindex(h, w):
        seen = x[:, :, i * step[0] :, j * step[1] :][:, :, : k[0], : k[1]]
        y[:, :, i, j] = np.einsum("ncij,fcij->nf", seen, W[:, i, j])
    return y if b is None else y + b


case("local_convolution_2d", local, local_convolution, within=2)


def deformable(g: Draw):
    k, stride, pad, _, size = window(g, 2)
    size = [max(n, m) for n, m in zip(size, k)]
    outs = [oracles.outsize(n, m, s, p) for n, m, s, p in zip(size, k, oracles.each(stride, 2), oracles.each(pad, 2))]
    n, c, f = g.extent(), g.integer(1, 3), g.integer(1, 3)
    b = g.x(f) if g.chance(0.5) else None
    return call(g.x(n, c, *size), g.x(n, 2 * k[0] * k[1], *outs), g.x(f, c, *k), b, stride=stride, pad=pad)


def moved(g: Draw):
    k = g.pick(1, 3)
    x = g.x(g.extent(), k * k * g.integer(1, 2) + g.integer(0, 2), g.extent(1), g.extent(1))
    return call(x, k, g.integer(1, 2))


case("deformable_convolution_2d_sampler", deformable, within=4, smooth=False, dtypes="fd")
case("shift", moved)


def im2col(g: Draw):
    k, stride, pad, dilate, size = window(g, 2)
    x = g.x(g.extent(), g.integer(1, 3), *size)
    return call(x, tuple(k), stride=stride, pad=pad, cover_all=g.chance(0.2), dilate=dilate)


case("im2col", im2col, oracles.im2col)


def linear(g: Draw, batch_axes=True):
    n = g.integer(1, 2) if batch_axes else 1
    batch, rest = [g.extent() for _ in range(n)], g.shape(1, 2) if batch_axes else (g.extent(),)
    size, out = int(np.prod(rest)), g.extent()
    b = g.x(out) if g.chance(0.6) else None
    more = {"n_batch_axes": n} if batch_axes else {}
    return call(g.x(*batch, *rest), g.x(out, size), b, **more)


def linear_of(x, W, b, n_batch_axes=1):
    y = x.reshape(*x.shape[:n_batch_axes], W.shape[1]) @ W.T
    return y if b is None else y + b


case("linear", linear, linear_of, weight=3)
case("ops.linear", lambda g: linear(g, False), linear_of)


def attention(g: Draw):
    n, h, length, keys, depth, width = (g.extent() for _ in range(6))
    q, k, v = g.x(n, h, length, depth), g.x(n, h, keys, depth), g.x(n, h, keys, width)
    mask = g.x(*g.pick((n, 1, length, 1), (keys,), (h, 1, keys))) if g.chance(0.5) else None
    return call(q, k, v, mask, is_causal=g.chance(0.5), scale=g.pick(None, 0.5))


def attention_of(q, k, v, mask, is_causal, scale):
    scores = q @ k.swapaxes(2, 3) * (max(q.shape[3], 1) ** -0.5 if scale is None else scale)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[2:]) > 0, scores, -np.inf)
    if isinstance(mask, bool):
        mask = 0 if mask else -np.inf
    scores = scores if mask is None else scores + mask
    if not scores.size:
        return scores @ v
    if scale is not None and abs(scale) > 1000:
        raise ValueError("rounding decides between scores that are nearly equal")
    # A query that may look at nothing gets zeros.
    seen = scores.max(3, keepdims=True) != -np.inf
    return np.where(seen, sp.softmax(np.where(seen, scores, 0), 3) @ v, 0)


case("scaled_dot_product_attention ops.scaled_dot_product_attention", attention, attention_of, within=16)  # sums that cancel


def rotated(x, position, base, step):
    angles = np.outer(position + step * np.arange(x.shape[-2]), base ** (-np.arange(x.shape[-1] // 2) / max(x.shape[-1] // 2, 1)))
    first, second = np.split(x, 2, -1)
    return np.concatenate([first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles)], -1)


case("rotary_embedding", lambda g: call(g.x(*g.shape(1, 2), 2 * g.integer(1, 3)), position=g.integer(0, 5), base=100.0, step=g.integer(1, 3)), rotated)


def pairs(g: Draw):
    length, half = g.extent(), g.integer(1, 3)
    tables = [g.x(length, half, role="constant") for _ in range(2)]
    return call(g.x(*g.shape(2, 2), length, 2 * half), *tables)


def rotated_pairs(x, cosines, sines):
    first, second = np.split(x, 2, -1)
    return np.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1)


case("ops.rotate_pairs", pairs, rotated_pairs)


def positions(g: Draw):
    rows = g.integer(1, 6)
    position = g.integer(0, rows - 1)
    return call(g.x(rows, g.extent()), g.index(3, 2, g.integer(0, rows - position)), position)


case("position_embedding", positions, lambda W, x, position: W[position : position + x.shape[1]])


def bilinear(g: Draw):
    n, j, k, m = g.extent(), g.extent(1), g.extent(1), g.integer(1, 4)
    rest = (g.x(j, m), g.x(k, m), g.x(m)) if g.chance(0.5) else (None,) * 3
    return call(g.x(n, j), g.x(n, k), g.x(j, k, m), *rest)


def bilinear_of(e1, e2, W, V1, V2, b):
    y = np.einsum("ij,ik,jkl->il", e1, e2, W)
    return y if b is None else y + e1 @ V1 + e2 @ V2 + b


case("bilinear", bilinear, bilinear_of, within=2)


def dropconnect(g: Draw):
    n, i, o = g.extent(), g.extent(1), g.extent(1)
    mask = g.mask(n, o, i) if g.chance(0.5) else None
    b = g.x(o) if g.chance(0.5) else None
    return call(g.x(n, i), g.x(o, i), b, ratio=0.5, mask=mask)


case("simplified_dropconnect", dropconnect)
