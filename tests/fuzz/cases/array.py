"""Functions that move elements, and those that pick them."""

import numpy as np

from ..draw import FLOATS, INTS, Draw
from ..table import call, case

ALL = {"dtypes": FLOATS + INTS, "special": True}


def of_axis(g: Draw, low=1):
    x = g.x(*g.shape(low))
    return call(x, axis=g.axis(x.value.ndim))


def reshape(g: Draw):
    x = g.x(*g.shape())
    size, shape = x.value.size, []
    while size > 1 and g.chance(0.7):
        n = g.pick(*(d for d in range(1, size + 1) if size % d == 0))
        shape.append(n)
        size //= n
    shape.append(size)
    if g.chance(0.4) and 0 not in shape:
        shape[g.integer(0, len(shape) - 1)] = -1
    return call(x, tuple(shape))


case("reshape", reshape, np.reshape, **ALL)
case("flatten", lambda g: call(g.x(*g.shape())), np.ravel, **ALL)
case("transpose", lambda g: (lambda x: call(x, axes=g.pick(None, permutation(g, x.value.ndim))))(g.x(*g.shape())), lambda x, axes: np.transpose(x, axes), **ALL)


def permutation(g: Draw, n):
    return tuple(int(a) - n * g.integer(0, 1) for a in g.rng.permutation(n))


case("swapaxes", lambda g: (lambda x: call(x, g.axis(x.value.ndim), g.axis(x.value.ndim)))(g.x(*g.shape(1))), np.swapaxes, **ALL)
case("moveaxis", lambda g: (lambda x: call(x, g.axis(x.value.ndim), g.axis(x.value.ndim)))(g.x(*g.shape(1))), np.moveaxis, **ALL)
case("moveaxis", lambda g: (lambda x: call(x, permutation(g, x.value.ndim), permutation(g, x.value.ndim)))(g.x(*g.shape(1))), np.moveaxis, **ALL)
case("rollaxis", lambda g: (lambda x: call(x, g.axis(x.value.ndim), g.integer(-x.value.ndim, x.value.ndim)))(g.x(*g.shape(1))), np.rollaxis, **ALL)
case("flip", of_axis, np.flip, **ALL)
case("fliplr", lambda g: call(g.x(*g.shape(2))), np.fliplr, **ALL)
case("flipud", lambda g: call(g.x(*g.shape(1))), np.flipud, **ALL)
case("broadcast_to", lambda g: (lambda s: call(g.x(*g.broadcastable(s)), s))(g.shape()), np.broadcast_to, **ALL)
case("broadcast", lambda g: (lambda s: call(*(g.x(*g.broadcastable(s)) for _ in range(g.integer(2, 3)))))(g.shape()), np.broadcast_arrays, **ALL)
case("expand_dims", lambda g: (lambda x: call(x, g.integer(-x.value.ndim - 1, x.value.ndim)))(g.x(*g.shape())), np.expand_dims, **ALL)


def squeeze(g: Draw):
    x = g.x(*(1 if g.chance(0.5) else n for n in g.shape()))
    ones = [i - x.value.ndim * g.integer(0, 1) for i, n in enumerate(x.value.shape) if n == 1]
    return call(x, axis=g.pick(None, tuple(ones), *ones))


case("squeeze", squeeze, lambda x, axis: np.squeeze(x, axis), **ALL)
case("separate ops.separate", of_axis, lambda x, axis: [np.take(x, i, axis) for i in range(x.shape[axis])], **ALL)


def joined(g: Draw):
    shape = list(g.shape(1))
    axis = g.axis(len(shape))
    xs = []
    for _ in range(g.integer(1, 4)):
        shape[axis] = g.extent()
        xs.append(g.x(*shape))
    return call(xs, axis=axis)


case("concat", joined, np.concatenate, weight=2, **ALL)


def alike(g: Draw, low=0):
    shape = g.shape(low)
    return [g.x(*shape) for _ in range(g.integer(1, 4))]


case("stack", lambda g: (lambda xs: call(xs, axis=g.axis(xs[0].value.ndim + 1)))(alike(g)), np.stack, weight=2, **ALL)
case("hstack", lambda g: call(alike(g)), np.hstack, **ALL)
case("vstack", lambda g: call(alike(g)), np.vstack, **ALL)
case("dstack", lambda g: call(alike(g)), np.dstack, **ALL)


def split(g: Draw):
    x = g.x(*g.shape(1))
    axis = g.axis(x.value.ndim)
    n = x.value.shape[axis]
    sections = g.pick(*(d for d in range(1, n + 1) if n % d == 0)) if n else 1
    cuts = sorted(g.integer(0, n) for _ in range(g.integer(1, 3)))
    return call(x, g.pick(sections, cuts, np.array(cuts)), axis)


