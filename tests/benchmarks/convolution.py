"""Times the convolutions of VGG-16 and DCGAN, direct against Winograd, and others.

Run as ``python -m tests.benchmarks.convolution --threads 1``. For each layer
and pass: milliseconds of the direct kernel and of Winograd's, then the sums
over each model, where "auto" is what the core chooses by itself. Times are the
least of several calls. A layer is written channels->filters, kernel/stride. Then
the direct kernel against renga's for few channels and for each channel by itself.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

import renga
from renga import _core

# kernel, stride, channels, filters, rows and columns, how many of them a model has
VGG = [
    (3, 1, 64, 64, 32, 1),
    (3, 1, 64, 128, 16, 1),
    (3, 1, 128, 128, 16, 1),
    (3, 1, 128, 256, 8, 1),
    (3, 1, 256, 256, 8, 2),
    (3, 1, 256, 512, 4, 1),
    (3, 1, 512, 512, 4, 2),
    (3, 1, 512, 512, 2, 3),
]
DCGAN = [
    (4, 2, 64, 128, 32, 2),
    (3, 1, 128, 128, 16, 1),
    (4, 2, 128, 256, 16, 2),
    (3, 1, 256, 256, 8, 1),
    (4, 2, 256, 512, 8, 2),
    (3, 1, 512, 512, 4, 1),
]
# kernel, stride, channels, filters, rows and columns, groups
OTHERS = [
    (3, 1, 3, 64, 32, 1),
    (4, 2, 3, 64, 32, 1),
    (3, 1, 128, 128, 56, 128),
    (3, 2, 128, 128, 56, 128),
    (3, 2, 128, 128, 56, 1),
    (3, 2, 512, 512, 14, 1),
    (3, 1, 256, 256, 28, 256),
    (5, 1, 144, 144, 28, 144),
]
PASSES = ("forward", "input_grad", "weight_grad")


def least_ms(call: Callable[[], object], calls: int) -> float:
    call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def passes(
    batch: int,
    kernel: int,
    stride: int,
    channels: int,
    filters: int,
    size: int,
    groups: int = 1,
) -> dict[str, Callable[[], object]]:
    """One layer's three passes, on images that are channels last in memory."""
    pad = (kernel - 1) // 2
    rng = np.random.default_rng(0)

    def image(depth: int, extent: int) -> np.ndarray:
        pixels = rng.standard_normal((batch, extent, extent, depth), "f")
        return pixels.transpose(0, 3, 1, 2)

    x, gy = image(channels, size), image(filters, size // stride)
    shape = (filters, channels // groups, kernel, kernel)
    W = renga.Parameter(rng.standard_normal(shape, "f"))
    window = ((stride, stride), (pad, pad), (1, 1), groups)
    y = _core.ops.convolution_2d(x, W, None, window)
    grads = [renga.Variable(gy)]
    return {
        "forward": lambda: _core.ops.convolution_2d(x, W.array, None, window),
        "input_grad": lambda: _core.ops.deconvolution_2d(gy, W.array, None, window),
        "weight_grad": lambda: renga.grad([y], [W], grads),
    }


def time_others(batch: int, calls: int) -> None:
    print(f"{'layer':>24}", *(f"{name + ' direct/auto':>29}" for name in PASSES))
    for kernel, stride, channels, filters, size, groups in OTHERS:
        cells = []
        layer = (kernel, stride, channels, filters, size, groups)
        for call in passes(batch, *layer).values():
            times = []
            for choice in ("direct", "auto"):
                _core.use_convolution_kernel(choice)
                times.append(f"{least_ms(call, calls):9.2f}")
            cells.append(" ".join(times))
        name = f"{channels}->{filters}, {kernel}/{stride} at {size}"
        print(f"{name:>24}", *(f"{cell:>29}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--calls", type=int, default=10)
    options = parser.parse_args()
    _core.set_num_threads(options.threads)
    print(f"{'layer':>24}", *(f"{name + ' direct/winograd':>29}" for name in PASSES))
    for model, layers in (("VGG-16", VGG), ("DCGAN", DCGAN)):
        totals = dict.fromkeys(("direct", "winograd", "auto"), 0.0)
        for *layer, count in layers:
            cells = []
            for call in passes(options.batch, *layer).values():
                times = {}
                for kernel in totals:
                    _core.use_convolution_kernel(kernel)
                    times[kernel] = least_ms(call, options.calls)
                    totals[kernel] += count * times[kernel]
                cells.append(f"{times['direct']:9.2f} {times['winograd']:9.2f}")
            kernel, stride, channels, filters, size = layer
            name = f"{count} x {channels}->{filters}, {kernel}/{stride} at {size}"
            print(f"{name:>24}", *(f"{cell:>29}" for cell in cells))
        print(f"{model}:", *(f"{k} {v:.0f} ms" for k, v in totals.items()))
    time_others(options.batch, options.calls)


if __name__ == "__main__":
    main()
