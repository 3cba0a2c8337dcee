"""The course on images, on scikit-learn's digits, which it takes without a network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

pytest.importorskip("sklearn")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def run(tmp_path):
    """Runs a script of the course without a network; what it prints."""

    def run(script: str, *options: object) -> str:
        command = [sys.executable, EXAMPLES / script, "--out", tmp_path, *options]
        # Nobody listens at this port, so no download begins.
        nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
        env = {**os.environ, **nowhere, "CHAINER_DATASET_ROOT": str(tmp_path)}
        env["OMP_NUM_THREADS"] = "1"
        return subprocess.run(
            list(map(str, command)),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    return run


def log(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "log").read_text())


def test_mnist_by_a_trainer_says_what_it_takes_and_goes_on(run, tmp_path):
    printed = run("05_images/train_mnist.py", "--epoch", 3)
    assert "mnist is not at hand: taking the digits of scikit-learn" in printed
    assert "digits: 1440 images to train, 357 to test with" in printed
    assert log(tmp_path)[-1]["validation/main/accuracy"] > 0.9
    for plot in ("loss.png", "accuracy.png"):
        assert (tmp_path / plot).read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "cg.dot").read_text().startswith("digraph")
    snapshot = tmp_path / "snapshot_iter_45"
    run("05_images/train_mnist.py", "--epoch", 4, "--resume", snapshot)
    assert [entry["epoch"] for entry in log(tmp_path)] == [1, 2, 3, 4]


def test_mnist_by_a_loop_of_ones_own(run, tmp_path):
    printed = run("05_images/custom_loop.py", "--epoch", 4).splitlines()
    assert float(printed[-2].partition("accuracy ")[2]) > 0.9
    assert printed[-1].startswith(f"{tmp_path}/mlp.npz takes the first test image")


def test_cifar(run, tmp_path):
    options = ["--epoch", 3, "--width", 8, "--size", 480, "--batchsize", 16]
    printed = run("05_images/train_cifar.py", *options)
    assert "digits: 480 images to train" in printed
    # Chance alone gives 0.1.
    assert log(tmp_path)[-1]["validation/main/accuracy"] > 0.6


def test_a_vae_knows_more_than_what_pixels_are_like(run, tmp_path):
    alone = run("05_images/train_vae.py", "--epoch", 16).splitlines()[-1].split()[-4]
    # A code of its own for each image costs less than the averages of its pixels.
    assert log(tmp_path)[-1]["validation/main/loss"] < float(alone) - 1
    for picture in ("reconstructed.png", "made.png"):
        assert (tmp_path / picture).read_bytes()[:4] == b"\x89PNG"


def test_a_dcgan_makes_images_like_those_it_saw(run, tmp_path):
    import matplotlib.image

    from renga.datasets import get_digits

    options = ["--epoch", 3, "--width", 4, "--size", 480, "--batchsize", 16]
    run("05_images/train_dcgan.py", *options)
    picture = matplotlib.image.imread(tmp_path / "made.png")[:, :, 0]
    made = picture.reshape(10, 32, 10, 32).mean((0, 2)).ravel()
    train, _ = get_digits(ndim=1, upscale=32)
    seen = numpy.mean([x for x, _ in train], axis=0)
    # White noise has a correlation within 0.1 of 0.
    assert numpy.corrcoef(made, seen)[0, 1] > 0.5