case("split_axis", split, np.split, **ALL)
case("ops.split_axis", lambda g: (lambda a: call(a[0][0], [0] if isinstance(a[0][1], int) else list(map(int, a[0][1])), a[0][2]))(split(g)), np.split, **ALL)


def transposed_sequences(g: Draw):
    lengths = sorted((g.extent() for _ in range(g.integer(1, 4))), reverse=True)
    rest = g.shape(0, 2)
    return call([g.x(n, *rest) for n in lengths])


def transpose_sequence(xs):
    return [np.stack([x[t] for x in xs if t < len(x)]) for t in range(len(xs[0]))]


case("transpose_sequence ops.transpose_sequence", transposed_sequences, transpose_sequence, **ALL)


def sequences(g: Draw):
    rest = g.shape(0, 2)
    xs = [g.x(g.extent(), *rest) for _ in range(g.integer(1, 4))]
    longest = max(len(x.value) for x in xs)
    return call(xs, length=g.pick(None, longest, longest + 2), padding=g.pick(0, -1.5))


def pad_sequence(xs, length, padding):
    length = max(map(len, xs)) if length is None else length
    rest = [(0, 0)] * (xs[0].ndim - 1)
    return np.stack([np.pad(x, [(0, length - len(x)), *rest], constant_values=np.asarray(padding).astype(x.dtype)) for x in xs])


case("pad_sequence", sequences, pad_sequence, dtypes=FLOATS)


def padding(g: Draw, modes):
    x = g.x(*g.shape(1, 3))
    widths = [(g.integer(0, 3), g.integer(0, 3)) for _ in range(x.value.ndim)]
    widths = g.pick(widths, 1, (2, 1)) if x.value.size else widths
    return call(x, widths, g.pick(*modes))


case("pad", lambda g: padding(g, ["constant"]), np.pad, **ALL)
case("pad", lambda g: padding(g, ["edge", "reflect", "symmetric", "wrap"]), np.pad, **ALL)


def core_pad(g: Draw):
    x = g.x(*g.shape())
    widths = [[g.integer(0, 3) for _ in range(x.value.ndim)] for _ in range(2)]
    return call(x, *widths, g.pick(0.0, 1.5))


case("ops.pad", core_pad, lambda x, b, a, v: np.pad(x, list(zip(b, a)), constant_values=v) if x.ndim else x)
def repeated(x, repeats, axis=None):
    if np.max(repeats, initial=0) > 2**24:
        raise ValueError("NumPy would take minutes")
    return np.repeat(x, repeats, axis)


case("repeat", lambda g: (lambda x: call(x, g.integer(0, 3), axis=g.pick(None, g.axis(x.value.ndim))))(g.x(*g.shape(1))), repeated, **ALL)


def repeat_each(g: Draw):
    x = g.x(*g.shape(1))
    axis = g.axis(x.value.ndim)
    return call(x, tuple(g.integer(0, 3) for _ in range(x.value.shape[axis])), axis=axis)


case("repeat", repeat_each, lambda x, r, axis: np.repeat(x, np.array(r, int), axis), refuses=(ValueError,), **ALL)
case("tile", lambda g: call(g.x(*g.shape(0, 3)), g.pick(2, 0, tuple(g.integer(0, 3) for _ in range(g.integer(1, 3))))), np.tile, **ALL)


def key(g: Draw, n):
    """A key of one axis: an integer, a slice or an array."""
    kind = g.integer(0, 4)
    if kind == 0 and n:
        return g.integer(-n, n - 1)
    if kind == 1 and n:
        return g.index(n, *g.shape(1, 1), low=-n, dtypes="bhilq")
    step = g.pick(None, 1, 2, -1, -3)
    return slice(g.pick(None, g.integer(-n - 1, n + 1)), g.pick(None, g.integer(-n - 1, n + 1)), step)


def picked(g: Draw):
    x = g.x(*g.shape(1))
    keys, arrays = [], 0
    for n in x.value.shape[: g.integer(0, x.value.ndim)]:
        k = key(g, n)
        if hasattr(k, "role"):
            arrays += 1
            k = k if arrays == 1 else slice(None)
        keys.append(k)
    if g.chance(0.2):
        keys.insert(g.integer(0, len(keys)), None)
    if g.chance(0.2):
        keys.append(Ellipsis)
    return x, tuple(keys)


case("get_item", lambda g: call(*picked(g)), lambda x, keys: x[keys], weight=3, **ALL)
case("get_item", lambda g: (lambda x: call(x, g.mask(*x.value.shape[: g.integer(1, x.value.ndim)])))(g.x(*g.shape(1))), lambda x, m: x[m], **ALL)


def scatter_add(g: Draw):
    a, keys = picked(g)
    b = a.value[tuple(k.value if hasattr(k, "role") else k for k in keys)]
    return call(a, keys, g.x(*b.shape))


def added(a, keys, b):
    y = a.copy()
    np.add.at(y, keys, b)
    return y


case("scatter_add", scatter_add, added)


