"""The networks of torchgpipe's benchmarks, as the modules between which it cuts them.

A module is a scaling.Layer of its forward pass for a sample. Arrays have 4 bytes a
number; a module that computes no product reads and writes each array once.

Source: kakaobrain/torchgpipe, benchmarks/models (Kim et al., torchgpipe: on-the-fly
pipeline parallelism for training giant models, 2020).
"""

import math

from renga.planning.scaling import Layer

BYTES = 4


def convolution(name, c_in, c_out, window, pixels, new_pixels=None):
    """A convolution with ``window`` weights of each pair of channels."""
    new_pixels = new_pixels or pixels
    weights = window * c_in * c_out
    output = BYTES * c_out * new_pixels
    moved = BYTES * c_in * pixels + output
    return Layer(name, 2 * weights * new_pixels, moved, weights, output)


def elementwise(name, channels, pixels, parameters=0):
    """A normalization, an activation or a dropout."""
    output = BYTES * channels * pixels
    return Layer(name, 0, 2 * output, parameters, output)


def pooling(name, channels, pixels, new_pixels):
    """A pooling or an upsampling."""
    output = BYTES * channels * new_pixels
    return Layer(name, 0, BYTES * channels * pixels + output, 0, output)


def linear(name, c_in, c_out):
    """A linear layer with biases."""
    own = convolution(name, c_in, c_out, 1, 1)
    return own._replace(parameters=own.parameters + c_out)


def together(name, modules, output):
    """Modules that are not cut apart."""
    return Layer(
        name,
        sum(each.flops for each in modules),
        sum(each.moved for each in modules),
        sum(each.parameters for each in modules),
        BYTES * output,
    )


