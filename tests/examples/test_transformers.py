"""The course on transformers, on Python's documentation and on digits."""

import json
import os
import runpy
from pathlib import Path

import numpy
import pytest

import renga
import renga.links as L
from tests.scripts import run_script

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_gpt_learns_letters_and_writes(run_offline, tmp_path):
    options = ["--iteration", 100, "--unit", 48, "--layer", 2, "--batchsize", 8]
    options += ["--prompt", "The ", "--length", 20]
    done = run_offline("11_transformers/train_gpt.py", *options)
    alone = next(line for line in done.lines if line.startswith("perplexity by"))
    found = [entry["validation/main/perplexity"] for entry in done.log]
    # Without training, all letters are as likely: about a hundred.
    assert found[-1] < 0.95 * float(alone.split()[-1]) < found[0]
    text = "\n".join(done.lines[done.lines.index(alone) + 1 :])
    assert text.startswith("The ") and len(text) == 24
    with numpy.load(tmp_path / "gpt.npz") as arrays:
        assert arrays["tokens/W"].shape[1] == 48


@pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec")
def test_strategies_compute_the_same(tmp_path):
    options = ["--iteration", 4, "--unit", 16, "--layer", 1, "--batchsize", 2]
    weights, shares = {}, {}
    for strategy, ranks in (("channel", 1), ("channel", 2), ("sequence", 2)):
        script = EXAMPLES / "11_transformers" / "train_gpt_parallel.py"
        out = tmp_path / f"{strategy}{ranks}.npz"
        of_run = ["--strategy", strategy, "--out", out, *options]
        done = run_script(script, *of_run, cwd=tmp_path, ranks=ranks)
        assert done.returncode == 0, done.stderr
        (shares[strategy, ranks],) = (
            int(line.split()[3].rstrip("%"))
            for line in done.stdout.splitlines()
            if line.startswith("rank 0 has")
        )
        with numpy.load(out) as arrays:
            weights[strategy, ranks] = dict(arrays)
    assert shares["channel", 1] == shares["sequence", 2] == 100
    assert shares["channel", 2] < 70
    expected = weights.pop(("channel", 1))
    for found in weights.values():
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            # The gradient of the keys' bias is 0 but for rounding, which Adam enlarges;
            # less so where a gradient is nearly 0 by chance.
            if not name.endswith("in_proj/b"):
                numpy.testing.assert_allclose(
                    found[name], value, 1e-3, 1e-4, err_msg=name
                )


@pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec")
def test_a_gpt_is_fine_tuned_by_two_ranks(tmp_path, monkeypatch):
    folder = EXAMPLES / "11_transformers"
    monkeypatch.syspath_prepend(str(folder))
    *_, alphabet = runpy.run_path(str(folder / "train_gpt.py"))["load"]()
    gpt = L.GPT2(len(alphabet), 128, 32, 1, 4)
    renga.serializers.save_npz(tmp_path / "gpt.npz", gpt)
    options = ["--model", tmp_path / "gpt.npz", "--rank", 4, "--iteration", 40]
    options += ["--out", tmp_path, "--batchsize", 2]
    done = run_script(folder / "fine_tune_gpt.py", *options, cwd=tmp_path, ranks=2)
    assert done.returncode == 0, done.stderr
    (before,) = (
        float(line.split()[-1])
        for line in done.stdout.splitlines()
        if line.startswith("perplexity of code before")
    )
    log = json.loads((tmp_path / "log").read_text())
    assert log[-1]["validation/main/perplexity"] < 0.9 * before
    with numpy.load(tmp_path / "adapters.npz") as adapters:
        found = dict(adapters)
    linears = "attention/in_proj attention/out_proj up down".split()
    expected = {f"blocks/0/{n}/W_{k}" for n in linears for k in "AB"}
    assert found.keys() == expected
    assert found["blocks/0/up/W_A"].shape == (4, 32) and found["blocks/0/up/W_B"].any()


def test_images_are_classified(run_offline):
    for model in ("vit", "resnet"):
        options = ["--model", model, "--epoch", 2]
        done = run_offline("11_transformers/train_images.py", *options)
        # Chance alone is right for one of ten.
        assert done.log[-1]["validation/main/accuracy"] > 0.5
        assert done.log[-1]["main/loss"] < done.log[0]["main/loss"]