def core_slice(g: Draw):
    x = g.x(*g.shape())
    keys, ranges = [], []
    for n in x.value.shape:
        cut = range(*slice(g.integer(0, n), g.integer(0, n), g.pick(1, 2)).indices(n))
        cut = cut[::-1] if g.chance(0.3) else cut
        keys.append(np.arange(n)[list(cut)])
        ranges.append((cut.start if len(cut) else 0, len(cut), cut.step))
    return call(x, ranges)


def sliced(x, ranges):
    for axis, (start, n, step) in enumerate(ranges):
        x = x.take(start + step * np.arange(n), axis)
    return x


case("ops.slice", core_slice, sliced, **ALL)


def strided(g: Draw):
    x = g.x(*g.shape(1))
    if x.value.size == 0:
        return call(x, (0,), (1,))
    rows, columns = g.integer(1, 3), g.integer(1, 3)
    step = g.integer(0, max((x.value.size - 1) // (rows + columns), 0))
    return call(x, (rows, columns), (step, g.integer(0, step)), g.pick(None, 0))


def as_strided(x, shape, strides, offset=None):
    places = np.zeros(shape, int) + (offset or 0)
    for axis, (n, step) in enumerate(zip(shape, strides)):
        places += (np.arange(n) * step).reshape(-1, *[1] * (len(shape) - axis - 1))
    return x.ravel()[places]


case("as_strided", strided, as_strided, **ALL)


def diagonal(g: Draw):
    x = g.x(*g.shape(2))
    a, b = g.rng.permutation(x.value.ndim)[:2].tolist()
    return call(x, offset=g.integer(-3, 3), axis1=a, axis2=b - x.value.ndim * g.integer(0, 1))


def diagonal_of(x, offset=0, axis1=0, axis2=1):
    return np.diagonal(x, np.clip(offset, -(2**20), 2**20), axis1, axis2)  # NumPy wraps 2**31


case("diagonal", diagonal, diagonal_of, **ALL)
case("ops.diagonal", diagonal, diagonal_of)


def permuted(g: Draw):
    x = g.x(*g.shape(1))
    axis = g.axis(x.value.ndim)
    n = x.value.shape[axis]
    index = g.index(n, n, dtypes="bhil")
    index.value = g.rng.permutation(n).astype(index.value.dtype) if n < 128 else np.arange(n)
    return call(x, index, axis=axis, inv=g.chance(0.4))


case("permutate", permuted, lambda x, i, axis, inv: np.take(x, np.argsort(i) if inv else i, axis), **ALL)


def select(g: Draw):
    n, c = g.extent(), g.extent(1)
    return call(g.x(n, c), g.index(c, n))


case("select_item", select, lambda x, t: x[np.arange(len(x)), t.astype(int)])


def embed(g: Draw):
    n = g.extent(1)
    W = g.x(n, g.extent())
    ignore = g.pick(None, None, -1, 0)
    return call(g.index(n, *g.shape(0, 3), low=-1 if ignore == -1 else 0), W, ignore_label=ignore)


def embed_id(ids, W, ignore_label):
    ids = ids.astype(int)
    if ignore_label is None:
        check_range(ids, len(W))
        return W[ids]
    keep = ids != ignore_label
    check_range(ids[keep], len(W))
    return np.where(keep[..., None], W[np.where(keep, ids, 0)], 0)


def check_range(ids, n):
    if ids.size and not (0 <= ids.min() and ids.max() < n):
        raise IndexError("no such row")


case("embed_id", embed, embed_id, weight=2)


def blocks(g: Draw, deep):
    r = g.integer(1, 3)
    n, c, h, w = g.extent(), g.integer(1, 3), g.extent(), g.extent()
    shape = (n, c * r * r, h, w) if deep else (n, c, h * r, w * r)
    return call(g.x(*shape), r)


def depth2space(x, r):
    n, c, h, w = x.shape
    x = x.reshape(n, r, r, c // r**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // r**2, h * r, w * r)


def space2depth(x, r):
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * r * r, h // r, w // r)


case("depth2space", lambda g: blocks(g, True), depth2space)
case("space2depth", lambda g: blocks(g, False), space2depth)
case("resize_images", lambda g: call(g.x(g.extent(), g.extent(1), g.extent(1), g.extent(1)), (g.extent(1), g.extent(1)), mode=g.pick("bilinear", "nearest"), align_corners=g.chance(0.5)))
case("spatial_transformer_grid", lambda g: call(g.x(g.extent(), 2, 3), (g.extent(1), g.extent(1))), within=2)


def sampler(g: Draw):
    n = g.extent()
    return call(g.x(n, g.extent(1), g.extent(2), g.extent(2)), g.x(n, 2, g.extent(1), g.extent(1), low=-1.3, high=1.3))


case("spatial_transformer_sampler", sampler, within=4, smooth=False, dtypes="fd")