def unet(depth=5, convolutions=5, width=64, size=192):
    """A U-Net with so many levels, and convolutions in each of its cells."""
    modules = []

    def cell(c_in, *widths):
        for c_out in widths:
            modules.append(convolution("conv", c_in, c_out, 9, size**2))
            for name in ("dropout", "norm", "relu"):
                modules.append(elementwise(name, c_out, size**2))
            c_in = c_out

    widths = [width << level for level in range(depth)]
    for c_in, c_out in zip([3, *widths], widths):
        cell(c_in, *[c_out] * convolutions)
        modules.append(Layer("stash", 0, 0, 0, BYTES * c_out * size**2))
        modules.append(pooling("down", c_out, size**2, size**2 // 4))
        size //= 2
    cell(widths[-1], *[2 * widths[-1]] * (convolutions - 1), widths[-1])
    for channels in reversed(widths):
        modules.append(pooling("up", channels, size**2, 4 * size**2))
        size *= 2
        modules.append(elementwise("concat", 2 * channels, size**2))
        cell(2 * channels, *[channels // 2] * convolutions)
    return [*modules, convolution("segment", width // 2, 1, 1, size**2)]


def resnet101(size=224):
    """ResNet-101, of 370 modules: 11 in each bottleneck, whose shortcut is one."""
    pixels = (size // 2) ** 2
    modules = [
        convolution("conv1", 3, 64, 49, size**2, pixels),
        *_norm_relu(64, pixels),
        pooling("maxpool", 64, pixels, pixels // 4),
    ]
    pixels //= 4
    c_in = 64
    for width, count in ((64, 3), (128, 4), (256, 23), (512, 3)):
        for i in range(count):
            wide, new = 4 * width, pixels // (4 if width > 64 and i == 0 else 1)
            shortcut = [elementwise("add", wide, new)]
            if i == 0:
                shortcut.append(convolution("conv", c_in, wide, 1, pixels, new))
                shortcut.append(elementwise("norm", wide, new, 2 * wide))
            modules += [
                Layer("identity", 0, 0, 0, BYTES * c_in * pixels),
                convolution("conv1", c_in, width, 1, pixels),
                *_norm_relu(width, pixels),
                convolution("conv2", width, width, 9, pixels, new),
                *_norm_relu(width, new),
                convolution("conv3", width, wide, 1, new),
                elementwise("norm", wide, new, 2 * wide),
                together("shortcut", shortcut, wide * new),
                elementwise("relu", wide, new),
            ]
            c_in, pixels = wide, new
    return [
        *modules,
        pooling("avgpool", c_in, pixels, 1),
        Layer("flatten", 0, 0, 0, BYTES * c_in),
        linear("fc", c_in, 1000),
    ]


def _norm_relu(channels, pixels):
    return [
        elementwise("norm", channels, pixels, 2 * channels),
        elementwise("relu", channels, pixels),
    ]


# The operations of a cell, in pairs whose sums are its next states: which state each
# reads. The first two states are those of the cells before.
NORMAL = (
    ((1, "1x1"), (1, "pool")),
    ((1, "none"), (0, "7x7")),
    ((0, "1x1"), (0, "7x7")),
    ((2, "pool"), (2, "none")),
    ((1, "pool"), (5, "1x1")),
)
REDUCTION = (
    ((0, "pool"), (0, "pool")),
    ((2, "none"), (1, "3x3")),
    ((2, "7x7"), (2, "pool")),
    ((3, "none"), (1, "pool")),
    ((2, "pool"), (3, "1x1")),
)


def amoebanet(cells=18, filters=256, size=224):
    """AmoebaNet-D with so many normal cells; 24 modules are those of 18."""
    width, pixels = filters // 4, (size // 2) ** 2
    stem = [
        elementwise("relu", 3, size**2),
        convolution("conv", 3, width, 9, size**2, pixels),
        elementwise("norm", width, pixels, 2 * width),
    ]
    modules = [together("stem", stem, width * pixels)]
    # Channels and pixels of the two states that a cell reads, the last one first.
    states = [(width, pixels), (width, pixels)]
    for scale, count in (
        (2, 1),
        (2, 1),
        (1, cells // 3),
        *[(2, 1), (1, cells // 3)] * 2,
    ):
        width *= scale
        for _ in range(count):
            found, states = _cell(width, states, REDUCTION if scale == 2 else NORMAL)
            output = sum(channels * pixels for channels, pixels in states)
            modules.append(together("cell", found, output))
    channels, pixels = states[0]
    classifier = [
        pooling("avgpool", channels, pixels, 1),
        linear("fc", channels, 1000),
    ]
    return [*modules, together("classifier", classifier, 1000)]


def _cell(width, states, pairs):
    (channels, pixels), (before, pixels_before) = states
    found = _relu_conv_norm(channels, width, 1, pixels)
    if pixels_before != pixels:
        found += _half(before, width, pixels_before)
    elif before != width:
        found += _relu_conv_norm(before, width, 1, pixels)
    of_state = [pixels, pixels]
    for pair in pairs:
        for state, name in pair:
            stride = 2 if pairs is REDUCTION and state < 2 else 1
            new = of_state[state] // stride**2
            found += _operation(name, width, of_state[state], new)
        found += [elementwise("add", width, new), elementwise("add", width, new)]
        of_state.append(new)
    joined = 3 if pairs is REDUCTION else 4
    found.append(elementwise("concat", joined * width, new))
    return found, [(joined * width, new), (channels, pixels)]


def _operation(name, width, pixels, new):
    if name == "none":
        return [] if new == pixels else _half(width, width, pixels)
    if name == "pool":
        return [pooling(name, width, pixels, new)]
    if name == "1x1":
        return _relu_conv_norm(width, width, 1, pixels, new)
    narrow = width // 4
    between = math.isqrt(pixels * new)
    inner = {
        "3x3": _relu_conv_norm(narrow, narrow, 9, pixels, new),
        "7x7": [
            *_relu_conv_norm(narrow, narrow, 7, pixels, between),
            *_relu_conv_norm(narrow, narrow, 7, between, new),
        ],
    }[name]
    return [
        *_relu_conv_norm(width, narrow, 1, pixels),
        *inner,
        *_relu_conv_norm(narrow, width, 1, new),
    ]


def _relu_conv_norm(c_in, c_out, window, pixels, new_pixels=None):
    new_pixels = new_pixels or pixels
    return [
        elementwise("relu", c_in, pixels),
        convolution("conv", c_in, c_out, window, pixels, new_pixels),
        elementwise("norm", c_out, new_pixels, 2 * c_out),
    ]


def _half(c_in, c_out, pixels):
    """Two convolutions with stride 2, of pixels that are one apart."""
    new = pixels // 4
    return [
        elementwise("relu", c_in, pixels),
        elementwise("pad", c_in, pixels),
        *[convolution("conv", c_in, c_out // 2, 1, new) for _ in range(2)],
        elementwise("concat", c_out, new),
        elementwise("norm", c_out, new, 2 * c_out),
    ]
