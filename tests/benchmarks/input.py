"""Times reading batches of JPEG files, by renga and by PyTorch in turn.

Run as ``python -m tests.benchmarks.input --peer PYTHON_WITH_TORCH_AND_TORCHVISION``.
Images are decoded, cropped, flipped and normalized by two workers: renga's
``MultiprocessIterator`` and ``MultithreadIterator`` with ``renga.transforms``, and
PyTorch's ``DataLoader`` with torchvision's transforms of Pillow images. Each run is a
process of its own. Prints the images a second of two epochs with all that comes before
the first batch, imports included; those of the second epoch; and the memory of all
processes after it, of which shared pages count once.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from typing import Any

from tests.benchmarks.sides import numbers_of

IMAGES, BATCH, SIZE = 1000, 50, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIDES = ("processes", "threads", "torch")


def write_images(folder: pathlib.Path, size: int) -> None:
    """Smooth colours with noise: photographs have as many bytes for their pixels."""
    import numpy as np
    import PIL.Image

    rng, lines = np.random.default_rng(0), []
    for i in range(IMAGES):
        colours = PIL.Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8))
        smooth = np.asarray(colours.resize((size, size), PIL.Image.Resampling.BICUBIC))
        noise = rng.integers(-12, 12, smooth.shape)
        image = PIL.Image.fromarray((smooth + noise).clip(0, 255).astype(np.uint8))
        image.save(folder / f"{i}.jpg", quality=90)
        lines.append(f"{i}.jpg {i % 10}\n")
    (folder / "list.txt").write_text("".join(lines), encoding="utf-8")


def renga_batches(
    folder: pathlib.Path, workers: int, side: str
) -> Generator[Any, None, None]:
    """Batches without an end."""
    import renga
    from renga import transforms

    # Bytes are a quarter of the memory of floats, which Normalize makes of them.
    data = renga.datasets.LabeledImageDataset(folder / "list.txt", folder, dtype="u1")
    convert = transforms.converter(
        transforms.RandomCrop(SIZE),
        transforms.RandomHorizontalFlip(),
        transforms.Normalize([255 * m for m in MEAN], [255 * s for s in STD]),
    )
    if side == "processes":
        iterator = renga.iterators.MultiprocessIterator(
            data, BATCH, n_processes=workers
        )
    else:
        iterator = renga.iterators.MultithreadIterator(data, BATCH, n_threads=workers)
    with iterator:
        for batch in iterator:
            yield convert(batch, None)


class TorchImages:
    """The data set of PyTorch's side."""

    def __init__(self, folder: pathlib.Path) -> None:
        from torchvision import transforms

        lines = (folder / "list.txt").read_text(encoding="utf-8").splitlines()
        self.pairs = [(folder / name, int(t)) for name, t in map(str.split, lines)]
        self.transform = transforms.Compose(
            [
                transforms.RandomCrop(SIZE),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        import PIL.Image

        path, label = self.pairs[i]
        with PIL.Image.open(path) as image:
            return self.transform(image.convert("RGB")), label


def torch_batches(
    folder: pathlib.Path, workers: int, side: str
) -> Generator[Any, None, None]:
    """Batches without an end."""
    from torch.utils.data import DataLoader

    loader = DataLoader(
        TorchImages(folder), BATCH, True, num_workers=workers, persistent_workers=True
    )
    while True:
        yield from loader


def memory_of(process: int) -> float:
    """MiB of a process and its children; a page that n of them share counts 1 / n."""
    rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    own = next(line.split()[1] for line in rollup.splitlines() if line[:4] == "Pss:")
    tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
    children = " ".join((task / "children").read_text() for task in tasks).split()
    return int(own) / 1024 + sum(map(memory_of, map(int, children)))


def measure(side: str, folder: pathlib.Path, workers: int) -> None:
    """Prints images a second of both epochs, of the second one, and MiB."""
    begun = float(os.environ["BEGUN"])
    make = torch_batches if side == "torch" else renga_batches
    batches, times = make(folder, workers, side), []
    for _ in range(2):
        for _ in range(IMAGES // BATCH):
            x, _ = next(batches)
            assert x.shape == (BATCH, 3, SIZE, SIZE)
        times.append(time.time())
    first, second = times
    rates = 2 * IMAGES / (second - begun), IMAGES / (second - first)
    print(*rates, memory_of(os.getpid()))
    batches.close()


def run(side: str, options: argparse.Namespace, folder: str) -> list[float]:
    """The same in a process of the side's Python."""
    python = options.peer if side == "torch" else sys.executable
    arguments = "--measure", side, "--folder", folder, "--workers", options.workers
    return numbers_of(python, "input", *arguments, BEGUN=time.time(), OMP_NUM_THREADS=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python with PyTorch and torchvision")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=256, help="of the images")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options.folder, options.workers)
    sides = SIDES if options.peer else SIDES[:2]
    found: dict[str, list[list[float]]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as folder:
        write_images(pathlib.Path(folder), options.size)
        for _ in range(options.rounds):
            for side in sides:
                found[side].append(run(side, options, folder))
    print(f"{'':12}{'images/s':>10}{'2nd epoch':>11}{'MiB':>7}")
    for side, rows in found.items():
        total, second, size = map(statistics.median, zip(*rows))
        print(f"{side:12}{total:10.0f}{second:11.0f}{size:7.0f}")


if __name__ == "__main__":
    main()
