"""Algorithm selection: once for a pass and shape; printed, saved and loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import kernels


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    before = kernels.choices()
    kernels.forget()
    yield
    kernels.forget()
    renga._core.load_kernel_choices(before)


def images(channels: int = 32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, channels, 8, 8)).astype("f")
    return x, rng.standard_normal((32, channels, 3, 3)).astype("f")


def expected(x: np.ndarray, W: np.ndarray) -> np.ndarray:
    """The convolution at pad 1 in float64."""
    wide = np.pad(x.astype("d"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    offsets = ((i, j) for i in range(3) for j in range(3))
    return sum(
        np.einsum("nchw,oc->nohw", wide[:, :, i : i + 8, j : j + 8], W[:, :, i, j])
        for i, j in offsets
    )


def test_every_pass_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    x, W = images()
    with renga.using_config("show_kernels", True):
        for _ in range(2):
            a, b = renga.Variable(x), renga.Variable(W)
            F.sum(F.convolution_2d(a, b, pad=1) ** 2).backward()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "convolution forward",
        "convolution input gradient",
        "convolution weight gradient",
    ]
    for line in lines:
        assert "(4, 32, 8, 8)" in line and "(32, 32, 3, 3)" in line
        assert "groups" not in line
        assert line.rpartition(": ")[2] in ("direct", "winograd")


def test_nothing_is_printed_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    x, W = images()
    F.convolution_2d(x, W[:, :16], pad=1, groups=2)
    assert capsys.readouterr().out == ""
    (problem,) = kernels.choices()
    assert ", groups 2," in problem


def test_outputs_of_other_extents_are_another_problem() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 32, 9, 9)).astype("f")
    W = rng.standard_normal((32, 32, 4, 4)).astype("f")
    for cover_all, extent in ((False, 4), (True, 5)):
        y = F.convolution_2d(x, W, stride=2, pad=1, cover_all=cover_all)
        assert y.shape == (4, 32, extent, extent)
    assert len(kernels.choices()) == 2


@pytest.mark.parametrize("kernel", ["direct", "winograd"])
def test_loaded_choices_take_precedence(tmp_path: Path, kernel: str) -> None:
    x, W = images()
    F.convolution_2d(x, W, pad=1)
    file = tmp_path / "kernels.json"
    kernels.save(file)
    written = json.loads(file.read_text())
    assert written == kernels.choices()
    (problem,) = written
    file.write_text(json.dumps({problem: kernel}))
    kernels.forget()
    kernels.load(file)
    loaded = F.convolution_2d(x, W, pad=1).array
    assert kernels.choices() == {problem: kernel}
    np.testing.assert_allclose(loaded, expected(x, W), rtol=0, atol=1e-4)
    renga._core.use_convolution_kernel(kernel)
    try:
        np.testing.assert_array_equal(loaded, F.convolution_2d(x, W, pad=1).array)
    finally:
        renga._core.use_convolution_kernel("auto")


@pytest.mark.parametrize("kernel", ["winograd", "depthwise", "automatic", "none"])
def test_kernels_that_do_not_apply_are_not_selected(kernel: str) -> None:
    x, W = images()
    F.convolution_2d(x, W[:3], pad=1)
    (problem,) = kernels.choices()
    renga._core.load_kernel_choices({problem: kernel})
    y = F.convolution_2d(x, W[:3], pad=1).array
    np.testing.assert_allclose(y, expected(x, W[:3]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kernels.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"kernels\.load: expected"):
        kernels.load(file)
    assert kernels.choices() == {}


SCRIPT = """
import sys
import numpy as np
import renga
import renga.functions as F

rng = np.random.default_rng(0)
x = renga.Variable(rng.standard_normal((4, 64, 8, 8)).astype("f"))
W = renga.Variable(rng.standard_normal((64, 64, 3, 3)).astype("f"))
gamma, beta = np.full(64, 1.5, "f"), np.full(64, 0.25, "f")
renga._core.use_convolution_kernel("winograd")
h = F.relu(F.batch_normalization(F.convolution_2d(x, W, pad=1), gamma, beta))
np.random.seed(0)
h = F.dropout(F.max_pooling_2d(F.tanh(h), 2), 0.3)
F.sum(h * h).backward()

renga._core.use_convolution_kernel("auto")
# Without AVX-512, these are products: of pixels, and of taps that are far apart.
narrow = renga.Variable(rng.standard_normal((24, 64, 1, 1)).astype("f"))
lines = renga.Variable(rng.standard_normal((2, 32, 1, 700)).astype("f"))
taps = renga.Variable(rng.standard_normal((24, 32, 1, 3)).astype("f"))
image = renga.Variable(x.array)
pointwise = F.convolution_2d(image, narrow, np.ones(24, "f"))
distant = F.convolution_2d(lines, taps, np.ones(24, "f"), pad=(0, 150), dilate=(1, 150))
(F.sum(pointwise * pointwise) + F.sum(distant * distant)).backward()

pixels, weights = rng.standard_normal((4, 50, 50, 24)), rng.standard_normal((40, 24))
definition = np.maximum(1.5 * (pixels @ weights.T) + 0.25, 0).astype("f")
statistics = [np.full(40, s, "f") for s in (1.5, 0.25, 0, 1 - 2e-5)]
with renga.no_backprop_mode(), renga.using_config("dtype", renga.mixed_bfloat16):
    images = renga.as_variable(pixels.transpose(0, 3, 1, 2).astype("f")) * 1
    # In the core's memory, without which nothing waits for what follows a convolution.
    initial = renga.initializers.Constant(weights[:, :, None, None].astype("f"))
    filters = renga.Parameter(initial, (40, 24, 1, 1))
    # Nothing else has the results in between, which are not computed on their own.
    y = F.relu(
        F.fixed_batch_normalization(F.convolution_2d(images, filters), *statistics)
    ).array
found = {"h": h.array, "gx": x.grad, "gW": W.grad, "y": np.moveaxis(y, 1, -1)}
found |= {"pointwise": pointwise.array, "distant": distant.array}
found |= {"g_image": image.grad, "g_lines": lines.grad, "g_taps": taps.grad}
np.savez(sys.argv[1], definition=definition, **found)
"""


def test_lower_instruction_sets_compute_the_same(tmp_path: Path) -> None:
    # The order of summation differs, so results differ in their last digits.
    results = []
    for limit in (None, "AVX512_CORE", "AVX2"):
        environment = {k: v for k, v in os.environ.items() if "MAX_CPU_ISA" not in k}
        if limit:
            environment |= {"RENGA_MAX_CPU_ISA": limit, "ONEDNN_MAX_CPU_ISA": limit}
        file = tmp_path / f"{limit}.npz"
        command = [sys.executable, "-c", SCRIPT, str(file)]
        subprocess.run(command, env=environment, check=True, timeout=120)
        results.append(np.load(file))
        y, definition = results[-1]["y"], results[-1]["definition"]
        np.testing.assert_allclose(y, definition, 0, 0.02 * definition.max())
    for other in results[1:]:
        for name in set(other) - {"y", "definition"}:
            scale = np.abs(results[0][name]).max()
            np.testing.assert_allclose(
                other[name], results[0][name], rtol=0, atol=2e-5 * scale, err_msg=name
            )


def test_an_unknown_instruction_set_is_an_error() -> None:
    environment = {**os.environ, "RENGA_MAX_CPU_ISA": "MMX"}
    command = [sys.executable, "-c", SCRIPT, os.devnull]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert "RENGA_MAX_CPU_ISA: expected AVX2, " in done.stderr
    assert "got MMX" in done.stderr
