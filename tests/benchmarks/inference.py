"""Times networks that only evaluate, beside ONNX Runtime and PyTorch, in turn.

Run as ``python -m tests.benchmarks.inference --peer PYTHON_WITH_TORCH``. The networks
are those of ``tests/benchmarks/steps``, in float32; ONNX Runtime runs renga's export of
them. PyTorch is taken at the better of eager, with channels last, and compiled with
constant weights. ``generate`` is GPT with its cache: milliseconds of a token for each
text of the batch, after 16 given ones. Each run is a process of its own; a side's time
is the median of its rounds' medians.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.sides import numbers_of

SIDES = ("renga", "onnx", "eager", "compiled")
NETWORKS = ("resnet", "mobilenet", "bert", "gpt", "generate")
GIVEN, DRAWN = 16, 64  # tokens


def input_of(name: str, batch: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name in ("resnet", "mobilenet"):
        return rng.standard_normal((batch, 3, 224, 224), np.float32)
    length = GIVEN if name == "generate" else 128
    return rng.integers(0, 8192, (batch, length), np.int32)


def renga_run(name: str, x: np.ndarray) -> Callable[[], Any]:
    import renga.links as L

    network = renga_network(name)
    if name == "generate":
        assert isinstance(network, L.GPT2)
        return lambda: network.generate(x, DRAWN)
    return lambda: network(x)


def renga_network(name: str) -> Any:
    import renga.links as L

    make: dict[str, Callable[[], Any]] = {
        "resnet": L.ResNet50,
        "mobilenet": L.MobileNetV2,
        "bert": lambda: L.BERT(context=128, num_layers=2, dropout=0.0),
    }
    return make.get(name, lambda: L.GPT2(8192, 128, 512, 4, 8, dropout=0.0))()


def onnx_run(name: str, x: np.ndarray) -> Callable[[], Any]:
    import onnxruntime

    import renga

    network = renga_network(name)
    network(x)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        renga.exporters.onnx.export(network, x, file.name)
        session = onnxruntime.InferenceSession(file.name, options)
    (given,) = session.get_inputs()
    return lambda: session.run(None, {given.name: x})


def torch_run(name: str, x: np.ndarray, is_compiled: bool) -> Callable[[], Any]:
    import torch

    from tests.benchmarks.steps import torch_networks, torch_steps

    make: dict[str, Callable[[], Any]] = {
        "resnet": torch_steps.resnet_network,
        "mobilenet": torch_networks.mobilenet,
        "bert": lambda: torch_networks.BERT(np.arange(x.size)),
    }
    network = make.get(name, torch_networks.GPT)().eval()
    given = torch.from_numpy(x)
    network, given = map(torch_steps.laid_out, (network, given))
    if name == "generate":
        return lambda: torch_networks.generate(network, given.long(), DRAWN)
    if is_compiled:
        import torch._inductor.config

        torch._inductor.config.freezing = True
        network = torch.compile(network)
    return lambda: network(given)


def measure(side: str, name: str, batch: int, seconds: float) -> float:
    """The median milliseconds of a call."""
    x = input_of(name, batch)
    scope: Any
    if side in ("renga", "onnx"):
        import renga

        run = (renga_run if side == "renga" else onnx_run)(name, x)
        scope = renga.using_config("train", False), renga.no_backprop_mode()
    else:
        import torch

        run = torch_run(name, x, side == "compiled")
        scope = (torch.inference_mode(),)
    for each in scope:
        each.__enter__()
    for _ in range(3):
        run()
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e3 / (DRAWN if name == "generate" else 1)


def run_side(
    side: str, name: str, batch: int, threads: int, options: argparse.Namespace
) -> float:
    """The same in a process of the side's Python."""
    python = sys.executable if side in ("renga", "onnx") else options.peer
    arguments = "--measure", side, "--models", name, "--batches", batch
    (milliseconds,) = numbers_of(
        python,
        "inference",
        *arguments,
        "--seconds",
        options.seconds,
        OMP_NUM_THREADS=threads,
        CHANNELS_LAST=1,
        DTYPE="float32",
    )
    return milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python with PyTorch")
    parser.add_argument("--models", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--batches", nargs="+", type=int, default=(1, 32))
    parser.add_argument("--threads", nargs="+", type=int, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a run")
    parser.add_argument("--measure", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        (name,), (batch,) = options.models, options.batches
        return print(measure(options.measure, name, batch, options.seconds))
    print("milliseconds".ljust(32) + "".join(f"{side:>10}" for side in SIDES))
    for name in options.models:
        sides = [side for side in SIDES if options.peer or side in ("renga", "onnx")]
        if name == "generate":
            sides = [side for side in sides if side in ("renga", "eager")]
        for batch in options.batches:
            for threads in options.threads:
                found: dict[str, list[float]] = {side: [] for side in sides}
                for _ in range(options.rounds):
                    for side in sides:
                        ms = run_side(side, name, batch, threads, options)
                        found[side].append(ms)
                medians = {side: statistics.median(ms) for side, ms in found.items()}
                cells = (
                    f"{medians[s]:10.2f}" if s in medians else " " * 10 for s in SIDES
                )
                best = min(ms for side, ms in medians.items() if side != "renga")
                row = f"{name}, batch {batch}, {threads} threads"
                ratio = best / medians["renga"]
                print(row.ljust(32) + "".join(cells) + f"{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
